"""One iteration on `push_t`, every step small: the stages know the block by the scenario's task alone."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_steps import STEPS

from rsr.common.files import read_arrays, read_json, write_json
from rsr.common.progress import ignore
from rsr.config import InfoGapConfig, LoopConfig, RealityConfig, RetrainConfig, StartConfig, TuneConfig, dump_config
from rsr.pipelines import run_step
from rsr.policies import Policy
from rsr.scenarios import load_scenario, task_of
from rsr.sessions import check_session, read_session, write_session
from rsr.workspace import Workspace

pytestmark = pytest.mark.slow
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
    assert task.goal == ("target_position", "target_orientation")
    for episode in session.episodes:
        assert episode["block_position"].shape == (161, 3)
        assert episode["block_orientation"].shape == (161, 4)
        for name, width in zip(task.goal, (3, 4), strict=True):
            np.testing.assert_array_equal(episode[name], np.tile(episode[name][0], (161, 1)))
            assert episode[name].shape[1] == width


def test_the_metrics_tell_of_the_yaw(iterated):
    metrics = read_json(iterated.metrics_path(1))
    assert set(metrics["params"]) == set(load_scenario("push_t").space.names)
    for name in ("reality", "sim", "sim_retrained"):
        assert 0 < metrics[f"yaw_error_{name}"] < np.pi
    assert metrics["kl_yaw"] >= 0
    assert metrics["channel_gaps"]["block_orientation"]["before"] > 0
    assert metrics["channel_gaps"]["block_orientation"]["after"] > 0
    assert metrics["units"] == {"gap": "m", "x": "m", "y": "m", "distance": "m", "yaw": "rad"}


def test_the_rollouts_hold_every_figure_and_infogap_sees_the_turn(iterated):
    rollouts = read_arrays(iterated.evaluation_dir(1) / "rollouts.npz")
    for run in ("real", "simulated", "tuned", "retrained"):
        for figure in ("x", "y", "distance", "yaw"):
            assert rollouts[f"{run}.figure.{figure}"].shape == (6, 161)
        assert rollouts[f"{run}.plane"].shape == (6, 161, 2)
        assert rollouts[f"{run}.success"].shape == (6,)
    reference = read_arrays(iterated.infogap_dir(1) / "reference.npz")
    assert 6 + 6 + 6 in {array.shape[-1] for array in reference.values() if array.ndim}, "state, action, change"


def test_the_page_shows_the_missing_yaw(iterated):
    page = iterated.report_path(1).read_text().replace("\N{NO-BREAK SPACE}", " ")
    assert "(distance, yaw): median" in page
    assert "KL of yaw" in page
    assert "distance within 30 mm, yaw within 15 degrees at the end" in page


def test_the_policy_is_for_this_scenario_and_was_retrained(iterated):
    first, second = (Policy.load(iterated.policy_dir(number)) for number in (0, 1))
    assert first.scenario == second.scenario == "push_t"
    assert not np.array_equal(first.layers[0][0], second.layers[0][0])


def test_episodes_that_gaps_cut_short_are_measured_all_the_same(iterated, tmp_path):
    """Ingest divides an episode at a gap; divergence, success and InfoGap take pieces of unequal lengths."""
    shutil.copytree(iterated.root, tmp_path, dirs_exist_ok=True)
    workspace = Workspace(tmp_path)
    session = read_session(workspace.session_dir(1))
    cut = {0: 40, 1: 90, 3: 161, 4: 25}
    episodes = tuple(
        replace(
            each,
            time_s=each.time_s[: cut.get(each.index, 120)],
            values={name: values[: cut.get(each.index, 120)] for name, values in each.values.items()},
        )
        for each in session.episodes
    )
    shutil.rmtree(workspace.session_dir(1))
    write_session(workspace.data_dir, replace(session, episodes=episodes))
    for name in ("infogap", "evaluate"):
        run_step(workspace, name, 1, ignore, STEPS)
    rollouts, metrics = read_arrays(workspace.evaluation_dir(1) / "rollouts.npz"), read_json(workspace.metrics_path(1))
    for run in ("real", "simulated", "tuned", "retrained"):
        for figure in ("x", "y", "distance", "yaw"):
            path = rollouts[f"{run}.figure.{figure}"]
            assert path.shape == (6, 161)
            assert (path[0, 39:] == path[0, 39]).all(), "it ends where the recording ends"
    assert all(np.isfinite(metrics[name]) for name in ("kl_x", "kl_y", "kl_yaw", "success_sim", "infogap_kl"))
