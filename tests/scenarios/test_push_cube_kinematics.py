import mujoco
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from rsr.scenarios.built_in.push_cube import task
from rsr.scenarios.built_in.pushing import arm, kinematics
from tests.push_samples import push_cube


def inside_limits(count: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.uniform(kinematics.JOINT_LOWER_RAD, kinematics.JOINT_UPPER_RAD, (count, 6))


def test_fingertip_is_where_mujoco_puts_the_site():
    model = push_cube().base_model
    data = mujoco.MjData(model)
    for joints in inside_limits(100):
        data.qpos[7:] = joints
        mujoco.mj_kinematics(model, data)
        np.testing.assert_allclose(kinematics.fingertip(joints), data.site("tip").xpos, atol=1e-12)


def test_fingertip_takes_any_leading_shape():
    joints = inside_limits(6)
    np.testing.assert_array_equal(
        kinematics.fingertip(joints.reshape(2, 3, 6)).reshape(6, 3), kinematics.fingertip(joints)
    )


def test_joint_limits_are_those_of_the_mjcf():
    model = push_cube().base_model
    np.testing.assert_array_equal(model.jnt_range[1:].T, [kinematics.JOINT_LOWER_RAD, kinematics.JOINT_UPPER_RAD])
    np.testing.assert_array_equal(model.actuator_ctrlrange, model.jnt_range[1:])


@settings(max_examples=50, deadline=None)
@given(st.floats(-1.5, 1.5), st.floats(0.17, 0.48), st.floats(0.01, 0.06), st.floats(1.42, 1.72))
def test_joints_for_is_the_inverse_of_fingertip(azimuth_rad, radius_m, height_m, pitch_rad):
    tip = np.array([radius_m * np.cos(azimuth_rad), radius_m * np.sin(azimuth_rad), height_m])
    joints = kinematics.joints_for(tip, pitch_rad)
    np.testing.assert_allclose(kinematics.fingertip(joints), tip, atol=1e-12)
    assert joints[1] + joints[2] + joints[4] == pytest.approx(pitch_rad)
    assert joints[2] >= 0, "elbow up"


def test_starts_are_reachable_and_apart():
    starts = task.sample_starts(np.random.default_rng(0), 3000)
    joints, block = starts.qpos[:, 7:], starts.qpos[:, :3]
    assert ((joints > kinematics.JOINT_LOWER_RAD) & (joints < kinematics.JOINT_UPPER_RAD)).all()
    tip = kinematics.fingertip(joints)
    np.testing.assert_allclose(tip[:, 2], arm.TIP_HEIGHT_M, atol=1e-12)
    assert np.linalg.norm(tip - block, axis=1).min() >= 0.07
    assert np.linalg.norm(starts.goal["target_position"] - block, axis=1).min() >= 0.06
    np.testing.assert_allclose(np.linalg.norm(starts.qpos[:, 3:7], axis=1), 1.0)
    # No start is at rest on the cube: the finger's ball and the cube's corner leave a gap.
    assert 0.012 + np.sqrt(2) * task.CUBE_HALF_M < 0.07


def test_equal_seeds_give_equal_starts():
    first, again, other = (task.sample_starts(np.random.default_rng(seed), 5) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.qpos, again.qpos)
    assert (first.qpos[:, :2] != other.qpos[:, :2]).all()
