"""One ONNX file of a stored policy, observation in, action out, and the contract beside it.

Normaliser, network and the task's head are all inside. The graph is the policy's own numpy code,
traced, so no formula is written twice; how exactly the two agree is measured and written into the contract.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from rsr.common import PolicyError, generator, sha256, write_bytes
from rsr.environments import Measuring, World
from rsr.policies.policy import OnnxPolicy, Policy
from rsr.policies.policy_contract import ONNX_FILE, PolicyContract, task_contract
from rsr.policies.tracing import OnnxGraph, Traced
from rsr.scenarios import Scenario

PARITY_LIMIT = 1e-5
_OPSET, _IR_VERSION = 17, 8
"""Of 2021: whatever onnxruntime a robot has, it reads them."""
_INPUT, _OUTPUT = "observation", "action"
_COPIES, _STEPS = 20, 50
"""Parity is measured on 20 x 50 = 1,000 observations that the policy meets in a simulator."""
_EXAMPLES = 3


def export_policy(
    scenario: Scenario,
    folder: Path,
    out: Path,
    params: np.ndarray | None = None,
    calibration: Path | None = None,
    sessions: Sequence[Path] = (),
) -> PolicyContract:
    """Write policy.onnx and policy_contract.json into `out`.

    Args:
        folder: of the stored policy.
        params: [P], of the simulator in which the two are compared; the nominal ones by default.
        calibration, sessions: what the policy was trained with; their hashes go into the contract.

    Raises:
        PolicyError: the folder holds no policy of this scenario, or the graph does not compute what the policy does.
    """
    policy = Policy.load(folder, scenario)
    content = build_onnx(policy)
    described = replace(
        task_contract(scenario),
        onnx={"file": ONNX_FILE, "sha256": hashlib.sha256(content).hexdigest(), "opset": _OPSET}
        | {"input": _INPUT, "output": _OUTPUT},
        sources=_sources(folder, calibration, sessions),
        versions=_versions(),
    )
    chosen = scenario.space.nominal if params is None else params
    error = _parity(policy, OnnxPolicy(described, content), _met(scenario, policy, chosen), folder)
    contract = replace(described, parity={"observations": _COPIES * _STEPS, "max_error": error})
    write_bytes(out / ONNX_FILE, content)
    contract.save(out)
    return contract


def build_onnx(policy: Policy) -> bytes:
    """The deterministic actor as an ONNX file's bytes: float32 [batch, n] in, float32 [batch, m] out."""
    graph, task = OnnxGraph(), policy.task
    observation: Any = Traced(graph, _INPUT, np.zeros((_EXAMPLES, task.observation_size), np.float32))
    action: Any = policy.act(observation).astype(np.float32)
    graph.nodes.append(helper.make_node("Identity", [action.name], [_OUTPUT]))
    whole = helper.make_graph(
        graph.nodes,
        policy.scenario,
        [helper.make_tensor_value_info(_INPUT, TensorProto.FLOAT, ["batch", task.observation_size])],
        [helper.make_tensor_value_info(_OUTPUT, TensorProto.FLOAT, ["batch", action.shape[-1]])],
        graph.constants,
    )
    opset = [helper.make_opsetid("", _OPSET)]
    return helper.make_model(whole, opset_imports=opset, ir_version=_IR_VERSION).SerializeToString(deterministic=True)


def _versions() -> dict[str, str]:
    found = {name: version(name) for name in ("numpy", "onnx", "onnxruntime")}
    return {"python": platform.python_version(), **found}


def _sources(folder: Path, calibration: Path | None, sessions: Sequence[Path]) -> dict[str, object]:
    return {
        "policy": sha256(folder / "policy.npz"),
        "calibration": None if calibration is None else sha256(calibration),
        "sessions": {Path(session).name: sha256(session) for session in sessions},
    }


def _met(scenario: Scenario, policy: Policy, params: np.ndarray) -> np.ndarray:
    """Observations [1000, n] that the policy meets in the simulator with parameters [P]."""
    rng, task, everyone = generator(0, "export", "parity"), policy.task, np.arange(_COPIES)
    measuring = Measuring(scenario, task, _COPIES, rng, params)
    with World.simulated(scenario, params, _COPIES) as world:
        world.place(everyone, task.reset(rng, _COPIES))
        observations = [task.observe(measuring.first(world, everyone))]
        while len(observations) < _STEPS:
            world.step(policy.act(observations[-1]))
            observations.append(task.observe(measuring(world)))
    return np.concatenate(observations)


def _parity(policy: Policy, exported: OnnxPolicy, observations: np.ndarray, folder: Path) -> float:
    error = float(np.abs(exported.act(observations) - policy.act(observations)).max())
    if not error < PARITY_LIMIT:
        raise PolicyError(
            got=f"actions that differ by up to {error:.1e} between ONNX and the stored policy",
            expected=f"less than {PARITY_LIMIT:.0e}",
            where=str(folder),
            next_step="Nothing was exported. Report this with the policy's folder.",
        )
    return error
