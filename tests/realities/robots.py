"""Robots for tests: the stand-in behind LeRobot's interface, and what can go wrong with one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from rsr.realities.reality import SimulatedClock
from rsr.realities.robot import Placement, RobotReality
from rsr.realities.robot_file import RobotFile
from rsr.realities.stand_in import StandInRobot
from rsr.realities.wiring import Wiring
from rsr.scenarios import load_scenario

STAND_IN_FILE = Path(__file__).parents[2] / "examples" / "robots" / "stand_in.yaml"


def robot_document() -> dict[str, Any]:
    return yaml.safe_load(STAND_IN_FILE.read_text())


class Faulty(StandInRobot):
    """A stand-in whose answers are spoilt.

    Args:
        spoil: (step of the episode, observation) -> what is returned.
        alter: what is really sent instead of a command.
        slow: seconds that `get_observation` takes, step by step.
    """

    def __init__(self, clock: SimulatedClock, spoil: Callable | None = None, alter=None, slow=None) -> None:
        super().__init__("push_cube", seed=1)
        self._clock, self._spoil, self._alter, self._slow = clock, spoil, alter, slow or {}
        self.step = -1
        self.sent: list[dict[str, float]] = []
        self.attempts = 0

    @property
    def is_connected(self) -> bool:
        return self._connected

    def place(self, placement: Placement) -> None:
        super().place(placement)
        self.step = -1
        self.sent = []
        self.attempts += 1

    def get_observation(self) -> dict[str, float]:
        self._clock.sleep_until(self._clock.now_s() + self._slow.get(self.step, 0.0))
        observation = super().get_observation()
        spoilt = self._spoil(self.step, dict(observation)) if self._spoil else observation
        self.step += 1
        return spoilt

    def send_action(self, action: dict[str, Any]) -> dict[str, Any]:
        self.sent.append(super().send_action(self._alter(dict(action)) if self._alter else action))
        return self.sent[-1]


def reality(root: Path, robot: StandInRobot, clock: SimulatedClock, **changes: Any) -> RobotReality:
    scenario = load_scenario("push_cube")
    wiring = Wiring(RobotFile.model_validate(robot_document() | changes), scenario)
    return RobotReality(scenario, robot, wiring, robot.place, clock, root)


def two_joint_robot(**changes: Any) -> dict[str, Any]:
    """A robot's file for the torque-controlled arm."""
    joints = {"shoulder": "shoulder.pos", "elbow": "elbow.pos"}
    speeds = {"shoulder": "shoulder.vel", "elbow": "elbow.vel"}
    efforts = {"shoulder": "shoulder.effort", "elbow": "elbow.effort"}
    return {
        "robot": "rsr.realities.stand_in:StandInRobot",
        "simulated": True,
        "rate_hz": 50,
        "reset": "robot",
        "command": {"unit": "N m", "keys": efforts},
        "channels": {
            "joint_position": {"unit": "rad", "frame": "joint", "age": "during_call", "keys": joints},
            "joint_velocity": {"unit": "rad/s", "frame": "joint", "age": "during_call", "keys": speeds},
        },
    } | changes
