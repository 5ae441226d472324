"""The tool of an arm goes to a point and stays there."""

import numpy as np

import rsr

HOME = np.array([0.0, -1.57, 1.57, 0.5, 0.0, 0.3])  # of the joints in the MJCF's order, where episodes begin, ...
SPREAD = np.array([0.9, 0.5, 0.5, 0.5, 0.5, 0.0])  # ... so far to each side
LOWER, UPPER = np.array([-0.20, -0.42, 0.06]), np.array([0.20, -0.20, 0.26])  # box of goals
NEAR_M = 0.015


def reset(rng: np.random.Generator, count: int) -> rsr.Starts:
    joints = HOME + SPREAD * rng.uniform(-1, 1, (count, len(HOME)))
    return rsr.Starts(joints, {"goal_position": rng.uniform(LOWER, UPPER, (count, 3))})


def to_go(c: dict[str, np.ndarray]) -> np.ndarray:
    return c["goal_position"] - c["tool_position"]


def ahead(c: dict[str, np.ndarray]) -> np.ndarray:
    return c["setpoint"] - c["joint_position"]


def distance(c: dict[str, np.ndarray]) -> np.ndarray:
    return np.linalg.norm(to_go(c), axis=-1)


def reward(c: dict[str, np.ndarray]) -> np.ndarray:
    gap, speed = distance(c), np.linalg.norm(c["velocity:joint_position"], axis=-1)
    return -2.0 * gap + 0.5 * np.exp(-((gap / 0.02) ** 2)) - 0.01 * speed - 0.02 * np.square(c["action"]).mean(-1)


def reach(scenario: rsr.Scenario) -> rsr.Task:
    """The task of an arm, whose number of joints and ranges of commands are in its model."""
    lower, upper = scenario.base_model.actuator_ctrlrange.T
    joints = len(lower)
    return rsr.Task(
        terms=(
            rsr.ObservationTerm("joints", joints, "rad", "joint", ("joint_position",)),
            rsr.ObservationTerm("velocity", joints, "rad/s", "joint", ("velocity:joint_position",)),
            rsr.ObservationTerm("ahead", joints, "rad", "joint", ("setpoint", "joint_position"), ahead),
            rsr.ObservationTerm("last action", joints, "1", "joint", ("action",)),
            rsr.ObservationTerm("tool", 3, "m", "world", ("tool_position",)),
            rsr.ObservationTerm("to go", 3, "m", "world", ("goal_position", "tool_position"), to_go),
        ),
        goal=("goal_position",),
        action=rsr.DisplacementAction((0.08,) * joints, tuple(lower.tolist()), tuple(upper.tolist())),
        reset=reset,
        reward=reward,
        figures=(
            *(rsr.ProgressFigure("xyz"[i], lambda c, i=i: -to_go(c)[..., i], "m", "tool_position") for i in range(3)),
            rsr.ProgressFigure("distance", distance, "m", "tool_position", NEAR_M, axis=False),
        ),
        training={"ppo": {"train_steps": 600_000, "further_steps": 500_000}},
    )


TASK = reach
