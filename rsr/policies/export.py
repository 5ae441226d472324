"""One ONNX file of a stored policy, observation in, joint displacements out, and the contract beside it.

Normaliser, network, tool-plane head and the arm's kinematics are all inside. The graph is the policy's own numpy code,
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

from rsr.errors import PolicyError
from rsr.files import sha256, write_bytes
from rsr.policies.contract import ONNX_FILE, PolicyContract
from rsr.policies.onnx_policy import OnnxPolicy
from rsr.policies.policy import Policy
from rsr.policies.terms import task_contract
from rsr.policies.tracing import Graph, Traced
from rsr.policies.world import MeasurementNoise, World
from rsr.randomness import generator
from rsr.scenarios import Scenario, task_of
from rsr.scenarios.pushing import Task

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
    policy = Policy.load(folder)
    _check_scenario(policy, scenario, folder)
    content = build_onnx(policy, task_of(scenario))
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


def build_onnx(policy: Policy, task: Task) -> bytes:
    """The deterministic actor as an ONNX file's bytes: float32 [batch, n] in, float32 [batch, joints] out."""
    graph = Graph()
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


def _check_scenario(policy: Policy, scenario: Scenario, folder: Path) -> None:
    if policy.scenario != scenario.name:
        raise PolicyError(
            got=f"a policy for scenario {policy.scenario}",
            expected=f"one for {scenario.name}",
            where=str(folder),
            next_step="Name the scenario that it was trained for.",
        )


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
    rng = generator(0, "export", "parity")
    noise = MeasurementNoise(scenario, rng)
    seen = []
    with World.simulated(scenario, params, _COPIES) as world:
        world.place(np.arange(_COPIES), task_of(scenario).sample_starts(rng, _COPIES))
        for _ in range(_STEPS):
            seen.append(world.observation(noise))
            world.step(policy.act(seen[-1]))
    return np.concatenate(seen)


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
