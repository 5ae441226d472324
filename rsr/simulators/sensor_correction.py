"""Sensor correction of recordings: delays, gains and biases that are parameters, and biases of single episodes.

A bias of one episode is in no calibration made from others. It is estimated from the episode's first
`Scenario.bias_window_s` with the parameters under evaluation, and only later rows are compared with predictions:
no row serves both.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rsr.scenarios import (
    Scenario,
    bias_free,
    bias_std,
    biased_coordinates,
    difference,
    on_time,
    rows_of,
    unscaled,
    without_biases,
)
from rsr.sessions import Episode
from rsr.simulators.mujoco import Simulator

ITERATIONS = 6
STEP = 0.1
"""Half of the distance of two points compared, in `bias_std`s."""
ROBUST_SCALES = 3.0
"""Differences beyond this many `_SCALE`s count linearly."""
_SCALE = 0.03
"""Scale of differences, in `bias_std`s: about the size of what a bias cannot explain."""


def correct_sensors(
    scenario: Scenario, simulator: Simulator, episodes: Sequence[Episode], params: np.ndarray
) -> list[Episode]:
    """Correct sensor delays, gains and biases of episodes with parameters [P]; returns the rows to compare with."""
    # Delays first: a bias estimated from readings of another time would absorb motion.
    undelayed = [on_time(scenario, unscaled(scenario, episode, params), params) for episode in episodes]
    if not bias_free(scenario):
        return undelayed
    ends = [_bias_window_end(scenario, episode) for episode in undelayed]
    biases = estimate_biases(scenario, simulator, undelayed, params, ends)
    corrected = [without_biases(scenario, episode, bias) for episode, bias in zip(undelayed, biases, strict=True)]
    return [rows_of(episode, end, len(episode)) for episode, end in zip(corrected, ends, strict=True)]


def _bias_window_end(scenario: Scenario, episode: Episode) -> int:
    """Find the first row after `bias_window_s`, or the middle of a short episode."""
    return min(round(scenario.bias_window_s / scenario.control_dt_s), len(episode) // 2)


def estimate_biases(
    scenario: Scenario,
    simulator: Simulator,
    episodes: Sequence[Episode],
    params: np.ndarray,
    ends: Sequence[int],
) -> np.ndarray:
    """Estimate biases [E, Z] with which a simulator predicts the first `ends` rows of each episode best.

    Gauss-Newton with robust weights, under a Gaussian prior of `bias_std`; without information (an arm that dry
    friction holds) they stay 0.
    """
    windows = _BiasWindows.of(scenario, episodes, ends)
    std = bias_std(scenario)
    biases = np.zeros((len(episodes), len(std)))
    if not len(windows.row):
        return biases
    for _ in range(ITERATIONS):
        errors, slopes = windows.linearised(simulator, params, biases)
        biases = _solved(errors, slopes, biases / std, windows.episode) * std
    return biases


def _solved(errors: np.ndarray, slopes: np.ndarray, biases: np.ndarray, episodes: np.ndarray) -> np.ndarray:
    """Take one weighted Gauss-Newton step for each episode: biases [E, Z] in units of `bias_std`.

    Args:
        errors: [N, R], in scales.
        slopes: [N, R, Z].
    """
    # Pseudo-Huber weights; divided by R because the rows of a window share its initial-state error.
    weights = 1.0 / np.sqrt(1.0 + np.square(errors / ROBUST_SCALES)) / errors.shape[1]
    solved = biases.copy()
    for episode in np.unique(episodes):
        mine = episodes == episode
        weighted = slopes[mine] * weights[mine][..., None]
        # Normal equations (J'WJ + I) step = J'Wr + b: the identity and b are the prior's, whose std is one here.
        information = np.einsum("nrz,nry->zy", weighted, slopes[mine]) + np.eye(biases.shape[1])
        gradient = np.einsum("nrz,nr->z", weighted, errors[mine]) + biases[episode]
        solved[episode] = biases[episode] - np.linalg.solve(information, gradient)
    # Four standard deviations: a diverging step of an unstable simulation must not leave the linear region.
    return np.clip(solved, -4.0, 4.0)


class _BiasWindows:
    """Consecutive windows [N] of the beginnings of episodes."""

    def __init__(
        self, scenario: Scenario, episodes: Sequence[Episode], places: Sequence[tuple[int, int]], steps: int
    ) -> None:
        self.scenario = scenario
        self.episode = np.array([index for index, _ in places], int)
        self.row = np.array([row for _, row in places], int)
        states = [scenario.states(episode) for episode in episodes]
        self._starts = np.array([states[index][row] for index, row in places])
        self._commands = np.array([scenario.commands_from(episodes[index], row, steps) for index, row in places])
        self._real = {
            observed.channel.name: np.array(
                [episodes[index][observed.channel.name][row + 1 : row + 1 + steps] for index, row in places]
            )
            for observed in bias_free(scenario)
        }

    @classmethod
    def of(cls, scenario: Scenario, episodes: Sequence[Episode], ends: Sequence[int]) -> _BiasWindows:
        # One length for all episodes, so that all windows are one batch; the shortest beginning decides.
        steps = min(scenario.window_steps, *(max(1, end - scenario.history_steps - 1) for end in ends))
        places = [
            (index, row) for index, end in enumerate(ends) for row in range(scenario.history_steps, end - steps, steps)
        ]
        return cls(scenario, episodes, places, steps)

    def linearised(self, simulator: Simulator, params: np.ndarray, biases: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute errors [N, R] and their derivatives [N, R, Z] by the biases, both in scales."""
        # One batch: the point itself, then each bias of all episodes at once one step up and one step down. Episodes
        # do not share biases, so one simulation a bias serves all.
        std = bias_std(self.scenario)
        size = len(std)
        offsets = STEP * np.concatenate([np.zeros((1, size)), np.eye(size), -np.eye(size)])
        errors = self._errors(simulator, params, [biases + offset * std for offset in offsets])
        slopes = (errors[1 : size + 1] - errors[size + 1 :]) / (2 * STEP)
        return errors[0], np.moveaxis(slopes, 0, -1)

    def _errors(self, simulator: Simulator, params: np.ndarray, biases: Sequence[np.ndarray]) -> np.ndarray:
        """Compute simulated less recorded readings [K, N, R] for each of K sets of biases [E, Z]."""
        scenario, count = self.scenario, len(biases)
        starts = np.tile(self._starts, (count, 1))
        each = np.concatenate([bias[self.episode] for bias in biases])
        # The true initial state is the reading less its bias; so are the readings compared with.
        starts[:, biased_coordinates(scenario)] -= each
        after = simulator.rollout(starts, np.tile(self._commands, (count, 1, 1)), params)[:, 1:]
        measured, parts, taken = scenario.measure(after), [], 0
        for observed in bias_free(scenario):
            name, width = observed.channel.name, observed.channel.width
            real = np.tile(self._real[name], (count, 1, 1)) - each[:, None, taken : taken + width]
            error = difference(observed.kind, real, measured[name]) / (_SCALE * observed.bias_std)
            parts.append(np.nan_to_num(error, nan=1e3, posinf=1e3, neginf=-1e3).reshape(count, len(self.row), -1))
            taken += width
        return np.concatenate(parts, axis=-1)
