"""What the arm may never do, whoever commands it."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from rsr.scenarios.built_in.pushing import arm, kinematics
from rsr.scenarios.built_in.pushing.limits import ArmLimits

DT_S = 0.05
LIMITS = ArmLimits()
CENTRE = np.array([[*arm.CENTRE_M, 0.025]])
MIDDLE = {"block_position": CENTRE}


def joints_at(x: float, y: float, z: float = 0.025, pitch_rad: float = np.pi / 2) -> np.ndarray:
    return kinematics.joints_for(np.array([[x, y, z]]), pitch_rad)


def _off(*distances_m: float) -> dict[str, np.ndarray]:
    """Blocks at these distances from the middle."""
    return {"block_position": np.concatenate([np.add(CENTRE, [0.0, off_m, 0.0]) for off_m in distances_m])}


def speed_m_s(sent: np.ndarray, previous: np.ndarray) -> np.ndarray:
    return np.linalg.norm(kinematics.fingertip(sent) - kinematics.fingertip(previous), axis=1) / DT_S


def test_what_is_within_the_limits_passes_untouched():
    previous, wanted = joints_at(0.36, 0.0), joints_at(0.36, 0.02)
    np.testing.assert_array_equal(LIMITS.allowed(wanted, previous, MIDDLE, DT_S), wanted)


def test_a_command_that_is_too_fast_is_shortened_in_its_direction():
    previous, wanted = joints_at(0.36, 0.0), joints_at(0.36, 0.10)
    sent = LIMITS.allowed(wanted, previous, MIDDLE, DT_S)
    assert speed_m_s(wanted, previous) == pytest.approx(2.0)
    assert speed_m_s(sent, previous) == pytest.approx(LIMITS.tip_speed_m_s, rel=0.02)
    share = np.linalg.norm(sent - previous) / np.linalg.norm(wanted - previous)
    np.testing.assert_allclose(sent - previous, share * (wanted - previous), atol=1e-12)


@pytest.mark.parametrize(
    ("beyond", "pitch_rad"),
    [((0.60, 0.0, 0.1), 0.5), ((0.36, 0.40, 0.1), 0.5), ((0.36, 0.0, 0.0), 1.5), ((0.40, 0.0, 0.45), 0.0)],
)
def test_out_of_its_box_the_fingertip_does_not_go(beyond, pitch_rad):
    wanted = joints_at(*beyond, pitch_rad)
    np.testing.assert_allclose(kinematics.fingertip(wanted), [beyond], atol=1e-9)
    previous = joints_at(*np.clip(beyond, LIMITS.tip_lower_m, LIMITS.tip_upper_m), pitch_rad)
    np.testing.assert_array_equal(LIMITS.allowed(wanted, previous, MIDDLE, DT_S), previous)


def test_the_arm_slows_down_as_the_block_goes_and_stands_before_it_is_lost():
    previous, wanted = joints_at(0.36, 0.0), joints_at(0.36, 0.10)
    speeds = []
    for off_m in (0.0, 0.14, 0.18, 0.22, 0.26, 0.50):
        sent = LIMITS.allowed(wanted, previous, _off(off_m), DT_S)
        speeds.append(float(speed_m_s(sent, previous)[0]))
    assert speeds[0] == speeds[1] > speeds[2] > speeds[3] > 0
    assert speeds[4:] == [0.0, 0.0]
    np.testing.assert_array_equal(LIMITS.lost(_off(0.24, 0.26)), [False, True])


def test_blocks_that_nobody_sees_slow_nothing_down():
    previous, wanted = joints_at(0.36, 0.0), joints_at(0.36, 0.02)
    np.testing.assert_array_equal(LIMITS.slowed(wanted, previous, DT_S), wanted)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), stretch=st.floats(0.1, 20.0))
def test_nothing_allowed_breaks_a_limit(seed, stretch):
    rng = np.random.default_rng(seed)
    tip = rng.uniform(LIMITS.tip_lower_m, LIMITS.tip_upper_m, (32, 3))
    previous = kinematics.joints_for(tip)
    reachable = LIMITS.inside(previous)
    wanted = previous + stretch * arm.STEP_RAD * rng.uniform(-1, 1, previous.shape)
    block = {"block_position": CENTRE + rng.uniform(-0.3, 0.3, (32, 3))}
    sent = LIMITS.allowed(wanted, previous, block, DT_S)[reachable]
    assert (speed_m_s(sent, previous[reachable]) <= LIMITS.tip_speed_m_s + 1e-9).all()
    assert LIMITS.inside(sent).all()
    far = LIMITS.lost(block)
    np.testing.assert_array_equal(sent[far[reachable]], previous[reachable & far])
