"""The quadrotor flies to a waypoint and hovers there."""

from __future__ import annotations

import numpy as np

from rsr.common import conjugate, turned
from rsr.scenarios import AbsoluteAction, Channels, ObservationTerm, Plane, ProgressFigure, Starts, StateColumns, Task

HOVER_N = 2.207
NEAR_M = 0.06
UP = np.array([0.0, 0.0, 1.0])


def reset(rng: np.random.Generator, count: int) -> Starts:
    start = rng.uniform((-0.8, -0.8, 0.6), (0.8, 0.8, 1.6), (count, 3))
    goal = rng.uniform((-0.8, -0.8, 0.6), (0.8, 0.8, 1.6), (count, 3))
    upright = np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))
    return Starts(np.concatenate([start, upright], axis=1), {"goal_position": goal})


def to_go(channels: Channels) -> np.ndarray:
    return channels["goal_position"] - channels["position"]


def distance(channels: Channels) -> np.ndarray:
    return np.linalg.norm(to_go(channels), axis=-1)


def in_body(vector: np.ndarray, channels: Channels) -> np.ndarray:
    return turned(conjugate(channels["orientation"]), vector)


def up_in_body(channels: Channels) -> np.ndarray:
    return in_body(np.broadcast_to(UP, channels["position"].shape), channels)


def reward(channels: Channels) -> np.ndarray:
    spin = np.square(channels["velocity:orientation"]).sum(axis=-1)
    gap, tilt = distance(channels), 1.0 - up_in_body(channels)[..., 2]
    effort = np.square(channels["action"]).mean(axis=-1)
    return (
        1.0 - 0.5 * np.minimum(gap, 2.0) + 0.5 * np.exp(-((gap / 0.1) ** 2)) - 0.2 * tilt - 0.005 * spin - 0.05 * effort
    )


def crashed(channels: Channels) -> np.ndarray:
    return (up_in_body(channels)[..., 2] < 0.2) | (distance(channels) > 3.0) | (channels["position"][..., 2] < 0.05)


def offset(column: int) -> ProgressFigure:
    return ProgressFigure("xyz"[column], lambda channels: -to_go(channels)[..., column], "m", "position")


TASK = Task(
    terms=(
        ObservationTerm(
            "goal", 3, "m", "body", ("goal_position", "position", "orientation"), lambda c: in_body(to_go(c), c)
        ),
        ObservationTerm(
            "velocity",
            3,
            "m/s",
            "body",
            ("velocity:position", "orientation"),
            lambda c: in_body(c["velocity:position"], c),
        ),
        ObservationTerm("up", 3, "1", "body", ("orientation",), up_in_body),
        ObservationTerm("angular velocity", 3, "rad/s", "body", ("velocity:orientation",)),
        ObservationTerm("last action", 4, "1", "body", ("action",)),
    ),
    goal=("goal_position",),
    action=AbsoluteAction((0.0,) * 4, (2 * HOVER_N,) * 4),
    reset=reset,
    reward=reward,
    failure=crashed,
    figures=(*map(offset, range(3)), ProgressFigure("distance", distance, "m", "position", NEAR_M, axis=False)),
    states=StateColumns(
        ("x", "y", "z", "up_x", "up_y"),
        lambda channels: np.concatenate([channels["position"], up_in_body(channels)[..., :2]], axis=-1),
        (0.002, 0.002, 0.002, 0.003, 0.003),
    ),
    plane=Plane(("x", "y"), "m", lambda channels: channels["position"][..., :2], (0.0, 0.0), 1.0),
    training={"ppo": {"train_steps": 2_000_000, "further_steps": 800_000}},
)
