"""One iteration on `push_t`, every step small: the stages know the block by the scenario's task alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_steps import STEPS

from rsr.config import InfoGapConfig, LoopConfig, RealityConfig, RetrainConfig, StartConfig, TuneConfig, dump_config
from rsr.files import read_arrays, read_json, write_json
from rsr.policies import Policy
from rsr.progress import ignore
from rsr.scenarios import load_scenario, task_of
from rsr.sessions import check_session, read_session
from rsr.steps import run_step
from rsr.workspace import Workspace

ROLLOUT = 64 * 128
SMALL = LoopConfig(
    scenario="push_t",
    reality=RealityConfig(episodes=6),
    start=StartConfig(train_steps=ROLLOUT),
    tune=TuneConfig(method="sysid", fit_episodes=2),
    infogap=InfoGapConfig(transitions=200),
    retrain=RetrainConfig(train_steps=ROLLOUT, randomise="posterior"),
)


@pytest.fixture(scope="module")
def iterated(tmp_path_factory) -> Workspace:
    root: Path = tmp_path_factory.mktemp("push_t")
    write_json(root / "iterations.json", {"chain": {}})
    dump_config(SMALL, root / "params.yaml")
    workspace = Workspace(root)
    workspace.plan(0)
    run_step(workspace, "start", 0, ignore, STEPS)
    workspace.plan(1)
    for name in ("collect", *(step.name for step in STEPS.stages if step.foreach)):
        run_step(workspace, name, 1, ignore, STEPS)
    return workspace


def test_the_recording_holds_pose_and_target_pose(iterated):
    scenario, session = load_scenario("push_t"), read_session(iterated.session_dir(1))
    check_session(session, scenario.channels)
    task = task_of(scenario)
    for episode in session.episodes:
        assert task.block(episode.values).shape == task.target(episode.values).shape == (161, 7)
        np.testing.assert_array_equal(task.target(episode.values)[0], task.target(episode.values)[-1])


def test_the_metrics_tell_of_the_yaw(iterated):
    metrics = read_json(iterated.metrics_path(1))
    assert set(metrics["params"]) == set(load_scenario("push_t").space.names)
    for name in ("reality", "sim", "sim_retrained"):
        assert 0 < metrics[f"yaw_error_{name}"] < np.pi
    assert metrics["kl_yaw"] >= 0
    assert metrics["orientation_gap_before"] > 0
    assert metrics["orientation_gap_after"] > 0


def test_the_rollouts_are_poses_and_infogap_sees_the_turn(iterated):
    rollouts = read_arrays(iterated.evaluation_dir(1) / "rollouts.npz")
    assert rollouts["real_block"].shape == rollouts["retrained_block"].shape == (6, 161, 7)
    assert rollouts["target"].shape == (6, 7)
    reference = read_arrays(iterated.infogap_dir(1) / "reference.npz")
    assert 6 + 6 + 6 in {array.shape[-1] for array in reference.values() if array.ndim}, "state, action, change"


def test_the_page_shows_the_missing_yaw(iterated):
    page = iterated.report_path(1).read_text().replace("\N{NO-BREAK SPACE}", " ")
    assert "Missing yaw over time" in page
    assert "3 cm and 15 degrees" in page


def test_the_policy_is_for_this_scenario_and_was_retrained(iterated):
    first, second = (Policy.load(iterated.policy_dir(number)) for number in (0, 1))
    assert first.scenario == second.scenario == "push_t"
    assert not np.array_equal(first.layers[0][0], second.layers[0][0])
