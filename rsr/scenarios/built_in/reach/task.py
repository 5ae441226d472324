"""The tool goes to a point in reach and stays there."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rsr.scenarios import (
    Channels,
    DisplacementAction,
    ObservationTerm,
    ProgressFigure,
    Starts,
    StateColumns,
    Task,
    forward_kinematics,
)

JOINTS = ("turn", "lift", "elbow", "roll", "pitch", "spin")
LOWER = np.array([-1.2, -1.6, 0.6, -1.0, -0.6, -1.0])
UPPER = np.array([1.2, -0.6, 1.8, 1.0, 1.2, 1.0])
"""Where episodes begin and where targets lie, as joint angles."""
NEAR_M = 0.015
tool = forward_kinematics(Path(__file__).with_name("scene.xml"), "tool", JOINTS)


def reset(rng: np.random.Generator, count: int) -> Starts:
    start, goal = rng.uniform(LOWER, UPPER, (2, count, len(JOINTS)))
    return Starts(start, {"goal_position": tool(goal)})


def to_go(channels: Channels) -> np.ndarray:
    return channels["goal_position"] - channels["tool_position"]


def distance(channels: Channels) -> np.ndarray:
    return np.linalg.norm(to_go(channels), axis=-1)


def reward(channels: Channels) -> np.ndarray:
    gap, speed = distance(channels), np.linalg.norm(channels["velocity:joint_position"], axis=-1)
    effort = np.square(channels["action"]).mean(axis=-1)
    return -gap + 0.5 * np.exp(-((gap / 0.03) ** 2)) - 0.01 * speed - 0.02 * effort


def axis_figure(column: int, name: str) -> ProgressFigure:
    return ProgressFigure(name, lambda channels: -to_go(channels)[..., column], "m", "joint_position")


TASK = Task(
    terms=(
        ObservationTerm("joints", 6, "rad", "joint", ("joint_position",)),
        ObservationTerm("joint velocity", 6, "rad/s", "joint", ("velocity:joint_position",)),
        ObservationTerm(
            "setpoint ahead",
            6,
            "rad",
            "joint",
            ("joint_setpoint", "joint_position"),
            lambda channels: channels["joint_setpoint"] - channels["joint_position"],
        ),
        ObservationTerm("goal", 3, "m", "world", ("goal_position",)),
        ObservationTerm("tool to goal", 3, "m", "world", ("goal_position", "tool_position"), to_go),
    ),
    goal=("goal_position",),
    action=DisplacementAction((0.1,) * 6, (-2.8, -2.4, -0.2, -2.8, -2.0, -3.0), (2.8, 0.6, 2.6, 2.8, 2.0, 3.0)),
    derived=lambda channels: {"tool_position": tool(channels["joint_position"])},
    reset=reset,
    reward=reward,
    figures=(
        *(axis_figure(column, name) for column, name in enumerate("xyz")),
        ProgressFigure("distance", distance, "m", "joint_position", NEAR_M, axis=False),
    ),
    states=StateColumns(JOINTS, lambda channels: channels["joint_position"], (0.001,) * 6),
    training={"ppo": {"train_steps": 600_000}},
)
