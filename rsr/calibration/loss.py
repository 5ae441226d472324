"""What every method minimises: robust, scaled differences over windows, and the prior, as one residual vector.

Half the squared norm of the residuals is the loss, so that least-squares methods and population methods see the
same problem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rsr.calibration.contract import Prior
from rsr.calibration.nuisance import StartSlopes, ZeroSlopes
from rsr.calibration.windows import Windows
from rsr.scenarios import Scenario, residuals
from rsr.scenarios.clocks import read_late, start_states
from rsr.simulators import Simulator

MODEL_ERROR_NOISES = 3.0
"""No simulator is exact: over a window it may be wrong by this many standard deviations of a channel's noise."""
ROBUST_SCALES = 3.0
"""Residuals beyond this many scales count linearly instead of quadratically (pseudo-Huber)."""
_WORST = 1e3
"""What a simulation that became unstable is charged, in scales."""


@dataclass(frozen=True)
class Loss:
    """The misfit of a simulator to windows, under a prior.

    Points [K, P] are in units of the prior, (coordinate - mean) / std: 1 is one standard deviation of what was known.

    Args:
        zeros: how differences answer to the sensors' zeros, where these differ from episode to episode.
        start_errors: how differences answer to errors of the states that windows begin in, where these count.
        origin: [P], where searches begin; the prior's mean by default.
    """

    scenario: Scenario
    simulator: Simulator
    windows: Windows
    prior: Prior
    zeros: ZeroSlopes | None = None
    origin: np.ndarray | None = None
    start_errors: StartSlopes | None = None

    @property
    def first(self) -> np.ndarray:
        """[P], where a search begins: inside the bounds."""
        return np.clip(np.zeros(len(self.prior.mean)) if self.origin is None else self.origin, *self.bounds.T)

    def shortened(self, steps: int) -> Loss:
        """The loss on the same windows, broken off after some control steps."""
        return self._cut(lambda part: part.shortened(steps))

    def thinned(self, count: int) -> Loss:
        """The loss on so many windows at most, spread evenly over all."""
        if len(self.windows) <= count:
            return self
        return self.take(np.linspace(0, len(self.windows) - 1, count).round().astype(int))

    def take(self, chosen: np.ndarray) -> Loss:
        """The loss on some of the windows, by index."""
        return self._cut(lambda part: part.take(chosen))

    def _cut(self, cut: Callable[[Any], Any]) -> Loss:
        """The loss with the same done to all that belongs to windows."""
        zeros, errors = self.zeros, self.start_errors
        return replace(self, windows=cut(self.windows), zeros=zeros and cut(zeros), start_errors=errors and cut(errors))

    @property
    def bounds(self) -> np.ndarray:
        """[P, 2], lower and upper."""
        space = self.scenario.space
        return np.stack([self.points(space.lower), self.points(space.upper)], axis=1)

    @property
    def steps_per_point(self) -> int:
        """Simulated physics steps one evaluation costs."""
        return len(self.windows) * self.windows.steps * self.scenario.substeps

    def points(self, values: np.ndarray) -> np.ndarray:
        """From physical units [..., P] to points."""
        return (self.scenario.space.to_coordinates(values) - self.prior.mean) / self.prior.std

    def values(self, points: np.ndarray) -> np.ndarray:
        """From points [..., P] to physical units; what rounding put outside the bounds is put back."""
        space = self.scenario.space
        return np.clip(space.to_values(self.prior.mean + self.prior.std * points), space.lower, space.upper)

    def misfits(self, points: np.ndarray) -> np.ndarray:
        """Robust residuals [K, W, R] of the data alone: all points on all windows in one rollout."""
        scaled = self._scaled(points)
        if self.zeros is not None:
            scaled = self.zeros.removed(_finite(scaled))
        # A window's rows share its start's error and are no independent witnesses: together they count as one row.
        return robust(scaled) / np.sqrt(self.windows.steps)

    def zeros_of(self, point: np.ndarray) -> np.ndarray:
        """Zeros [E, Z] that explain each episode best at a point [P], in `zero_std`s; E as in `windows.episode`."""
        if self.zeros is None:
            return np.zeros((int(self.windows.episode.max(initial=-1)) + 1, 0))
        return self.zeros.best(_finite(self._scaled(point[None])))[0]

    def _scaled(self, points: np.ndarray) -> np.ndarray:
        """Differences [K, W, R] in the channels' scales, less what errors of the starts explain."""
        scaled = scaled_differences(self.scenario, self.windows, self._simulated(points), self.values(points))
        return scaled if self.start_errors is None else self.start_errors.removed(_finite(scaled))

    def _simulated(self, points: np.ndarray) -> np.ndarray:
        """States [K, W, T + 1, n] of all points on all windows, in one rollout."""
        count, windows, values = len(points), self.windows, self.values(points)
        starts = np.concatenate([self.starts(each) for each in values])
        return self.simulator.rollout(
            starts, np.tile(windows.commands, (count, 1, 1)), np.repeat(values, len(windows), axis=0)
        ).reshape(count, len(windows), windows.steps + 1, -1)

    def starts(self, values: np.ndarray) -> np.ndarray:
        """States [W, n] in which simulations with parameters [P] begin; they depend on how late channels are."""
        if not self.scenario.shifts:
            return self.windows.starts
        return start_states(self.scenario, self.windows.around, values)

    def residuals(self, points: np.ndarray) -> np.ndarray:
        """[K, W * R + P], the data's robust residuals and then the prior's."""
        return np.concatenate([self.misfits(points).reshape(len(points), -1), points], axis=1)

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """Losses [K] of points [K, P]."""
        return 0.5 * np.square(self.residuals(points)).sum(axis=1)


def scaled_differences(scenario: Scenario, windows: Windows, states: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Differences [K, W, R] of states [K, W, T + 1, n] from what was measured, in the channels' scales.

    Args:
        values: [K, P]; they say how late channels are.
    """
    measured = scenario.measure(states)
    if scenario.shifts:
        late = [
            read_late(scenario, {n: rows[k] for n, rows in measured.items()}, each) for k, each in enumerate(values)
        ]
        measured = {name: np.stack([each[name] for each in late]) for name in measured}
    simulated = {name: rows[:, :, 1:] for name, rows in measured.items()}
    errors = residuals(scenario, windows.real, simulated)
    parts = [(errors[name] / scale).reshape(*states.shape[:2], -1) for name, scale in channel_scales(scenario).items()]
    return np.concatenate(parts, axis=-1)


def tangent_widths(scenario: Scenario) -> tuple[int, ...]:
    """Columns of each observed channel's differences."""
    return tuple(each.tangent_width for each in scenario.observed)


def channel_scales(scenario: Scenario) -> dict[str, float]:
    """What differences are measured in: noise and the model's expected error, in the channel's unit."""
    return {
        observed.channel.name: float(np.hypot(1.0, MODEL_ERROR_NOISES) * observed.noise)
        for observed in scenario.observed
    }


def robust(scaled: np.ndarray) -> np.ndarray:
    """Residuals whose half square is the pseudo-Huber loss d^2 (sqrt(1 + (r/d)^2) - 1) of the scaled differences."""
    scaled = _finite(scaled)
    return scaled * np.sqrt(2.0 / (1.0 + np.sqrt(1.0 + np.square(scaled / ROBUST_SCALES))))


def _finite(scaled: np.ndarray) -> np.ndarray:
    """What became unstable, or is unheard of, is charged `_WORST`."""
    return np.clip(np.nan_to_num(scaled, nan=_WORST, posinf=_WORST, neginf=-_WORST), -_WORST, _WORST)
