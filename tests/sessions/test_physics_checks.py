"""Physics tells units, frames and clocks apart: free fall, turning bodies, moving joints, joint limits."""

from dataclasses import replace

import numpy as np
import pytest
from shared_data import pendulum_runs, tosses

from rsr.sessions import Card, Channel, Episode, Session
from rsr.sessions.checks.free_fall import find_free_fall, judge_free_fall
from rsr.sessions.checks.motion import find_motion_clocks, find_responses, judge_motion
from rsr.sessions.checks.rotation import judge_rotation, rank_conventions, turning_speed
from rsr.sessions.checks.signals import judge_limits

STEP_S = 0.005
CHANNELS = (
    Channel("cube_position", ("x", "y", "z"), "m", "world"),
    Channel("cube_velocity", ("vx", "vy", "vz"), "m/s", "world"),
    Channel("cube_orientation", ("qw", "qx", "qy", "qz"), "1", "world"),
    Channel("turning", ("wx", "wy", "wz"), "rad/s", "body"),
    Channel("joint_position", ("one", "two"), "rad", "joint"),
    Channel("joint_velocity", ("one", "two"), "rad/s", "joint"),
    Channel("joint_setpoint", ("one", "two"), "rad", "joint", stamp="held_until_next"),
)
LIMITS = {"joint_position": np.array([[-2.0, 2.0], [-1.0, 1.5]])}


def _turned(time_s, speed):
    """Quaternions of a body that turns with a constant velocity in its own frame."""
    angle = np.linalg.norm(speed)
    half = angle * time_s[:, None] / 2
    return np.concatenate([np.cos(half), np.sin(half) * speed / angle], axis=1)


def _episode(index, rng):
    """A cube falls for 0.4 s, lands and lies; two joints swing."""
    time_s = np.arange(400) * STEP_S
    sideways, fall_s = rng.uniform(-1, 1, 2), np.minimum(time_s, 0.4)
    position = np.column_stack([sideways[0] * fall_s, sideways[1] * fall_s, 1.0 - 4.905 * fall_s**2])
    speed = rng.normal(size=3) * 3
    hertz, phase = rng.uniform(0.3, 2.0, (2, 3)), rng.uniform(0, 6, (2, 3))
    joints = lambda t: 0.3 * np.sin(2 * np.pi * hertz * t[:, None, None] + phase).sum(axis=-1)  # noqa: E731
    ahead, behind = joints(time_s + 1e-4), joints(time_s - 1e-4)
    moving = (time_s < 0.4)[:, None]
    values = {
        "cube_position": position + rng.normal(0, 1e-5, position.shape),
        "cube_velocity": np.column_stack([np.tile(sideways, (400, 1)), -9.81 * time_s]) * moving,
        "cube_orientation": _turned(time_s, speed),
        "turning": np.tile(speed, (400, 1)),
        "joint_position": joints(time_s) + rng.normal(0, 1e-4, (400, 2)),
        "joint_velocity": (ahead - behind) / 2e-4,
        "joint_setpoint": joints(time_s + 0.04),
    }
    return Episode(index, time_s, values)


@pytest.fixture(scope="module")
def session():
    rng = np.random.default_rng(0)
    card = Card("made", "none", "stand_in", simulated=True, control_dt_s=STEP_S)
    return Session(card, CHANNELS, tuple(_episode(index, rng) for index in range(6)))


def _changed(session, name, change):
    episodes = [
        replace(each, values={**each.values, name: change(np.asarray(each[name]))}) for each in session.episodes
    ]
    return replace(session, episodes=tuple(episodes))


def _motion_findings(session):
    return list(judge_motion(session, find_motion_clocks(session)))


def test_a_sound_recording_gives_no_findings(session):
    fall = find_free_fall(session)
    assert fall is not None
    assert fall.reading == pytest.approx(9.81, rel=2e-3)
    assert list(judge_free_fall(session, fall)) == []
    assert list(judge_rotation(session)) == []
    assert list(judge_limits(session, LIMITS)) == []
    joints = [each for each in find_motion_clocks(session) if each.reference.frame == "joint"]
    assert list(judge_motion(session, joints)) == []


@pytest.mark.parametrize(
    ("scale", "severity", "words"),
    [
        (0.98, "care", "Lengths are 2.0 % short (or the clock is 1.0 % fast)"),
        (1.03, "care", "Lengths are 3.0 % long (or the clock is 1.5 % slow)"),
        (1e3, "reject", "These positions are in mm: divide by 1000"),
        (100.0, "reject", "These positions are in cm"),
        (1 / 0.0524, "reject", "Lengths are wrong by a factor of 19.1"),
    ],
)
def test_free_fall_tells_the_unit_of_lengths(session, scale, severity, words):
    scaled = _changed(session, "cube_position", lambda values: scale * values)
    (finding,) = judge_free_fall(scaled, find_free_fall(scaled))
    assert (finding.severity, words in finding.next_step) == (severity, True)


def test_what_lies_or_swings_does_not_fall(session):
    lying = _changed(session, "cube_position", lambda values: 0 * values)
    assert find_free_fall(lying) is None
    carried = np.sin(np.arange(400) * 0.02)[:, None] * np.array([0.3, 0.2, 0.3])
    assert find_free_fall(_changed(session, "cube_position", lambda _: carried)) is None


def test_real_tosses_are_two_percent_short():
    session = tosses()
    fall = find_free_fall(session)
    assert fall is not None
    assert fall.falls > 250
    assert -0.025 < fall.length_error < -0.015
    (finding,) = judge_free_fall(session, fall)
    assert finding.severity == "care"
    assert "Lengths are 2." in finding.next_step
    assert "% short" in finding.next_step


def test_real_tosses_turn_as_they_say():
    session = replace(tosses(), episodes=tosses().episodes[:40])
    ranked = rank_conventions((e.time_s, e["cube_orientation"], e["angular_velocity"]) for e in session.episodes)
    assert (ranked[0].order, ranked[0].frame, ranked[0].unit) == ("wxyz", "body", "rad/s")
    assert ranked[0].misfit < 0.1 < 0.5 < ranked[1].misfit
    assert list(judge_rotation(session)) == []


def test_real_velocities_are_named_half_a_frame_late():
    """Each of them: the cube's linear and angular one, the pendulum's joint one."""
    for session, count in ((replace(tosses(), episodes=tosses().episodes[:60]), 2), (pendulum_runs(), 1)):
        findings = _motion_findings(session)
        assert [(each.severity, each.topic) for each in findings] == [("care", "clock")] * count
        assert all("half a frame late, as backward differences are" in each.got for each in findings)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("cube_orientation", lambda q: q[:, [1, 2, 3, 0]], "as if written xyzw, with an angular velocity in rad/s"),
        ("turning", lambda w: np.degrees(w), "written wxyz, with an angular velocity in deg/s in the body frame"),
    ],
)
def test_other_conventions_of_turning_are_named(session, name, change, words):
    (finding,) = judge_rotation(_changed(session, name, change))
    assert finding.severity == "reject"
    assert words in finding.got


def test_the_frame_of_an_angular_velocity_is_told():
    rng, time_s = np.random.default_rng(3), np.arange(300) * STEP_S
    wild = np.cumsum(rng.normal(0, 0.05, (300, 4)), axis=0) + np.array([1.0, 0.5, -0.5, 0.2])
    quaternion = wild / np.linalg.norm(wild, axis=1, keepdims=True)
    for frame in ("body", "world"):
        steps = turning_speed(time_s, quaternion, frame)
        recorded = (np.concatenate([steps[:1], steps]) + np.concatenate([steps, steps[-1:]])) / 2
        assert rank_conventions([(time_s, quaternion, recorded)])[0].frame == frame


def test_noise_of_a_camera_hides_no_convention_and_is_no_finding_itself(session):
    """Orientations a degree off, whose change from row to row is mostly noise."""
    rng = np.random.default_rng(5)
    noisy = _changed(session, "cube_orientation", lambda rows: rows + rng.normal(0, 0.01, rows.shape))
    assert list(judge_rotation(noisy)) == []
    (finding,) = judge_rotation(_changed(noisy, "turning", np.degrees))
    assert "with an angular velocity in deg/s" in finding.got
    (finding,) = judge_rotation(_changed(noisy, "cube_orientation", lambda q: q[:, [1, 2, 3, 0]]))
    assert "as if written xyzw" in finding.got


def test_axes_of_a_gyro_that_are_swapped_or_mirrored_are_named(session):
    (finding,) = judge_rotation(_changed(session, "turning", lambda rows: rows[:, [0, 2, 1]] * [1, 1, -1]))
    assert "with the axes x, -z, y of 'turning' as x, y, z it is" in finding.got
    assert "`columns` or `sign` right in the mapping" in finding.next_step


def test_a_velocity_that_is_not_the_turning_is_doubted(session):
    rng = np.random.default_rng(1)
    (finding,) = judge_rotation(_changed(session, "turning", lambda values: rng.normal(0, 3, values.shape)))
    assert (finding.severity, finding.next_step[:30]) == ("care", "Do not start simulations from ")


@pytest.mark.parametrize(
    ("scale", "severity", "words"),
    [
        (np.degrees(1.0), "reject", "The velocity seems to be in deg/s"),
        (-1.0, "reject", "The signs of the two are opposite"),
        (1.4, "care", "Check the units, and which filter"),
    ],
)
def test_velocities_tell_units_and_signs(session, scale, severity, words):
    found = _motion_findings(_changed(session, "joint_velocity", lambda values: scale * values))
    finding = next(each for each in found if "joint_velocity" in each.where)
    assert (finding.severity, finding.topic) == (severity, "units")
    assert words in finding.next_step


def test_velocities_in_another_order_are_named(session):
    found = _motion_findings(_changed(session, "joint_velocity", lambda values: values[:, ::-1]))
    finding = next(each for each in found if "joint_velocity" in each.where)
    assert finding.severity == "reject"
    assert finding.got == "velocities in another order: one, two change as two, one say"


def test_a_late_velocity_is_named(session):
    late = _changed(session, "joint_velocity", lambda values: np.concatenate([values[:1], values[:-1]]))
    finding = next(each for each in _motion_findings(late) if "joint_velocity" in each.where)
    assert "(1.00 rows;" in finding.got
    assert "late as stamped" in finding.got


def test_an_early_velocity_is_named(session):
    early = _changed(session, "joint_velocity", lambda values: np.concatenate([values[2:], values[-2:]]))
    finding = next(each for each in _motion_findings(early) if "joint_velocity" in each.where)
    assert "(2.00 rows;" in finding.got
    assert "ahead of its position" in finding.got


def test_unrelated_velocities_are_named(session):
    rng = np.random.default_rng(2)
    noise = _changed(session, "joint_velocity", lambda values: rng.normal(size=values.shape))
    finding = next(each for each in _motion_findings(noise) if "joint_velocity" in each.where)
    assert "does not follow the position" in finding.got


def test_the_delay_of_a_drive_is_measured(session):
    (response,) = find_responses(session)
    assert (response.reference.name, response.other.name) == ("joint_setpoint", "joint_position")
    assert response.clock.offset_s == pytest.approx(0.04, abs=1e-3)


def test_degrees_for_radians_are_rejected(session):
    degrees = _changed(session, "joint_position", np.degrees)
    (finding,) = judge_limits(degrees, LIMITS)
    assert (finding.severity, finding.topic) == ("reject", "units")
    assert finding.next_step == "These are degrees: multiply by pi / 180 and store the session again."


@pytest.mark.parametrize(("shift", "severity"), [(1.1, "care"), (2.0, "reject")])
def test_joints_beyond_their_range_are_doubted_or_rejected(session, shift, severity):
    shifted = _changed(session, "joint_position", lambda values: values + shift)
    (finding,) = judge_limits(shifted, LIMITS)
    assert finding.severity == severity
    assert "check the unit, the zero and the order" in finding.next_step


def test_many_turns_without_known_limits_are_doubted(session):
    degrees = _changed(session, "joint_position", np.degrees)
    (finding,) = judge_limits(degrees, {})
    assert finding.severity == "care"
    assert "If these are degrees" in finding.next_step
