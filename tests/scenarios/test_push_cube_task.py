import numpy as np
import pytest

from rsr.scenarios.push_cube import task
from rsr.scenarios.pushing import arm, kinematics

TIP, BLOCK, TARGET = np.array([0.3, 0.0, 0.025]), np.array([0.3, 0.04, 0.025]), np.array([0.3, 0.04, 0.025])


def test_reward_is_appendix_b():
    far = np.add(BLOCK, [0.1, 0.0, 0.0])
    assert task.reward(TIP, BLOCK, TARGET) == pytest.approx(-3.0 * 0.04)
    assert task.reward(TIP, BLOCK, far) == pytest.approx(-6.0 * 0.1 - 3.0 * 0.04)
    assert task.reward(np.stack([TIP] * 3), np.stack([BLOCK] * 3), np.stack([far] * 3)).shape == (3,)


def test_observation_holds_the_paper_s_21_numbers():
    joints = kinematics.joints_for(TIP)
    seen = task.observation(joints, BLOCK, TARGET)
    assert seen.dtype == np.float32
    np.testing.assert_allclose(
        seen, np.concatenate([joints, TIP, TARGET, BLOCK, TARGET - BLOCK, BLOCK - TIP]), atol=1e-7
    )
    assert len(seen) == task.TASK.observation_size


def test_success_is_three_centimetres_in_the_plane():
    inside, outside = np.add(BLOCK, [0.029, 0.0, 0.5]), np.add(BLOCK, [0.0, 0.031, 0.0])
    np.testing.assert_array_equal(task.succeeded(np.stack([inside, outside]), np.stack([BLOCK, BLOCK])), [True, False])


def test_setpoint_moves_by_the_displacement():
    joints = np.zeros((1, 6)) + kinematics.joints_for(TIP)
    moved = arm.next_setpoint(joints, joints, np.full((1, 6), 0.5))
    np.testing.assert_allclose(moved - joints, 0.5 * arm.STEP_RAD)


def test_setpoint_clips_action_lead_and_limits():
    joints = kinematics.joints_for(TIP)[None]
    wild = arm.next_setpoint(joints, joints, np.full((1, 6), 7.0))
    np.testing.assert_allclose(wild - joints, arm.STEP_RAD)
    ahead = arm.next_setpoint(joints + 1.0, joints, np.ones((1, 6)))
    np.testing.assert_allclose(ahead - joints, arm.LEAD_RAD)
    upper = kinematics.JOINT_UPPER_RAD[None]
    np.testing.assert_array_equal(arm.next_setpoint(upper, upper, np.ones((1, 6))), upper)
