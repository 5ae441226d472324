"""A stored, deterministic policy: observation in, action out, in numpy alone."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnxruntime

from rsr.common import DAMAGED, PolicyError, read_arrays, read_bounded, read_json, short, write_arrays, write_json
from rsr.policies.policy_contract import LARGEST_NETWORK, PolicyContract, load_contract, onnx_file, unreadable_export
from rsr.scenarios import Scenario, Task, load_scenario, scenario_of, task_of
from rsr.sessions import is_session_name

_ARRAYS = "policy.npz"
_CARD = "policy.json"
_ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"tanh": np.tanh, "relu": lambda x: np.maximum(x, 0.0)}


@dataclass(frozen=True)
class Normaliser:
    """Observation scaling learnt during training: clip((x - mean) / sqrt(variance + 1e-8), +-limit)."""

    mean: np.ndarray
    variance: np.ndarray
    limit: float

    def __call__(self, observation: np.ndarray) -> np.ndarray:
        scaled = (observation - self.mean) / np.sqrt(self.variance + 1e-8)
        return np.clip(scaled, -self.limit, self.limit)


@dataclass(frozen=True)
class Policy:
    """A network that chooses, and the task's head that makes an action of it.

    Args:
        task: that it was trained for.
        layers: (weight [out, in], bias [out]) of each layer, float32.
        activation: between the layers, "tanh" or "relu".
        squashed: whether tanh brings the last layer into -1..1, as SAC's actor does it; a clip otherwise.
    """

    task: Task
    normaliser: Normaliser
    layers: tuple[tuple[np.ndarray, np.ndarray], ...]
    card: dict[str, object] = field(default_factory=dict)
    activation: str = "tanh"
    squashed: bool = False

    @property
    def scenario(self) -> str:
        """Name of the scenario that it was trained for."""
        return self.task.name

    def act(self, observation: np.ndarray) -> np.ndarray:
        """Actions in -1..1, [B, m], for observations [B, n] of the scenario's task."""
        return self.task.act(observation, self.choose(observation))

    def choose(self, observation: np.ndarray) -> np.ndarray:
        """Compute what the network chooses [B, k], in -1..1."""
        task = self.task
        if observation.shape[-1] != task.observation_size:
            raise PolicyError(
                got=f"observations of width {observation.shape[-1]}",
                expected=f"{task.observation_size} values ({', '.join(term.name for term in task.terms)})",
                where=f"policy for {self.scenario}",
                next_step="Build observations with the task's `observe`.",
            )
        hidden = self.normaliser(observation).astype(np.float32)
        for weight, bias in self.layers[:-1]:
            hidden = _ACTIVATIONS[self.activation](hidden @ weight.T + bias)
        weight, bias = self.layers[-1]
        output = hidden @ weight.T + bias
        return np.tanh(output) if self.squashed else np.clip(output, -1.0, 1.0)

    def save(self, folder: Path | str) -> None:
        """Write the network and its card into a folder."""
        folder = Path(folder)
        arrays = {"mean": self.normaliser.mean, "variance": self.normaliser.variance}
        for i, (weight, bias) in enumerate(self.layers):
            arrays[f"weight{i}"], arrays[f"bias{i}"] = weight, bias
        write_arrays(folder / _ARRAYS, arrays)
        card = {
            "scenario": self.scenario,
            "limit": self.normaliser.limit,
            "layers": len(self.layers),
            "activation": self.activation,
            "squashed": self.squashed,
        }
        write_json(folder / _CARD, {**self.card, **card})

    def export(self, out: Path | str, scenario: Scenario | None = None) -> Path:
        """Write policy.onnx and policy_contract.json into a folder, compared with this policy; returns the folder.

        Args:
            scenario: that it was trained for; by default the built-in one of its name.

        Examples:
            >>> policy.export("onnx")  # doctest: +SKIP
        """
        from rsr.policies.export import export_policy

        with tempfile.TemporaryDirectory() as folder:
            self.save(Path(folder))
            export_policy(scenario or load_scenario(self.scenario), Path(folder), Path(out))
        return Path(out)

    @staticmethod
    def load(folder: Path | str, scenario: Scenario | None = None) -> Policy:
        """Read a policy that `save` or a training wrote.

        Args:
            scenario: that it was trained for; by default its copy beside the policy or in its campaign, or the
                built-in one of its name.
        """
        folder = Path(folder)
        try:
            card = read_json(folder / _CARD)
            arrays = read_arrays(folder / _ARRAYS)
            layers = tuple((arrays[f"weight{i}"], arrays[f"bias{i}"]) for i in range(card["layers"]))
            normaliser = Normaliser(arrays["mean"], arrays["variance"], card["limit"])
            # Policies of earlier versions do not say it: tanh networks with a clip, all of them.
            activation, squashed = card.get("activation", "tanh"), card.get("squashed", False)
            _ACTIVATIONS[activation]
            if not is_session_name(card["scenario"]):  # it is looked up: a path would lead elsewhere
                raise ValueError(f"scenario {short(card['scenario'])}")
        except (*DAMAGED, AttributeError) as error:
            raise PolicyError(
                got=f"{type(error).__name__}: {error}",
                expected=f"{_ARRAYS} and {_CARD} of one policy",
                where=str(folder),
                next_step="Restore the folder with `dvc checkout`, or make it again with `dvc repro`.",
            ) from error
        return Policy(_task(card["scenario"], scenario, folder), normaliser, layers, card, activation, squashed)


def _task(name: str, scenario: Scenario | None, folder: Path) -> Task:
    if scenario is None or scenario.name == name:
        return task_of(scenario or scenario_of(folder, name))
    raise PolicyError(
        got=f"a policy for scenario {name}",
        expected=f"one for {scenario.name}",
        where=str(folder),
        next_step="Name the scenario that it was trained for.",
    )


# Running an exported policy with onnxruntime alone: what happens on the robot.


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
        options.log_severity_level = 4  # what is wrong is said by the error
        self.contract = contract
        self._session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    @staticmethod
    def load(folder: Path) -> OnnxPolicy:
        """Read contract and network; what was changed since the export is refused."""
        contract = load_contract(folder)
        try:
            return OnnxPolicy(contract, read_bounded(onnx_file(folder, contract), LARGEST_NETWORK))
        except Exception as error:  # onnxruntime has errors of its own for each of the many ways to be no network
            raise unreadable_export(folder, error) from error

    def act(self, observation: np.ndarray) -> np.ndarray:
        """Actions in -1..1, [B, m], for observations [B, n]."""
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
