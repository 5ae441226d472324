"""Recordings freed of what is wrong with the sensors: clocks that are late, zeros that were set anew.

Zeros belong to one episode, so no calibration made from others knows them. They are estimated from the beginning of
each episode (`Scenario.zero_s`), with whatever parameters are to be judged, and only what follows is judged: no row
that a prediction is compared with has any part in it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rsr.scenarios import Scenario, difference
from rsr.scenarios.clocks import on_time, rows_of
from rsr.scenarios.zeros import without_zeros, zero_coordinates, zero_std, zeroed
from rsr.sessions import Episode
from rsr.simulators.contract import Simulator

ITERATIONS = 6
STEP = 0.1
"""Half of the distance of two points compared, in `zero_std`s."""
ROBUST_SCALES = 3.0
"""Differences beyond this many `_SCALE`s count linearly."""
_SCALE = 0.03
"""What differences are measured in, in `zero_std`s: what a zero cannot explain is of about this size."""


def put_right(
    scenario: Scenario, simulator: Simulator, episodes: Sequence[Episode], params: np.ndarray
) -> list[Episode]:
    """What of these episodes is to be judged with parameters [P], freed of late clocks and wrong zeros."""
    timely = [on_time(scenario, episode, params) for episode in episodes]
    if not zeroed(scenario):
        return timely
    ends = [_judged_from(scenario, episode) for episode in timely]
    zeros = estimate_zeros(scenario, simulator, timely, params, ends)
    freed = [without_zeros(scenario, episode, zero) for episode, zero in zip(timely, zeros, strict=True)]
    return [rows_of(episode, end, len(episode)) for episode, end in zip(freed, ends, strict=True)]


def _judged_from(scenario: Scenario, episode: Episode) -> int:
    """First row that is judged: after `zero_s`, or in the middle of a short episode."""
    return min(round(scenario.zero_s / scenario.control_dt_s), len(episode) // 2)


def estimate_zeros(
    scenario: Scenario,
    simulator: Simulator,
    episodes: Sequence[Episode],
    params: np.ndarray,
    ends: Sequence[int],
) -> np.ndarray:
    """Zeros [E, Z] with which a simulator predicts the first `ends` rows of each episode best, window by window.

    Gauss-Newton with robust weights, under the prior that zeros lie within `zero_std`; where nothing tells them (an
    arm that dry friction holds) they stay 0.
    """
    pieces = _Pieces.of(scenario, episodes, ends)
    std = zero_std(scenario)
    zeros = np.zeros((len(episodes), len(std)))
    if not len(pieces.row):
        return zeros
    for _ in range(ITERATIONS):
        errors, slopes = pieces.linearised(simulator, params, zeros)
        zeros = _solved(errors, slopes, zeros / std, pieces.episode) * std
    return zeros


def _solved(errors: np.ndarray, slopes: np.ndarray, zeros: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """One weighted least-squares step for each episode: zeros [E, Z] in units of `zero_std`.

    Args:
        errors: [N, R], in scales.
        slopes: [N, R, Z].
    """
    weights = 1.0 / np.sqrt(1.0 + np.square(errors / ROBUST_SCALES)) / errors.shape[1]
    solved = zeros.copy()
    for episode in np.unique(owner):
        mine = owner == episode
        weighted = slopes[mine] * weights[mine][..., None]
        information = np.einsum("nrz,nry->zy", weighted, slopes[mine]) + np.eye(zeros.shape[1])
        gradient = np.einsum("nrz,nr->z", weighted, errors[mine]) + zeros[episode]
        solved[episode] = zeros[episode] - np.linalg.solve(information, gradient)
    return np.clip(solved, -4.0, 4.0)


class _Pieces:
    """Windows [N], one after the other, of the beginnings of episodes."""

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
            for observed in zeroed(scenario)
        }

    @classmethod
    def of(cls, scenario: Scenario, episodes: Sequence[Episode], ends: Sequence[int]) -> _Pieces:
        steps = min(scenario.window_steps, *(max(1, end - scenario.history_steps - 1) for end in ends))
        places = [
            (index, row) for index, end in enumerate(ends) for row in range(scenario.history_steps, end - steps, steps)
        ]
        return cls(scenario, episodes, places, steps)

    def linearised(self, simulator: Simulator, params: np.ndarray, zeros: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Errors [N, R] and their slopes [N, R, Z] in the zeros, both in scales."""
        std = zero_std(self.scenario)
        size = len(std)
        offsets = STEP * np.concatenate([np.zeros((1, size)), np.eye(size), -np.eye(size)])
        errors = self._errors(simulator, params, [zeros + offset * std for offset in offsets])
        slopes = (errors[1 : size + 1] - errors[size + 1 :]) / (2 * STEP)
        return errors[0], np.moveaxis(slopes, 0, -1)

    def _errors(self, simulator: Simulator, params: np.ndarray, zeros: Sequence[np.ndarray]) -> np.ndarray:
        """[K, N, R] for each of K sets of zeros [E, Z]: what is simulated, less what was recorded."""
        scenario, count = self.scenario, len(zeros)
        starts = np.tile(self._starts, (count, 1))
        each = np.concatenate([zero[self.episode] for zero in zeros])
        starts[:, zero_coordinates(scenario)] -= each
        after = simulator.rollout(starts, np.tile(self._commands, (count, 1, 1)), params)[:, 1:]
        measured, parts, taken = scenario.measure(after), [], 0
        for observed in zeroed(scenario):
            name, width = observed.channel.name, observed.channel.width
            real = np.tile(self._real[name], (count, 1, 1)) - each[:, None, taken : taken + width]
            error = difference(observed.kind, real, measured[name]) / (_SCALE * observed.zero_std)
            parts.append(np.nan_to_num(error, nan=1e3, posinf=1e3, neginf=-1e3).reshape(count, len(self.row), -1))
            taken += width
        return np.concatenate(parts, axis=-1)
