"""Sensors whose zero was set anew for each episode: a constant that belongs to the recording, not to the robot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rsr.scenarios.scenario import Observed, Scenario
from rsr.sessions import Episode


def zeroed(scenario: Scenario) -> tuple[Observed, ...]:
    """Channels whose zero differs from episode to episode; zeros [Z] are their columns, one after the other."""
    return tuple(observed for observed in scenario.observed if observed.zero_std > 0)


def zero_std(scenario: Scenario) -> np.ndarray:
    """[Z], how far zeros lie from 0, in the channels' units."""
    return np.array([observed.zero_std for observed in zeroed(scenario) for _ in observed.qpos])


def zero_coordinates(scenario: Scenario) -> np.ndarray:
    """[Z], the index into qpos of each zero."""
    return np.array([index for observed in zeroed(scenario) for index in observed.qpos], int)


def without_zeros(scenario: Scenario, episode: Episode, zeros: np.ndarray) -> Episode:
    """A recording [T] freed of its zeros [Z]: what its sensors show when they are right."""
    values, taken = dict(episode.values), 0
    for observed in zeroed(scenario):
        name, width = observed.channel.name, observed.channel.width
        values[name] = episode[name] - zeros[taken : taken + width]
        taken += width
    return replace(episode, values=values) if taken else episode
