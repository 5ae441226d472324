"""The cube: the paper's reward and observation, what the network sees, and what a command may ask for."""

import numpy as np
import pytest

from rsr.environments.measuring import at_rest
from rsr.scenarios import Channels, Starts, load_scenario
from rsr.scenarios.built_in.push_cube import task
from rsr.scenarios.built_in.pushing import arm, kinematics

TIP, BLOCK = np.array([0.3, 0.0, 0.025]), np.array([0.3, 0.04, 0.025])
FAR = np.add(BLOCK, [0.1, 0.0, 0.0])


def channels(block: np.ndarray, target: np.ndarray, tip: np.ndarray = TIP) -> Channels:
    """Of an arm at rest; one episode, or several where targets are [B, 3]."""
    goal = np.atleast_2d(target)
    start = np.concatenate([block, [1.0, 0.0, 0.0, 0.0], kinematics.joints_for(tip)])
    return at_rest(
        load_scenario("push_cube"), task.TASK, Starts(np.tile(start, (len(goal), 1)), {"target_position": goal})
    )


def test_reward_is_appendix_b_far_from_the_target():
    assert task.reward(channels(BLOCK, FAR))[0] == pytest.approx(-6.0 * 0.1 - 3.0 * 0.04, abs=1e-6)
    there = task.reward(channels(BLOCK, BLOCK))[0]
    assert there == pytest.approx(task.ARRIVAL_WEIGHT - 3.0 * 0.04, abs=1e-6)
    assert task.reward(channels(BLOCK, np.stack([FAR] * 3))).shape == (3,)


def test_potential_grows_as_the_cube_comes_nearer_and_the_finger_gets_behind_it():
    gaps = BLOCK + np.array([[0.1, 0, 0], [0.05, 0, 0], [0, 0, 0]])
    standing = task.potential(channels(BLOCK, gaps))
    assert (np.diff(standing) > 0).all()
    bearings = np.deg2rad([0, 45, 90, 135, 180])  # from between cube and target to behind the cube
    tips = [BLOCK + 0.06 * np.array([np.cos(b), np.sin(b), 0]) for b in bearings]
    going = [task.potential(channels(BLOCK, FAR, tip))[0] for tip in tips]
    assert (np.diff(going) > 0).all()


def test_observation_begins_with_the_paper_s_21_numbers():
    joints = kinematics.joints_for(TIP)
    seen = task.TASK.observe(channels(BLOCK, FAR))[0]
    assert seen.dtype == np.float32
    expected = np.concatenate([joints, TIP, FAR, BLOCK, FAR - BLOCK, BLOCK - TIP])
    np.testing.assert_allclose(seen[:21], expected, atol=1e-6)
    assert len(seen) == task.TASK.observation_size
    assert task.TASK.unseen == 21


def test_the_network_sees_the_same_whichever_way_the_target_lies():
    """Target and finger turn about a cube that stays: only the arm's base lies elsewhere, seen from the cube."""
    views = []
    for angle in (0.0, 0.7, 2.9):
        way = np.array([np.cos(angle), np.sin(angle), 0.0])
        views.append(task.TASK.observe(channels(BLOCK, BLOCK + 0.1 * way, BLOCK - 0.08 * way))[0])
    same = task.TASK.columns("fingertip on the way", "distance", "pushing point from fingertip", "fingertip's distance")
    for view in views:
        np.testing.assert_allclose(view[same], [-0.08, 0.0, 0.1, 0.037, 0.0, 0.08], atol=1e-6)


def test_the_head_moves_the_finger_along_the_way():
    """The network's first number: towards the target, wherever that is."""
    for angle in (0.0, 1.2, -2.0):
        way = np.array([np.cos(angle), np.sin(angle), 0.0])
        seen = task.TASK.observe(channels(BLOCK, BLOCK + 0.1 * way))
        asked = task.TASK.act(seen, np.array([[0.5, 0.0]]))
        moved = kinematics.fingertip(seen[:, :6] + arm.STEP_RAD * asked)[0] - TIP
        np.testing.assert_allclose(moved[:2] / np.linalg.norm(moved[:2]), way[:2], atol=0.03)


def test_success_is_three_centimetres_in_the_plane():
    targets = BLOCK + np.array([[0.029, 0.0, 0.5], [0.0, 0.031, 0.0]])
    np.testing.assert_array_equal(task.succeeded(channels(BLOCK, targets)), [True, False])


def test_setpoint_moves_by_the_displacement():
    joints = np.zeros((1, 6)) + kinematics.joints_for(TIP)
    moved = arm.ACTION.command(np.full((1, 6), 0.5), joints, {"joint_position": joints})
    np.testing.assert_allclose(moved - joints, 0.5 * arm.STEP_RAD)


def test_setpoint_clips_action_lead_and_limits():
    joints = kinematics.joints_for(TIP)[None]
    measured = {"joint_position": joints}
    wild = arm.ACTION.command(np.full((1, 6), 7.0), joints, measured)
    np.testing.assert_allclose(wild - joints, arm.STEP_RAD)
    ahead = arm.ACTION.command(np.ones((1, 6)), joints + 1.0, measured)
    np.testing.assert_allclose(ahead - joints, arm.LEAD_RAD)
    upper = kinematics.JOINT_UPPER_RAD[None]
    np.testing.assert_array_equal(arm.ACTION.command(np.ones((1, 6)), upper, {"joint_position": upper}), upper)
