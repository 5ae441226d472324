"""A robot's reality from its file: the robot, its clock, and who sets up each episode."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from rsr.errors import ConfigError, Waiting
from rsr.realities.clocks import Clock, RealClock, SimulatedClock
from rsr.realities.robot import Placement, Reset, RobotReality
from rsr.realities.robot_file import RobotFile, load_robot_file
from rsr.realities.wiring import Wiring
from rsr.scenarios import Scenario
from rsr.scenarios.pushing import kinematics
from rsr.scenarios.pushing.pose import yaw_of
from rsr.spreading import load


def make_robot_reality(
    scenario: Scenario, path: Path, root: Path, real_time: bool = True, recorded_at: str | None = None
) -> RobotReality:
    """Make the reality that a robot's file describes.

    Args:
        path: of the robot's file.
        root: folder of the recordings.
        real_time: False lets a stand-in run as fast as it can; refused for what really moves.
    """
    file = load_robot_file(path)
    clock = _clock(file, path, real_time)
    robot = _robot(file, path)
    reset: Reset = robot.place if file.reset == "robot" else ask_at_terminal
    return RobotReality(scenario, robot, Wiring(file, scenario), reset, clock, root, recorded_at=recorded_at)


def ask_at_terminal(placement: Placement) -> None:
    """Tell the person at the terminal what to put where, and wait for Enter.

    Raises:
        Waiting: nobody is there to answer.
    """
    if not sys.stdin.isatty():
        raise Waiting(
            got="no terminal, so nobody who could set up the next episode and confirm it",
            expected="a person beside the robot",
            where=f"episode {placement.episode + 1} of {placement.episodes}",
            next_step="Run the same command in a terminal beside the robot; it goes on with this episode.",
        )
    Console(stderr=True).input(
        f"Episode {placement.episode + 1} of {placement.episodes}: {instruction(placement)}\n"
        "Keep clear of the arm. Enter: it moves. Ctrl-C: stop here, everything recorded is kept. "
    )


def instruction(placement: Placement) -> str:
    """What to put where, in words."""
    block, target, joints = placement.start.qpos[0, :7], placement.start.target[0], placement.start.qpos[0, 7:]
    tip = _place(kinematics.fingertip(joints))
    return f"put the block at {_place(block)}; its target is {_place(target)}. Bring the fingertip near {tip}."


def _place(pose: np.ndarray) -> str:
    turn = f", turned by {np.rad2deg(yaw_of(pose[3:7])):.0f} degrees" if len(pose) >= 7 else ""
    return f"x = {pose[0]:.3f} m, y = {pose[1]:.3f} m{turn}"


def _clock(file: RobotFile, path: Path, real_time: bool) -> Clock:
    if real_time:
        return RealClock()
    if not file.simulated:
        raise ConfigError(
            got="simulated time for a robot that is no stand-in",
            expected="real time: it would get all its commands at once",
            where=f"{path}: simulated",
            next_step="Run it in real time.",
        )
    return SimulatedClock()


def _robot(file: RobotFile, path: Path) -> Any:
    try:
        return load(file.robot)(**file.options)
    except (ImportError, AttributeError, TypeError) as error:
        raise ConfigError(
            got=f"{type(error).__name__}: {error}",
            expected="module:name of what makes the robot from these options",
            where=f"{path}: robot {file.robot}",
            next_step="Correct `robot` or `options`, or install what the module needs.",
        ) from error
