"""A robot of a user's own scenario, commanded by torque: what holds it, whatever goes wrong."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from robots import two_joint_robot

from benchmarks._two_joint_arm import two_joint_arm
from rsr.common.errors import ConfigError, RealityError, ScenarioError
from rsr.common.progress import ignore
from rsr.policies.export import export_policy
from rsr.policies.policy import Normaliser, OnnxPolicy, Policy
from rsr.policies.policy_contract import check_contract
from rsr.realities import CollectionPlan
from rsr.realities.reality import Clock, RealClock, SimulatedClock
from rsr.realities.robot import Placement, RobotReality, instruction, make_robot_reality
from rsr.realities.robot_file import RobotFile
from rsr.realities.stand_in import StandInRobot
from rsr.realities.wiring import Wiring
from rsr.scenarios import Scenario, task_of
from rsr.sessions import Session, check_session

PLAN = CollectionPlan("session-001", episodes=1, seed=3)
AT = 20
SAFE = (0.25, -0.125)


class Turning:
    """Asks for a fiftieth of each torque; in three steps for something else."""

    def __init__(self, asked: float = 0.5) -> None:
        self.asked, self.step = asked, -1
        self.seen: list[np.ndarray] = []

    def act(self, observation: np.ndarray) -> np.ndarray:
        self.step += 1
        self.seen.append(observation[0].copy())
        if self.step not in range(AT, AT + 3):
            return np.full((1, 2), 0.02)
        return np.full((1, 2), self.asked)


class Watched(StandInRobot):
    """Notes what it is sent; its answers may be spoilt, step by step."""

    def __init__(self, folder: Path, spoil: Any = None) -> None:
        super().__init__(str(folder), seed=1)
        self._spoil, self.sent, self.step = spoil, [], -2
        self.attempts = 0

    @property
    def is_connected(self) -> bool:
        return self._connected

    def place(self, placement: Placement) -> None:
        super().place(placement)
        self.step, self.attempts = -2, self.attempts + 1
        self.sent.clear()

    def get_observation(self) -> dict[str, float]:
        self.step += 1
        observation = super().get_observation()
        return observation | (self._spoil(self.step) if self._spoil else {})

    def send_action(self, action: dict[str, Any]) -> dict[str, Any]:
        sent = super().send_action(action)
        self.sent.append(tuple(sent.values()))
        return sent


def arm(folder: Path) -> Scenario:
    return two_joint_arm(folder, limits={"safe_command": {"shoulder": SAFE[0], "elbow": SAFE[1]}})


def record(
    root: Path, policy: Any, spoil: Any = None, clock: Clock | None = None, **changes: Any
) -> tuple[Session, Any]:
    scenario = arm(root / "arm")
    robot = Watched(root / "arm", spoil)
    wiring = Wiring(RobotFile.model_validate(two_joint_robot(**changes)), scenario)
    made = RobotReality(scenario, robot, wiring, robot.place, clock or SimulatedClock(), root / "data")
    return made.collect(policy, PLAN, ignore), robot


def torque(session: Session) -> np.ndarray:
    return session.episodes[0]["joint_torque"]


def test_a_session_like_any_other(tmp_path):
    session, robot = record(tmp_path, Turning())
    check_session(session, arm(tmp_path / "arm").channels)
    np.testing.assert_array_equal(torque(session)[:-1], robot.sent[: len(torque(session)) - 1])
    assert len(robot.sent) > len(torque(session)), "it is braked before that"
    np.testing.assert_allclose(torque(session)[:AT], [[0.08, 0.04]] * AT)
    assert robot.sent[-1] == SAFE, "and at its end it is left under its safe command"
    assert not robot.is_connected


def test_velocities_are_those_of_what_it_measures_filtered(tmp_path):
    policy = Turning()
    session, _ = record(tmp_path, policy)
    seen = np.array(policy.seen)
    joints = session.episodes[0]["joint_position"]
    np.testing.assert_array_equal(seen[0, 2:4], 0.0)
    np.testing.assert_allclose(seen[1, 2:4], 0.5 * (joints[1] - joints[0]) / 0.02, rtol=1e-5)
    assert np.abs(seen[AT:, 2:4]).max() > 0.1
    np.testing.assert_allclose(seen[1:, 8:], session.episodes[0]["action"][:-2], rtol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_action_that_is_no_number_sends_the_safe_command_in_the_same_period(tmp_path, bad):
    session, _ = record(tmp_path, Turning(bad))
    np.testing.assert_array_equal(torque(session)[AT : AT + 3], [SAFE] * 3)
    assert session.episodes[0].tags["cut_not_a_number"] == f"{AT}-{AT + 2}"
    np.testing.assert_array_equal(session.episodes[0]["action"][AT : AT + 3], 0.0)
    np.testing.assert_array_equal(session.episodes[0]["clipped"][AT : AT + 3], 1.0)
    np.testing.assert_allclose(torque(session)[AT + 3], [0.08, 0.04])


def test_a_stale_sensor_sends_the_safe_command_in_the_same_period(tmp_path):
    ages = two_joint_robot()["channels"]
    ages["joint_velocity"]["age"] = "imu.age"
    scenario = arm(tmp_path / "arm")

    class WithAge(Watched):
        @property
        def observation_features(self) -> dict[str, Any]:
            return {**super().observation_features, "imu.age": float}

    robot = WithAge(tmp_path / "arm", lambda step: {"imu.age": 0.5 if step in range(AT, AT + 3) else 0.001})
    wiring = Wiring(RobotFile.model_validate(two_joint_robot(channels=ages)), scenario)
    made = RobotReality(scenario, robot, wiring, robot.place, SimulatedClock(), tmp_path / "data")
    session = made.collect(Turning(), PLAN, ignore)
    np.testing.assert_array_equal(torque(session)[AT : AT + 3], [SAFE] * 3)
    assert session.episodes[0].tags["cut_stale_sensor"] == f"{AT}-{AT + 2}"


def test_a_measurement_that_is_no_number_sends_the_safe_command_in_the_same_period(tmp_path):
    session, _ = record(tmp_path, Turning(), lambda step: {"elbow.pos": np.nan} if step == AT else {})
    np.testing.assert_array_equal(torque(session)[AT], SAFE)
    np.testing.assert_allclose(torque(session)[AT - 1], [0.08, 0.04])
    assert session.episodes[0].tags["cut_no_measurement"] == f"{AT}"


def test_a_fault_that_lasts_leaves_it_under_the_safe_command(tmp_path):
    with pytest.raises(
        RealityError, match="holding the robot for 0.5 s: a sensor returned something that is no number"
    ):
        record(tmp_path, Turning(), lambda step: {"elbow.pos": np.nan} if step >= AT else {})


def test_a_robot_that_raises_is_left_under_the_safe_command(tmp_path):
    robots: list[Watched] = []

    def spoil(step: int) -> dict[str, float]:
        if step == AT:
            raise ConnectionError("encoder 2 does not answer")
        return {}

    scenario = arm(tmp_path / "arm")
    robots.append(Watched(tmp_path / "arm", spoil))
    wiring = Wiring(RobotFile.model_validate(two_joint_robot()), scenario)
    made = RobotReality(scenario, robots[0], wiring, robots[0].place, SimulatedClock(), tmp_path / "data")
    with pytest.raises(RealityError, match="encoder 2 does not answer"):
        made.collect(Turning(), PLAN, ignore)
    assert len(robots[0].sent) == AT + 1
    assert robots[0].sent[-1] == SAFE


class ImpatientClock(SimulatedClock):
    """Simulated time, in which a call has as long as it says on the machine's clock."""

    def call_until(self, moment_s: float, call: Callable[[], Any]) -> Any:
        return RealClock().call_until(time.monotonic() + moment_s - self.now_s(), call)


def test_a_policy_that_hangs_leaves_it_under_the_safe_command_and_is_not_waited_for(tmp_path):
    scenario = arm(tmp_path / "arm")

    class Hanging(Turning):
        def act(self, observation: np.ndarray) -> np.ndarray:
            if self.step >= 5:
                answer.wait()
            return super().act(observation)

    answer = threading.Event()
    robot = Watched(tmp_path / "arm")
    wiring = Wiring(RobotFile.model_validate(two_joint_robot()), scenario)
    made = RobotReality(scenario, robot, wiring, robot.place, ImpatientClock(), tmp_path / "data")
    try:
        with pytest.raises(RealityError, match="late, the policy had not decided after a control period"):
            made.collect(Hanging(), PLAN, ignore)
    finally:
        answer.set()
    assert robot.sent[-1] == SAFE
    assert robot.attempts == 3


def test_a_robot_may_narrow_what_the_scenario_states(tmp_path):
    limits = {"command_rate": 1.0, "command_upper": [0.06, 0.03]}
    session, _ = record(tmp_path, Turning(), envelope={"limits": limits})
    assert np.diff(torque(session)[:, 0]).max() <= 1.0 * 0.02 + 1e-12
    np.testing.assert_array_equal(torque(session).max(axis=0), [0.06, 0.03])
    assert session.card.limits == {"command_lower": -4.0, "command_upper": 0.06, "command_rate": 1.0}
    with pytest.raises(ConfigError, match="command_upper: got 9.0; expected nothing wider than \\(4.0, 2.0\\)"):
        record(tmp_path / "wide", Turning(), envelope={"limits": {"command_upper": 9.0}})
    with pytest.raises(ConfigError, match="safe_command: got an unknown limit; expected one of command_lower, "):
        record(tmp_path / "unsafe", Turning(), envelope={"limits": {"safe_command": 1.0}})


def test_an_exported_policy_runs_on_it(tmp_path):
    """Export, contract, robot's file and recording, as `rsr deploy` goes through them."""
    scenario = arm(tmp_path / "arm")
    task = task_of(scenario)
    size = task.observation_size
    weight = np.random.default_rng(0).normal(0, 0.3, (2, size)).astype(np.float32)
    normaliser = Normaliser(np.zeros(size), np.ones(size), 10.0)
    stored = Policy(task, normaliser, ((weight, np.zeros(2, np.float32)),))
    stored.save(tmp_path / "policy")
    contract = export_policy(scenario, tmp_path / "policy", tmp_path / "exported")
    assert (contract.action.type, contract.action.unit, contract.joints) == ("absolute", "N m", ("shoulder", "elbow"))
    policy = OnnxPolicy.load(tmp_path / "exported")
    document = two_joint_robot(options={"scenario": str(tmp_path / "arm" / "scenario.yaml"), "seed": 1})
    (tmp_path / "robot.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    made = make_robot_reality(scenario, tmp_path / "robot.yaml", tmp_path / "data", real_time=False)
    check_contract(policy.contract, made.body)
    session = made.collect(policy, PLAN, ignore)
    check_session(session, scenario.channels)
    assert np.abs(torque(session)).max() > 0.1


def test_words_for_a_person_come_from_the_start(tmp_path):
    scenario = arm(tmp_path)
    task = task_of(scenario)
    start = task.reset(np.random.default_rng(0), 1)
    x, y = start.goal["target_position"][0]
    shoulder, elbow = start.qpos[0]
    assert instruction(scenario, task, start) == (
        f"bring it to rest at joint position shoulder = {shoulder:.3f} rad, elbow = {elbow:.3f} rad. "
        f"The goal is target position x = {x:.3f} m, y = {y:.3f} m."
    )


def test_words_for_a_person_leave_out_what_sensors_read(tmp_path):
    channels = yaml.safe_load((arm(tmp_path / "plain").file or tmp_path).read_text())["channels"]
    reads = {"columns": ["shoulder"], "unit": "N m", "frame": "joint", "reads": {"sensor": ["effort"]}, "noise": 0.1}
    sensor = '<sensor><jointactuatorfrc name="effort" joint="shoulder"/></sensor>'
    scenario = two_joint_arm(tmp_path / "arm", channels=channels | {"effort": reads}, adds={"mjcf": sensor})
    start = task_of(scenario).reset(np.random.default_rng(0), 1)
    words = instruction(scenario, task_of(scenario), start)
    assert words.startswith("bring it to rest at joint position shoulder = ")
    assert "effort" not in words


def test_limits_of_task_and_file_are_not_both_stated(tmp_path):
    scenario = arm(tmp_path)
    task = (tmp_path / "task.py").read_text()
    own = "limits=ArmLimits(),\n    derived=tool,"
    text = f"from rsr.scenarios.built_in.pushing.limits import ArmLimits\n{task}".replace("derived=tool,", own)
    (tmp_path / "task.py").write_text(text)
    with pytest.raises(ScenarioError, match="got limits; expected those of the task alone"):
        Wiring(RobotFile.model_validate(two_joint_robot()), scenario).envelope(scenario)
