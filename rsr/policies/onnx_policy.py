"""Running an exported policy with onnxruntime alone: what happens on the robot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime

from rsr.errors import PolicyError
from rsr.policies.contract import PolicyContract, load_contract


class OnnxPolicy:
    """The exported policy; `act` means what `Policy.act` means.

    Example:
        policy = OnnxPolicy.load(Path("exported"))
        check_contract(policy.contract, scenario_body(scenario))
        action = policy.act(observation)
    """

    def __init__(self, contract: PolicyContract, content: bytes) -> None:
        options = onnxruntime.SessionOptions()
        # One thread: a network this small only waits for a second one.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.contract = contract
        self._session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    @staticmethod
    def load(folder: Path) -> OnnxPolicy:
        """Read contract and network; what was changed since the export is refused."""
        contract = load_contract(folder)
        return OnnxPolicy(contract, (Path(folder) / contract.onnx["file"]).read_bytes())

    def act(self, observation: np.ndarray) -> np.ndarray:
        """Displacements in -1..1, [B, joints], for observations [B, n]."""
        size = self.contract.observation_size
        if observation.shape[-1] != size:
            raise PolicyError(
                got=f"observations of width {observation.shape[-1]}",
                expected=f"{size} values ({', '.join(term.name for term in self.contract.observation)})",
                where=f"exported policy for {self.contract.scenario}",
                next_step="Build observations as the contract's terms say.",
            )
        inputs = {self.contract.onnx["input"]: observation.astype(np.float32)}
        return np.asarray(self._session.run([self.contract.onnx["output"]], inputs)[0], float)
