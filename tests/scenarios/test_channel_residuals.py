import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from rsr.scenarios import difference, residuals, rms
from tests.push_samples import push_cube

ANGLES = st.floats(-3.1, 3.1)


def quaternion(axis: np.ndarray, angle_rad: float) -> np.ndarray:
    return np.concatenate([[np.cos(angle_rad / 2)], np.sin(angle_rad / 2) * axis / np.linalg.norm(axis)])


def product(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    w = first[0] * second[0] - first[1:] @ second[1:]
    return np.concatenate([[w], first[0] * second[1:] + second[0] * first[1:] + np.cross(first[1:], second[1:])])


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 100), ANGLES)
def test_rotation_between_orientations_is_a_known_rotation_vector(seed, angle_rad):
    rng = np.random.default_rng(seed)
    axis, start = rng.normal(size=3), quaternion(rng.normal(size=3), rng.uniform(-3, 3))
    turned = product(start, quaternion(axis, angle_rad))
    expected = angle_rad * axis / np.linalg.norm(axis)
    np.testing.assert_allclose(difference("quaternion", start, turned), expected, atol=1e-9)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 100))
def test_quaternions_of_either_sign_are_one_rotation(seed):
    first, second = np.random.default_rng(seed).normal(size=(2, 5, 4))
    expected = difference("quaternion", first, second)
    np.testing.assert_allclose(difference("quaternion", -first, second), expected, atol=1e-12)
    np.testing.assert_allclose(difference("quaternion", first, -second), expected, atol=1e-12)


def test_tiny_and_no_rotations():
    one = np.array([1.0, 0, 0, 0])
    np.testing.assert_array_equal(difference("quaternion", one, one), np.zeros(3))
    tiny = quaternion(np.array([0.0, 0, 1]), 1e-13)
    np.testing.assert_allclose(difference("quaternion", one, tiny), [0, 0, 1e-13], rtol=1e-6)


def test_angles_take_the_short_way():
    np.testing.assert_allclose(difference("angle", np.array([3.1, -3.1, 0.2]), np.array([-3.1, 3.1, 0.5])),
                               [2 * np.pi - 6.2, 6.2 - 2 * np.pi, 0.3])  # fmt: skip


def test_residuals_of_a_state_moved_by_known_amounts():
    scenario = push_cube()
    real = np.zeros((2, scenario.state_size))
    real[:, 3] = 1.0
    simulated = real.copy()
    simulated[:, :3] += [0.01, 0.0, -0.02]
    simulated[:, 3:7] = quaternion(np.array([0.0, 0, 1]), 0.3)
    simulated[:, 7] += 2 * np.pi + 0.1
    found = residuals(scenario, scenario.measure(real), scenario.measure(simulated))
    np.testing.assert_allclose(found["block_position"], [[0.01, 0.0, -0.02]] * 2)
    np.testing.assert_allclose(found["block_orientation"], [[0, 0, 0.3]] * 2, atol=1e-12)
    np.testing.assert_allclose(found["joint_position"], [[0.1, 0, 0, 0, 0, 0]] * 2, atol=1e-12)


def test_rms_is_of_the_length():
    assert rms(np.array([[3.0, 4.0], [0.0, 0.0]])) == pytest.approx(np.sqrt(12.5))
