import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rsr.realities import SafetyEnvelope
from rsr.scenarios.push_cube import kinematics, task

DT_S = 0.05
ENVELOPE = SafetyEnvelope()
MIDDLE = kinematics.joints_for(np.array([[0.36, 0.0, task.TIP_HEIGHT_M]]))


def test_what_is_allowed_passes_untouched():
    wanted = MIDDLE + 0.02
    sent, share = ENVELOPE.limit(wanted, MIDDLE, DT_S)
    np.testing.assert_array_equal(sent, wanted)
    np.testing.assert_array_equal(share, 0.0)


def test_no_command_is_no_cut():
    sent, share = ENVELOPE.limit(MIDDLE, MIDDLE, DT_S)
    np.testing.assert_array_equal(sent, MIDDLE)
    np.testing.assert_array_equal(share, 0.0)


def test_speed_is_cut_and_the_share_says_by_how_much():
    wanted = MIDDLE.copy()
    wanted[0, 0] += 0.4
    sent, share = ENVELOPE.limit(wanted, MIDDLE, DT_S)
    np.testing.assert_allclose(sent[0, 0] - MIDDLE[0, 0], ENVELOPE.max_speed_rad_s * DT_S)
    np.testing.assert_array_equal(sent[0, 1:], MIDDLE[0, 1:])
    np.testing.assert_allclose(share, 0.75)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_holds_the_arm(bad):
    wanted = np.repeat(MIDDLE, 2, axis=0) + 0.01
    wanted[1, 3] = bad
    sent, share = ENVELOPE.limit(wanted, np.repeat(MIDDLE, 2, axis=0), DT_S)
    np.testing.assert_array_equal(sent[0], wanted[0])
    np.testing.assert_array_equal(sent[1], MIDDLE[0])
    np.testing.assert_array_equal(share, [0.0, 1.0])


@pytest.mark.parametrize("to", [(0.58, 0.0, 0.05), (0.36, 0.37, 0.05), (0.36, 0.0, -0.03), (0.05, 0.0, 0.1)])
def test_out_of_the_workspace_holds_the_arm(to):
    pitch_rad = 1.2  # the tool leans outward, else the arm could not reach so far
    outside = kinematics.joints_for(np.array([to]), pitch_rad)
    np.testing.assert_allclose(kinematics.fingertip(outside), [to], atol=1e-9)
    start = kinematics.joints_for(np.array([np.clip(to, *_box(0.001))]), pitch_rad)
    sent, share = SafetyEnvelope(max_speed_rad_s=100.0).limit(outside, start, DT_S)
    np.testing.assert_array_equal(sent, start)
    np.testing.assert_array_equal(share, 1.0)


def _box(inside_m: float) -> tuple[np.ndarray, np.ndarray]:
    return np.add(ENVELOPE.workspace_lower_m, inside_m), np.subtract(ENVELOPE.workspace_upper_m, inside_m)


def test_joint_limits():
    wide = SafetyEnvelope(max_speed_rad_s=100.0, workspace_lower_m=(-9, -9, -9), workspace_upper_m=(9, 9, 9))
    sent, share = wide.limit(np.full((1, 6), 4.0), MIDDLE, DT_S)
    np.testing.assert_array_equal(sent[0], kinematics.JOINT_UPPER_RAD)
    assert 0 < share[0] < 1


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.0, 5.0))
def test_nothing_sent_breaks_a_limit(seed, reach_rad):
    rng = np.random.default_rng(seed)
    starts = task.sample_starts(rng, 4).qpos[:, 7:]
    wanted = starts + rng.normal(0, reach_rad, starts.shape)
    sent, share = ENVELOPE.limit(wanted, starts, DT_S)
    assert (np.abs(sent - starts) <= ENVELOPE.max_speed_rad_s * DT_S + 1e-12).all()
    assert ((sent >= kinematics.JOINT_LOWER_RAD) & (sent <= kinematics.JOINT_UPPER_RAD)).all()
    tip = kinematics.fingertip(sent)
    assert ((tip >= ENVELOPE.workspace_lower_m) & (tip <= ENVELOPE.workspace_upper_m)).all()
    assert ((share >= 0) & (share <= 1 + 1e-12)).all()
    np.testing.assert_array_equal(share == 0, (sent == wanted).all(axis=1))
