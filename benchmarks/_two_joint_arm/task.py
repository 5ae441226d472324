"""Bring the tool to a place in the plane."""

import numpy as np

from rsr.scenarios import AbsoluteAction, Channels, ObservationTerm, ProgressFigure, Starts, StateColumns, Task

UPPER_M, FORE_M = 0.25, 0.2
ACTION = AbsoluteAction(lower=(-4.0, -2.0), upper=(4.0, 2.0))


def tool(channels: Channels) -> dict[str, np.ndarray]:
    shoulder, both = channels["joint_position"][..., 0], channels["joint_position"].sum(axis=-1)
    x = UPPER_M * np.cos(shoulder) + FORE_M * np.cos(both)
    y = UPPER_M * np.sin(shoulder) + FORE_M * np.sin(both)
    return {"tool_position": np.stack([x, y], axis=-1)}


def distance(channels: Channels) -> np.ndarray:
    return np.linalg.norm(channels["tool_position"] - channels["target_position"], axis=-1)


def reset(rng: np.random.Generator, count: int) -> Starts:
    qpos = rng.uniform(-0.6, 0.6, (count, 2))
    goal = tool({"joint_position": rng.uniform(-0.8, 0.8, (count, 2))})
    return Starts(qpos, {"target_position": goal["tool_position"]})


TASK = Task(
    terms=(
        ObservationTerm("joints", 2, "rad", "joint", ("joint_position",)),
        ObservationTerm("speeds", 2, "rad/s", "joint", ("velocity:joint_position",)),
        ObservationTerm("tool", 2, "m", "world", ("tool_position",)),
        ObservationTerm("target", 2, "m", "world", ("target_position",)),
        ObservationTerm("last action", 2, "1", "joint", ("action",)),
    ),
    goal=("target_position",),
    action=ACTION,
    reset=reset,
    reward=lambda channels: -distance(channels),
    figures=(ProgressFigure("distance", distance, "m", "joint_position", tolerance=0.03, axis=False),),
    states=StateColumns(("shoulder", "elbow"), lambda channels: channels["joint_position"], (0.001, 0.001)),
    derived=tool,
)
