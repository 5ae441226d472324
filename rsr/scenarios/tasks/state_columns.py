"""State columns of a task that states none: what InfoGap compares are then the positions that the robot measures."""

from __future__ import annotations

import numpy as np

from rsr.common import turned
from rsr.scenarios.channels.observed import Observed
from rsr.scenarios.scenario import Scenario
from rsr.scenarios.tasks.task import Channels, StateColumns, Task, Value

MOST_COLUMNS = 12
"""Of a state: a transition has twice as many and the action, and densities of more columns need more recordings."""


def default_states(scenario: Scenario, task: Task) -> StateColumns:
    """The measured positions, those first that the task's figures are computed from, at most `MOST_COLUMNS` columns.

    Columns are continuous, so that a step is small wherever the robot moves little: angles of joints that may turn all
    around are given by cosine and sine, orientations by two of the body's axes.
    """
    observed = {each.channel.name: each for each in scenario.observed}
    order = dict.fromkeys((*(figure.channel for figure in task.figures), *observed))
    parts = [_columns(scenario, observed[name]) for name in order if name in observed]
    names = [name for part in parts for name in part.names]
    noise = [std for part in parts for std in part.noise]

    def compute(channels: Channels) -> np.ndarray:
        return np.concatenate([part.compute(channels) for part in parts], axis=-1)[..., :MOST_COLUMNS]

    return StateColumns(tuple(names[:MOST_COLUMNS]), compute, tuple(noise[:MOST_COLUMNS]))


def _columns(scenario: Scenario, observed: Observed) -> StateColumns:
    name = observed.channel.name
    if observed.kind == "quaternion":
        return _orientation(observed)
    columns = tuple(f"{name}.{column}" for column in observed.channel.columns)
    if observed.kind == "angle" and turns_all_around(scenario, observed):
        return _directions(observed, columns, lambda channels: channels[name])
    return StateColumns(columns, lambda channels: channels[name], (observed.noise,) * len(columns))


def _directions(observed: Observed, columns: tuple[str, ...], angles: Value) -> StateColumns:
    def compute(channels: Channels) -> np.ndarray:
        return np.concatenate([np.cos(angles(channels)), np.sin(angles(channels))], axis=-1)

    both = tuple(f"{part} of {column}" for part in ("cosine", "sine") for column in columns)
    return StateColumns(both, compute, (observed.noise,) * len(both))


def _orientation(observed: Observed) -> StateColumns:
    """One turn where the body cannot tilt, else its axes x and z in the world: unlike a quaternion, they never jump."""
    name, axis = observed.channel.name, observed.noise_axis
    if axis is not None:
        return _directions(observed, (f"{name}.turn",), lambda channels: _turn(channels[name], np.array(axis)))

    def compute(channels: Channels) -> np.ndarray:
        return np.concatenate([turned(channels[name], np.eye(3)[each]) for each in (0, 2)], axis=-1)

    columns = tuple(f"{name}.{each}{part}" for each in "xz" for part in "xyz")
    return StateColumns(columns, compute, (observed.noise,) * len(columns))


def _turn(quaternion: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Turn [..., 1] about an axis of the world of orientations [..., 4] (wxyz) that have turned about it alone."""
    return 2 * np.arctan2(quaternion[..., 1:] @ axis, quaternion[..., 0])[..., None]


def turns_all_around(scenario: Scenario, observed: Observed) -> bool:
    model = scenario.base_model
    joints = model.dof_jntid[list(observed.dofs)]
    return not model.jnt_limited[joints].all()
