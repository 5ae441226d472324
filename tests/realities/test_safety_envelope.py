from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from rsr.realities import SafetyEnvelope
from rsr.realities.envelope import Guard, Limited, safety_notes
from rsr.scenarios import load_scenario, task_of
from rsr.scenarios.built_in.pushing import arm, kinematics
from rsr.scenarios.built_in.pushing.limits import ArmLimits

DT_S = 0.05
ANYWHERE = ArmLimits(tip_speed_m_s=100.0, tip_lower_m=(-9, -9, -9), tip_upper_m=(9, 9, 9))
UNHURRIED = replace(ANYWHERE, joint_acceleration_rad_s2=8.0)
ENVELOPE = SafetyEnvelope(ArmLimits())
MIDDLE = kinematics.joints_for(np.array([[0.36, 0.0, arm.TIP_HEIGHT_M]]))


def limited(wanted: np.ndarray, previous: np.ndarray = MIDDLE, envelope: SafetyEnvelope = ENVELOPE, **more) -> Limited:
    """What may be sent to arms that stand still."""
    return envelope.limit(wanted, previous, more.pop("before", previous), DT_S, **more)


def reasons(found: Limited) -> set[str]:
    return set(found.reasons)


def test_what_is_allowed_passes_untouched():
    found = limited(MIDDLE + 0.01)
    np.testing.assert_array_equal(found.sent, MIDDLE + 0.01)
    np.testing.assert_array_equal(found.share, 0.0)
    assert reasons(found) == set()


def test_no_command_is_no_cut():
    found = limited(MIDDLE)
    np.testing.assert_array_equal(found.sent, MIDDLE)
    np.testing.assert_array_equal(found.share, 0.0)


def test_the_largest_displacement_of_a_policy_may_begin_at_once():
    envelope = SafetyEnvelope(ANYWHERE)
    wanted = MIDDLE + arm.STEP_RAD * np.array([1, -1, 1, -1, 1, -1])
    np.testing.assert_array_equal(limited(wanted, envelope=envelope).sent, wanted)


def test_speed_is_cut_and_the_share_says_by_how_much():
    envelope = SafetyEnvelope(replace(ANYWHERE, joint_acceleration_rad_s2=1e6))
    wanted = MIDDLE.copy()
    wanted[0, 0] += 0.4
    found = limited(wanted, envelope=envelope)
    np.testing.assert_allclose(found.sent[0, 0] - MIDDLE[0, 0], ANYWHERE.joint_speed_rad_s * DT_S)
    np.testing.assert_array_equal(found.sent[0, 1:], MIDDLE[0, 1:])
    np.testing.assert_allclose(found.share, 0.75)
    assert reasons(found) == {"joint_speed"}


def test_speed_may_grow_only_so_fast():
    envelope = SafetyEnvelope(UNHURRIED)
    found = limited(MIDDLE + 0.08, before=MIDDLE - 0.01, envelope=envelope)
    np.testing.assert_allclose(found.sent, MIDDLE + 0.01 + 8.0 * DT_S**2)
    assert reasons(found) == {"joint_acceleration"}


@pytest.mark.parametrize("change", [0.0, 0.02, -0.02])
def test_stopping_and_turning_back_are_never_held_back(change):
    envelope = SafetyEnvelope(UNHURRIED)
    found = limited(MIDDLE + change, before=MIDDLE - 0.1, envelope=envelope)
    np.testing.assert_array_equal(found.sent, MIDDLE + change)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_holds_the_arm(bad):
    wanted = np.repeat(MIDDLE, 2, axis=0) + 0.01
    wanted[1, 3] = bad
    found = limited(wanted, np.repeat(MIDDLE, 2, axis=0))
    np.testing.assert_array_equal(found.sent[0], wanted[0])
    np.testing.assert_array_equal(found.sent[1], MIDDLE[0])
    np.testing.assert_array_equal(found.share, [0.0, 1.0])
    np.testing.assert_array_equal(found.reasons["not_a_number"], [False, True])


@pytest.mark.parametrize("reason", ["stale_sensor", "no_measurement", "late"])
def test_what_cannot_be_acted_on_holds_the_arm(reason):
    found = limited(MIDDLE + 0.01, held={reason: np.array([True])})
    np.testing.assert_array_equal(found.sent, MIDDLE)
    np.testing.assert_array_equal(found.share, 1.0)
    assert reasons(found) == {reason}


@pytest.mark.parametrize("to", [(0.58, 0.0, 0.05), (0.36, 0.37, 0.05), (0.36, 0.0, -0.03), (0.05, 0.0, 0.1)])
def test_out_of_the_workspace_holds_the_arm(to):
    pitch_rad = 1.2  # the tool leans outward, else the arm could not reach so far
    outside = kinematics.joints_for(np.array([to]), pitch_rad)
    np.testing.assert_allclose(kinematics.fingertip(outside), [to], atol=1e-9)
    lower, upper = np.add(ArmLimits().tip_lower_m, 0.001), np.subtract(ArmLimits().tip_upper_m, 0.001)
    start = kinematics.joints_for(np.array([np.clip(to, lower, upper)]), pitch_rad)
    fast = SafetyEnvelope(ArmLimits(tip_speed_m_s=100.0, joint_speed_rad_s=100.0, joint_acceleration_rad_s2=1e6))
    found = limited(outside, start, fast)
    np.testing.assert_array_equal(found.sent, start)
    np.testing.assert_array_equal(found.share, 1.0)
    assert "workspace" in reasons(found)


def test_joint_limits():
    found = limited(
        np.full((1, 6), 4.0),
        envelope=SafetyEnvelope(replace(ANYWHERE, joint_speed_rad_s=1e3, joint_acceleration_rad_s2=1e6)),
    )
    np.testing.assert_array_equal(found.sent[0], kinematics.JOINT_UPPER_RAD)
    assert 0 < found.share[0] < 1
    assert reasons(found) == {"joint_limit"}


def test_the_fingertip_is_slowed():
    wanted = MIDDLE + np.array([0.08, 0, 0, 0, 0, 0])
    slow = SafetyEnvelope(ArmLimits(tip_speed_m_s=0.2))
    found = limited(wanted, envelope=slow)
    moved_m = np.linalg.norm(kinematics.fingertip(found.sent) - kinematics.fingertip(MIDDLE))
    assert 0.19 * DT_S < moved_m <= 0.2 * DT_S
    assert reasons(found) == {"tip_speed"}


def test_the_arm_stands_still_once_the_block_is_too_far():
    found = limited(MIDDLE + 0.01, channels={"block_position": np.array([[0.36, 0.3, 0.025]])})
    np.testing.assert_array_equal(found.sent, MIDDLE)
    assert "block_far" in reasons(found)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.0, 5.0), st.floats(0.0, 0.1))
def test_nothing_sent_breaks_a_limit(seed, reach_rad, speed_rad):
    rng = np.random.default_rng(seed)
    starts = task_of(load_scenario("push_cube")).reset(rng, 4).qpos[:, 7:]
    before = starts - rng.uniform(-speed_rad, speed_rad, starts.shape)
    wanted = starts + rng.normal(0, reach_rad, starts.shape)
    found = limited(wanted, starts, before=before)
    change, earlier = found.sent - starts, starts - before
    assert (np.abs(change) <= ArmLimits().joint_speed_rad_s * DT_S + 1e-12).all()
    growth = ArmLimits().joint_acceleration_rad_s2 * DT_S**2
    assert (change <= np.maximum(earlier, 0) + growth + 1e-12).all()
    assert (change >= np.minimum(earlier, 0) - growth - 1e-12).all()
    assert ((found.sent >= kinematics.JOINT_LOWER_RAD) & (found.sent <= kinematics.JOINT_UPPER_RAD)).all()
    tip = kinematics.fingertip(found.sent)
    assert ((tip >= ArmLimits().tip_lower_m) & (tip <= ArmLimits().tip_upper_m)).all()
    moved_m = np.linalg.norm(tip - kinematics.fingertip(starts), axis=1)
    assert (moved_m <= ArmLimits().tip_speed_m_s * DT_S + 1e-12).all()
    assert ((found.share >= 0) & (found.share <= 1 + 1e-12)).all()
    untouched = (found.sent == wanted).all(axis=1)
    np.testing.assert_array_equal(found.share == 0, untouched)
    told = np.any(list(found.reasons.values()) or [np.zeros(4, bool)], axis=0)
    assert (told | untouched).all(), "whatever is cut has a reason"
    assert reasons(found) <= set(ENVELOPE.words)


def test_a_guard_remembers_what_was_sent_and_tells_why_less_was():
    envelope = SafetyEnvelope(UNHURRIED)
    guard = Guard(envelope, np.repeat(MIDDLE, 2, axis=0), DT_S)
    for row in range(6):
        wanted = guard.previous + np.array([[0.01], [0.08]])
        if row == 4:
            wanted[0] = np.nan
        guard.limit(wanted)
    assert guard.tags(0) == {"cut_not_a_number": "4"}
    assert guard.tags(1) == {"cut_joint_acceleration": "0-2"}, "after 0.02, 0.04, 0.06 rad, 0.08 rad is no jump"
    assert safety_notes([guard.tags(0), guard.tags(1), {}]) == (
        "Of 3 episodes the safety envelope cut commands for: joint_acceleration in 1, not_a_number in 1."
    )
    assert safety_notes([{}, {"throw": "3"}]) == ""


def test_a_guard_believes_the_robot():
    guard = Guard(SafetyEnvelope(ANYWHERE), MIDDLE, DT_S)
    guard.limit(MIDDLE + 0.02)
    guard.correct(MIDDLE + 0.02 + 1e-9)
    assert guard.tags(0) == {}
    guard.limit(MIDDLE + 0.03)
    guard.correct(MIDDLE + 0.01)
    assert guard.tags(0) == {"cut_robot": "1"}
    np.testing.assert_array_equal(guard.previous, MIDDLE + 0.01)
