"""Robots for tests: the twin behind LeRobot's interface, and what can go wrong with one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from rsr.realities.clocks import SimulatedClock
from rsr.realities.robot import Placement, RobotReality
from rsr.realities.robot_file import RobotFile
from rsr.realities.twin_robot import TwinRobot
from rsr.realities.wiring import Wiring
from rsr.scenarios import load_scenario

TWIN_FILE = Path(__file__).parents[2] / "examples" / "robots" / "twin.yaml"


def robot_document() -> dict[str, Any]:
    return yaml.safe_load(TWIN_FILE.read_text())


class Faulty(TwinRobot):
    """A twin whose answers are spoilt.

    Args:
        spoil: (step of the episode, observation) -> what is returned.
        alter: what is really sent instead of a command.
        slow: seconds that `get_observation` takes, step by step.
    """

    def __init__(self, clock: SimulatedClock, spoil: Callable | None = None, alter=None, slow=None) -> None:
        super().__init__(seed=1)
        self._clock, self._spoil, self._alter, self._slow = clock, spoil, alter, slow or {}
        self.step = -1
        self.sent: list[dict[str, float]] = []
        self.attempts = 0

    def place(self, placement: Placement) -> None:
        super().place(placement)
        self.step = -1
        self.sent = []
        self.attempts += 1

    def get_observation(self) -> dict[str, float]:
        self._clock.pass_s(self._slow.get(self.step, 0.0))
        observation = super().get_observation()
        spoilt = self._spoil(self.step, dict(observation)) if self._spoil else observation
        self.step += 1
        return spoilt

    def send_action(self, action: dict[str, Any]) -> dict[str, Any]:
        self.sent.append(super().send_action(self._alter(dict(action)) if self._alter else action))
        return self.sent[-1]


def reality(root: Path, robot: TwinRobot, clock: SimulatedClock, **changes: Any) -> RobotReality:
    scenario = load_scenario("push_cube")
    wiring = Wiring(RobotFile.model_validate(robot_document() | changes), scenario)
    return RobotReality(scenario, robot, wiring, robot.place, clock, root)
