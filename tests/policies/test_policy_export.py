"""One ONNX file computes what the stored policy does, and the contract beside it says what that means."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from hand_made import pushing_policy, random_policy
from tiny_training import SETTINGS, train_tiny

import rsr.policies.export as module
from rsr.common.errors import PolicyError
from rsr.common.files import sha256
from rsr.common.progress import ignore
from rsr.policies import Policy
from rsr.policies.export import build_onnx, export_policy
from rsr.policies.policy import OnnxPolicy
from rsr.policies.policy_contract import load_contract
from rsr.realities import CollectionPlan, StandIn
from rsr.scenarios import Starts, load_scenario, task_of
from tests.push_samples import channels_of

KINDS = [("tanh", False), ("relu", True)]  # as PPO and SAC leave them


def goal_of(starts: Starts) -> np.ndarray:
    """Targets [B, 3], or poses [B, 7]."""
    return np.concatenate(list(starts.goal.values()), axis=1)


def anywhere(scenario: str, count: int = 1000) -> np.ndarray:
    """Observations of arms and blocks in all sorts of places, many of them out of the arm's reach."""
    task, rng = task_of(load_scenario(scenario)), np.random.default_rng(0)
    starts = task.reset(rng, count)
    joints, target = starts.qpos[:, 7:] + rng.normal(0, 0.5, (count, 6)), goal_of(starts)
    block = starts.qpos[:, : target.shape[1]]
    block[:, :3] += rng.normal(0, 0.3, (count, 3))
    return task.observe(channels_of(joints, block, target))


@pytest.mark.parametrize("scenario", ["push_cube", "push_t"])
@pytest.mark.parametrize(("activation", "squashed"), KINDS)
def test_parity(tmp_path, scenario, activation, squashed):
    policy = random_policy(scenario, activation, squashed)
    policy.save(tmp_path / "policy")
    contract = export_policy(load_scenario(scenario), tmp_path / "policy", tmp_path / "out")
    assert contract.parity["observations"] == 1000
    assert contract.parity["max_error"] < 1e-5
    exported, seen = OnnxPolicy.load(tmp_path / "out"), anywhere(scenario)
    assert np.abs(exported.act(seen) - policy.act(seen)).max() < 1e-5
    assert np.abs(exported.act(seen[:1]) - policy.act(seen[:1])).max() < 1e-5
    assert exported.act(seen).shape == (1000, 6)


def test_same_policy_same_bytes(tmp_path):
    random_policy().save(tmp_path / "policy")
    for name in ("one", "two"):
        export_policy(load_scenario("push_cube"), tmp_path / "policy", tmp_path / name)
    assert sha256(tmp_path / "one") == sha256(tmp_path / "two")


def test_onnx_itself_finds_the_file_in_order(tmp_path):
    pushing_policy().save(tmp_path / "policy")
    export_policy(load_scenario("push_cube"), tmp_path / "policy", tmp_path / "out")
    onnx.checker.check_model(onnx.load(tmp_path / "out" / "policy.onnx"), full_check=True)


def test_the_contract_says_what_the_numbers_are(tmp_path):
    pushing_policy().save(tmp_path / "policy")
    (tmp_path / "calibration").mkdir()
    (tmp_path / "calibration" / "calibration.json").write_text("{}")
    scenario = load_scenario("push_cube")
    folder = tmp_path / "out"
    export_policy(scenario, tmp_path / "policy", folder, calibration=tmp_path / "calibration", sessions=[tmp_path])
    document = json.loads((folder / "policy_contract.json").read_text())
    assert document["rate_hz"] == 20.0
    assert document["joints"] == [f"joint{number}" for number in range(1, 7)]
    assert document["action"] | {"lower": 0, "upper": 0} == {
        "type": "displacement",
        "unit": "rad",
        "scale": [0.08] * 6,
        "limit": 1.0,
        "lead": [0.15] * 6,
        "lower": 0,
        "upper": 0,
    }
    assert document["observation"][4] == {
        "name": "target - block",
        "columns": ["x", "y", "z"],
        "unit": "m",
        "frame": "world",
        "channels": ["target_position", "block_position"],
    }
    assert document["sources"]["policy"] == sha256(tmp_path / "policy" / "policy.npz")
    assert document["sources"]["calibration"] == sha256(tmp_path / "calibration")
    assert list(document["sources"]["sessions"]) == [tmp_path.name]
    assert document["onnx"]["sha256"] == sha256(folder / "policy.onnx")
    assert load_contract(folder).observation_size == 37


@pytest.mark.parametrize("scenario", ["push_cube", "push_t"])
def test_terms_are_made_of_the_channels_they_name(scenario, tmp_path):
    """Changing one channel changes the terms that name it, and no other."""
    task = task_of(load_scenario(scenario))
    starts = task.reset(np.random.default_rng(1), 32)
    joints, target = starts.qpos[:, 7:], goal_of(starts)
    block, farther = starts.qpos[:, : target.shape[1]], [0.1, 0.1, 0.1, 0, 0, 0, 0][: target.shape[1]]
    going = {"joint_setpoint": joints + 0.05, "action": 0.5 + 0 * joints, "velocity:joint_position": 1.0 + 0 * joints}
    going |= {f"velocity:block_{name}": np.full((32, 3), 0.1) for name in ("position", "orientation")}
    before = task.observe(channels_of(joints, block, target, **going))
    moved = {
        "joint_position": task.observe(channels_of(joints + 0.1, block, target, **going)),
        "block_position": task.observe(channels_of(joints, block + farther, target, **going)),
        "target_position": task.observe(channels_of(joints, block, target + farther, **going)),
    }
    for channel, after in moved.items():
        named = {channel, "tip_position"} if channel == "joint_position" else {channel}
        for term in task.terms:
            changed = (after != before)[:, task.columns(term.name)].any()
            assert changed == bool(named & set(term.channels)), (channel, term.name)


def test_another_scenario_is_refused(tmp_path):
    pushing_policy().save(tmp_path)
    with pytest.raises(PolicyError) as caught:
        export_policy(load_scenario("push_t"), tmp_path, tmp_path / "out")
    assert str(caught.value) == (
        f"{tmp_path}: got a policy for scenario push_cube; expected one for push_t. "
        "Name the scenario that it was trained for."
    )


def test_a_graph_that_computes_something_else_is_not_exported(tmp_path, monkeypatch):
    random_policy().save(tmp_path / "policy")
    monkeypatch.setattr(module, "build_onnx", lambda _: build_onnx(random_policy(seed=1)))
    with pytest.raises(PolicyError, match="expected less than 1e-05"):
        export_policy(load_scenario("push_cube"), tmp_path / "policy", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_observations_of_another_width(tmp_path):
    pushing_policy().save(tmp_path / "policy")
    export_policy(load_scenario("push_cube"), tmp_path / "policy", tmp_path / "out")
    with pytest.raises(PolicyError) as caught:
        OnnxPolicy.load(tmp_path / "out").act(np.zeros((1, 20)))
    assert str(caught.value) == (
        "exported policy for push_cube: got observations of width 20; expected 37 values (joints, fingertip, target, "
        "block, target - block, block - fingertip, fingertip on the way, distance, pushing point from fingertip, "
        "fingertip's distance, base of the arm, fingertip velocity, block velocity, setpoint from fingertip, last "
        "action from fingertip). Build observations as the contract's terms say."
    )


def test_a_damaged_policy_is_said(tmp_path):
    with pytest.raises(PolicyError, match="expected policy.npz and policy.json of one policy"):
        export_policy(load_scenario("push_cube"), tmp_path, tmp_path / "out")


@pytest.mark.parametrize("algorithm", list(SETTINGS))
def test_what_ppo_and_sac_learnt_is_what_is_exported(tmp_path, algorithm):
    """A training of a second each; a thousand observations of its own."""
    train_tiny(SETTINGS[algorithm]).save(tmp_path)
    contract = export_policy(load_scenario("push_cube"), tmp_path, tmp_path / "out")
    assert contract.parity["max_error"] < 1e-5
    exported, seen = OnnxPolicy.load(tmp_path / "out"), anywhere("push_cube")
    assert np.abs(exported.act(seen) - Policy.load(tmp_path).act(seen)).max() < 1e-5


def test_on_the_stand_in_the_export_does_what_the_policy_does(tmp_path):
    pushing_policy().save(tmp_path)
    export_policy(load_scenario("push_cube"), tmp_path, tmp_path / "out")
    plan = CollectionPlan("session-001", episodes=12, seed=1)
    stored, exported = (
        StandIn(load_scenario("push_cube"), 1).collect(policy, plan, ignore)
        for policy in (Policy.load(tmp_path), OnnxPolicy.load(tmp_path / "out"))
    )
    for one, other in zip(stored.episodes, exported.episodes, strict=True):
        assert np.linalg.norm(np.ptp(one["block_position"], axis=0)) > 0.01, "it pushes"
        apart_m = np.linalg.norm(one["block_position"] - other["block_position"], axis=1)
        assert np.median(apart_m) < 1e-3
