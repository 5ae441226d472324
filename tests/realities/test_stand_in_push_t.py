"""The stand-in of the T: hidden numbers of its own, and the same effects beyond any parameter."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from rsr.common.progress import ignore
from rsr.common.rotations import rotated, yaw_error, yaw_of
from rsr.realities import CollectionPlan, StandIn
from rsr.realities._truth import draw_truth, hidden_model
from rsr.scenarios import load_scenario
from rsr.scenarios.built_in.push_t.task import TASK
from rsr.scenarios.built_in.pushing import tool_plane
from rsr.sessions import check_session

SCENARIO = load_scenario("push_t")


class Pusher:
    """Runs the finger into the block beside its middle."""

    def act(self, observation: np.ndarray) -> np.ndarray:
        yaw = yaw_of(observation[:, TASK.columns("block orientation")])
        towards = -rotated(observation[:, TASK.columns("fingertip")], yaw)
        return tool_plane.displacements(observation, 10 * towards + 0.1)


def test_every_seed_is_another_world_within_the_bounds():
    space = SCENARIO.space
    truths = [draw_truth(seed, SCENARIO) for seed in range(10)]
    vectors = np.array([space.vector(truth.parameters) for truth in truths])  # raises outside the bounds
    assert all(len(np.unique(column)) == len(truths) for column in vectors.T)
    assert set(truths[0].parameters) == set(space.names)


def test_both_boxes_slide_with_the_same_uneven_friction():
    truth = draw_truth(0, SCENARIO)
    hidden = hidden_model(SCENARIO, truth)
    for name in ("table_bar", "table_stem"):
        along, across = hidden.pair_friction[mujoco.mj_name2id(hidden, mujoco.mjtObj.mjOBJ_PAIR, name), :2]
        assert along / across == pytest.approx(truth.anisotropy**2)
        assert np.sqrt(along * across) == pytest.approx(truth.parameters["table_friction"])
    assert hidden.body("block").mass == pytest.approx(truth.parameters["block_mass"])


def test_a_recording_shows_the_block_pushed_and_turned():
    session = StandIn(SCENARIO, 0).collect(Pusher(), CollectionPlan("session-001", episodes=8, seed=1), ignore)
    check_session(session, SCENARIO.channels)
    assert session.card.scenario == "push_t"
    moved = [episode["block_position"][-1] - episode["block_position"][0] for episode in session.episodes]
    turns = [episode["block_orientation"] for episode in session.episodes]
    assert np.mean([np.linalg.norm(each[:2]) for each in moved]) > 0.02
    assert np.mean([abs(yaw_error(each[0], each[-1])) for each in turns]) > np.deg2rad(10)
