"""The double pendulum is swung up from where it hangs, and balanced upright.

`DRIVEN_NM` says what each drive may do: (5, 0) is the pendubot, (0, 5) the acrobot.
"""

from __future__ import annotations

import numpy as np

from rsr.common import wrapped
from rsr.scenarios import AbsoluteAction, Channels, ObservationTerm, Plane, ProgressFigure, Starts, StateColumns, Task

DRIVEN_NM = (4.0, 2.0)
UPRIGHT_RAD = np.array([np.pi, 0.0])
NEAR_RAD = 0.15


def reset(rng: np.random.Generator, count: int) -> Starts:
    return Starts(rng.uniform(-0.2, 0.2, (count, 2)))


def off(channels: Channels) -> np.ndarray:
    return wrapped(channels["joint_position"] - UPRIGHT_RAD)


def height(channels: Channels) -> np.ndarray:
    """Of the end above the shoulder, over the length of both links."""
    shoulder, elbow = np.moveaxis(channels["joint_position"], -1, 0)
    return -(0.2 * np.cos(shoulder) + 0.3 * np.cos(shoulder + elbow)) / 0.5


def reward(channels: Channels) -> np.ndarray:
    speed = np.square(channels["velocity:joint_position"]).sum(axis=-1)
    near = np.exp(-np.square(off(channels)).sum(axis=-1) / 0.1)
    effort = np.square(channels["action"]).mean(axis=-1)
    return height(channels) + near * (2.0 - 0.05 * np.minimum(speed, 20.0)) - 0.001 * speed - 0.05 * effort


def sine_and_cosine(channels: Channels) -> np.ndarray:
    angle = channels["joint_position"]
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=-1)


def joint(column: int, name: str) -> ProgressFigure:
    return ProgressFigure(name, lambda channels: off(channels)[..., column], "rad", "joint_position", NEAR_RAD)


TASK = Task(
    terms=(
        ObservationTerm("sine and cosine", 4, "1", "joint", ("joint_position",), sine_and_cosine),
        ObservationTerm("velocity", 2, "rad/s", "joint", ("velocity:joint_position",)),
        ObservationTerm("last action", 2, "1", "joint", ("action",)),
    ),
    goal=(),
    action=AbsoluteAction(tuple(-torque for torque in DRIVEN_NM), DRIVEN_NM),
    reset=reset,
    reward=reward,
    figures=(joint(0, "shoulder"), joint(1, "elbow")),
    states=StateColumns(
        ("shoulder", "elbow", "shoulder_speed", "elbow_speed"),
        lambda channels: np.concatenate([off(channels), 0.1 * channels["velocity:joint_position"]], axis=-1),
        (0.0005, 0.0005, 0.007, 0.007),
    ),
    plane=Plane(("shoulder", "elbow"), "rad", off, (0.0, 0.0), float(np.pi)),
    training={"ppo": {"train_steps": 1_500_000, "further_steps": 600_000, "gamma": 0.99}},
)
