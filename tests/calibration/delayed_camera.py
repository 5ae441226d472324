"""push_cube with a delayed camera: the scenario with the delay as a parameter, and such recordings."""

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
def declared() -> Scenario:
    """Add a parameter to push_cube: the delay of the camera."""
    plain = push_cube()
    delayed = Parameter("camera_lag", 0.0, -0.1, 0.1, "s", 2.0, "linear", 0.02, "delay of the camera")
    space = ParameterSpace((*plain.space, delayed))
    return replace(plain, space=space, sensor_delays=tuple((name, len(space) - 1) for name in CHANNELS))


@cache
def delayed_recording(rows: int = 1, episodes: int = 12, steps: int = 80, seed: int = 0) -> Session:
    """Recordings in which the camera shows the cube as it was some rows before."""
    session = recording(episodes=episodes, steps=steps, seed=seed)
    held = np.maximum(np.arange(steps + 1) - rows, 0)
    delayed = [
        replace(episode, values={**episode.values, **{name: episode[name][held] for name in CHANNELS}})
        for episode in session.episodes
    ]
    return replace(session, episodes=tuple(delayed))
