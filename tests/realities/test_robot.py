"""The reality `robot`, end to end on the stand-in behind LeRobot's interface: what it records, and what stops it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from robots import Faulty, reality, robot_document

from rsr.common.errors import RealityError
from rsr.common.progress import ignore
from rsr.realities import CollectionPlan
from rsr.realities.reality import RealClock, SimulatedClock
from rsr.realities.robot import RobotReality
from rsr.realities.robot_file import RobotFile
from rsr.realities.stand_in import StandInRobot
from rsr.realities.trial import PATIENCE_S
from rsr.realities.wiring import Wiring
from rsr.scenarios import load_scenario
from rsr.scenarios.built_in.pushing.arm import STEP_RAD
from rsr.sessions import Session, check_session, read_session
from tests.push_samples import ScriptedPusher, push_cube

PLAN = CollectionPlan("session-001", episodes=2, seed=3, policy_sha256="abc")
STEPS = 100
AT = 40


class NanAt(ScriptedPusher):
    """Asks for nothing that is a number, from one step to another."""

    def __init__(self, first: int, last: int) -> None:
        self._bad, self._step = range(first, last + 1), -1

    def act(self, observation: np.ndarray) -> np.ndarray:
        self._step += 1
        action = super().act(observation)
        return np.full_like(action, np.nan) if self._step % STEPS in self._bad else action


def record(tmp_path, policy=None, plan: CollectionPlan = PLAN, **faults) -> tuple[Session, Faulty]:
    clock = SimulatedClock()
    robot = Faulty(clock, **faults)
    return reality(tmp_path, robot, clock).collect(policy or ScriptedPusher(), plan, ignore), robot


def changes(session: Session, episode: int = 0) -> np.ndarray:
    """How far each command moved the setpoints, row by row."""
    return np.abs(np.diff(session.episodes[episode]["joint_setpoint"], axis=0)).max(axis=1)


def assert_stored(tmp_path, session: Session) -> None:
    check_session(session, push_cube().channels)
    assert read_session(tmp_path / "push_cube" / "session-001").card == session.card


def test_a_session_like_any_other(tmp_path):
    session, robot = record(tmp_path)
    assert_stored(tmp_path, session)
    assert [len(episode) for episode in session.episodes] == [STEPS + 1] * 2
    assert (session.card.reality, session.card.simulated, session.card.policy_sha256) == ("robot", True, "abc")
    assert session.episodes[0]["target_position"].shape == (STEPS + 1, 3)
    np.testing.assert_allclose(session.episodes[0].time_s, np.arange(STEPS + 1) * 0.05, atol=1e-12)
    np.testing.assert_array_equal(
        session.episodes[1]["joint_setpoint"][:-1], [[*command.values()] for command in robot.sent]
    )
    assert not robot.is_connected
    moved = np.linalg.norm(np.ptp(session.episodes[0]["block_position"], axis=0))
    assert moved > 0.01, "the finger pushes the cube"
    assert list((tmp_path / "push_cube").iterdir()) == [tmp_path / "push_cube" / "session-001"]


def test_same_seed_same_numbers(tmp_path):
    one, other = record(tmp_path / "one")[0], record(tmp_path / "other")[0]
    np.testing.assert_array_equal(one.episodes[1]["block_position"], other.episodes[1]["block_position"])


def test_an_action_that_is_no_number_stops_the_arm_within_one_period_and_the_session_says_so(tmp_path):
    session, _ = record(tmp_path, NanAt(AT, AT + 2))
    assert_stored(tmp_path, session)
    for index, episode in enumerate(session.episodes):
        # The setpoint of the very row whose action is no number is the one before it.
        np.testing.assert_array_equal(changes(session, index)[AT - 1 : AT + 2], 0.0)
        assert changes(session, index)[AT + 2 :].max() > 0, "and the arm goes on afterwards"
        assert episode.tags["cut_not_a_number"] == f"{AT}-{AT + 2}"
        np.testing.assert_array_equal(episode["action"][AT : AT + 3], 0.0)
        np.testing.assert_array_equal(episode["clipped"][AT : AT + 3], 1.0)
    assert "not_a_number in 2" in session.card.notes


def test_a_stale_sensor_stops_the_arm_within_one_period_and_the_session_says_so(tmp_path):
    frozen = {}

    def freeze(step, observation):
        """The camera stands still for three steps."""
        if step in range(AT, AT + 3):
            return observation | frozen | {"block.age": 0.05 * (step - AT + 2)}
        frozen.update({key: value for key, value in observation.items() if key.startswith("block")})
        return observation

    session, _ = record(tmp_path, spoil=freeze)
    assert_stored(tmp_path, session)
    np.testing.assert_array_equal(changes(session)[AT - 1 : AT + 2], 0.0)
    assert changes(session)[AT + 2 :].max() > 0
    assert session.episodes[0].tags["cut_stale_sensor"] == f"{AT}-{AT + 2}"
    assert "stale_sensor in 2" in session.card.notes


@pytest.mark.parametrize("age", [np.nan, np.inf])
def test_an_age_that_is_no_number_is_stale(tmp_path, age):
    spoil = lambda step, observation: observation | ({"block.age": age} if step == AT else {})  # noqa: E731
    session, _ = record(tmp_path, spoil=spoil)
    assert session.episodes[0].tags["cut_stale_sensor"] == f"{AT}"


def test_a_measurement_that_is_no_number_stops_the_arm_and_the_last_one_is_recorded(tmp_path):
    spoil = lambda step, observation: observation | ({"joint3.pos": np.nan} if step == AT else {})  # noqa: E731
    session, _ = record(tmp_path, spoil=spoil)
    assert_stored(tmp_path, session)
    assert changes(session)[AT - 1] == 0.0
    assert session.episodes[0].tags["cut_no_measurement"] == f"{AT}"
    joints = session.episodes[0]["joint_position"]
    np.testing.assert_array_equal(joints[AT], joints[AT - 1])


def test_a_fault_that_lasts_ends_the_attempt_and_the_episode_is_recorded_again(tmp_path):
    spoiled = {}

    def spoil(step, observation):
        """The camera dies in the first attempt."""
        first = spoiled.setdefault("robot", robots[0].attempts) == robots[0].attempts
        return observation | ({"block.age": 9.0} if first and step >= AT else {})

    robots = []
    clock = SimulatedClock()
    robots.append(Faulty(clock, spoil=spoil))
    session = reality(tmp_path, robots[0], clock).collect(ScriptedPusher(), PLAN, ignore)
    assert_stored(tmp_path, session)
    assert robots[0].attempts == 3
    assert session.card.notes.startswith(
        "2 starts of seed 3. Episode 0, attempt 1 was not kept; it stopped at 2.50 s after holding the robot for "
        "0.5 s: a measurement was older than allowed (block_position 9.00 s old, block_orientation 9.00 s old)."
    )
    assert pytest.approx(2.5) == AT * 0.05 + PATIENCE_S


def test_what_never_works_is_given_up_and_what_was_recorded_is_kept(tmp_path):
    def spoil(step, observation):
        return observation | ({"block.x": np.nan} if robot.attempts > 1 else {})

    clock = SimulatedClock()
    robot = Faulty(clock, spoil=spoil)
    with pytest.raises(RealityError) as caught:
        reality(tmp_path, robot, clock).collect(ScriptedPusher(), PLAN, ignore)
    assert str(caught.value) == (
        "robot rsr.realities.stand_in:StandInRobot, episode 1: got 3 attempts that stopped, the last at its beginning: "
        "no number in block_position; expected an episode from its beginning to its end. "
        "Mend this, then run the same command: it goes on with this episode."
    )
    assert not robot.is_connected
    assert not list(tmp_path.rglob("rsr_card.json"))
    mended = SimulatedClock()
    session = reality(tmp_path, Faulty(mended), mended).collect(ScriptedPusher(), PLAN, ignore)
    assert len(session.episodes) == 2
    assert session.card.notes.count("Episode 1, attempt") == 3


def test_an_arm_that_stands_outside_its_box_is_not_moved(tmp_path):
    clock = SimulatedClock()
    robot = Faulty(clock, spoil=lambda step, observation: observation | {"joint2.pos": -2.5})
    with pytest.raises(
        RealityError,
        match="at its beginning, where the robot could only be held: the fingertip would have left its box",
    ):
        reality(tmp_path, robot, clock).collect(ScriptedPusher(), PLAN, ignore)
    assert robot.sent == []


def test_a_loop_that_does_not_keep_its_rate_holds_the_arm_and_ends_the_attempt(tmp_path):
    clock = SimulatedClock()
    robot = Faulty(clock, slow={AT: 0.08})
    with pytest.raises(RealityError, match="late, 30 ms behind its rate"):
        reality(tmp_path, robot, clock).collect(ScriptedPusher(), PLAN, ignore)
    assert len(robot.sent) == AT + 1, "nothing is sent after the late step"
    assert robot.sent[-1] == robot.sent[-2], "and in it the arm is held"


def test_what_the_robot_really_sent_is_what_is_recorded(tmp_path):
    cautious = lambda command: command | {"joint1.pos": 0.5 * command["joint1.pos"]}  # noqa: E731
    session, robot = record(tmp_path, alter=cautious)
    assert_stored(tmp_path, session)
    np.testing.assert_array_equal(
        session.episodes[1]["joint_setpoint"][:-1], [[*command.values()] for command in robot.sent]
    )
    assert "robot in 2" in session.card.notes


def test_the_envelope_of_the_robots_file_holds(tmp_path):
    clock = SimulatedClock()
    robot = Faulty(clock)
    limits = {"joint_speed_rad_s": 0.4, "joint_acceleration_rad_s2": 2.0}
    made = reality(tmp_path, robot, clock, envelope={"limits": limits}, gains={"kp": 120.0})
    session = made.collect(ScriptedPusher(), PLAN, ignore)
    steps = np.diff(session.episodes[0]["joint_setpoint"][:-1], axis=0)
    assert np.abs(steps).max() <= 0.4 * 0.05 + 1e-12
    growth = np.abs(steps[1:]) - np.abs(steps[:-1])
    assert growth[steps[1:] * steps[:-1] > 0].max() <= 2.0 * 0.05**2 + 1e-12
    assert session.card.limits["setpoint_speed_rad_s"] == 0.4
    assert session.card.gains == {"kp": 120.0}
    assert {"cut_joint_speed", "cut_joint_acceleration"} <= set(session.episodes[0].tags)
    assert STEP_RAD > 0.4 * 0.05


def test_a_robot_that_raises_is_disconnected_and_the_error_says_what_it_said(tmp_path):
    def spoil(step, observation):
        if step == AT:
            raise ConnectionError("motor 3 does not answer")
        return observation

    clock = SimulatedClock()
    robot = Faulty(clock, spoil=spoil)
    with pytest.raises(RealityError) as caught:
        reality(tmp_path, robot, clock).collect(ScriptedPusher(), PLAN, ignore)
    assert str(caught.value) == (
        "robot rsr.realities.stand_in:StandInRobot, get_observation: got ConnectionError: motor 3 does not answer; "
        "expected an answer. Look after the robot, then run the same command: it goes on with this episode."
    )
    assert not robot.is_connected
    mended = SimulatedClock()
    session = reality(tmp_path, Faulty(mended), mended).collect(ScriptedPusher(), PLAN, ignore)
    assert "motor 3 does not answer" in session.card.notes


def test_a_block_with_orientation(tmp_path):
    """The T-shaped block: targets are poses, and so are the channels that hold them."""
    scenario, clock = load_scenario("push_t"), SimulatedClock()
    robot = StandInRobot("push_t", seed=2)
    wiring = Wiring(RobotFile.model_validate(robot_document()), scenario)
    made = RobotReality(scenario, robot, wiring, robot.place, clock, tmp_path)
    session = made.collect(ScriptedPusher(), replace(PLAN, episodes=1), ignore)
    check_session(session, scenario.channels)
    target = session.episodes[0]["target_orientation"]
    assert target.shape == (scenario.episode_steps + 1, 4)
    np.testing.assert_allclose(np.linalg.norm(target, axis=1), 1.0)


def test_clocks_never_go_back():
    for clock in (SimulatedClock(), RealClock()):
        now_s = clock.now_s()
        clock.sleep_until(now_s - 1.0)
        assert now_s <= clock.now_s() < now_s + 1.0
        clock.sleep_until(now_s + 1e-3)
        assert clock.now_s() >= now_s + 1e-3
