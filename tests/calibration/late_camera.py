"""push_cube with a camera whose clock is late: the scenario that knows of it, and recordings that show it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from rsr.scenarios import Parameter, ParameterSpace, Scenario
from rsr.sessions import Session
from tests.calibration.recordings import recording
from tests.push_samples import push_cube

CHANNELS = ("block_position", "block_orientation")


@cache
def knowing() -> Scenario:
    """push_cube with one more parameter: how late the camera is."""
    plain = push_cube()
    late = Parameter("camera_lag", 0.0, -0.1, 0.1, "s", 2.0, "linear", 0.02, "how late the camera is")
    space = ParameterSpace((*plain.space, late))
    return replace(plain, space=space, shifts=tuple((name, len(space) - 1) for name in CHANNELS))


@cache
def late_recording(rows: int = 1, episodes: int = 12, steps: int = 80, seed: int = 0) -> Session:
    """Recordings in which the camera shows the cube as it was some rows before."""
    session = recording(episodes=episodes, steps=steps, seed=seed)
    held = np.maximum(np.arange(steps + 1) - rows, 0)
    late = [
        replace(episode, values={**episode.values, **{name: episode[name][held] for name in CHANNELS}})
        for episode in session.episodes
    ]
    return replace(session, episodes=tuple(late))
