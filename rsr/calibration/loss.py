"""What every method minimises: robust, scaled differences over windows, and the prior, as one residual vector.

Half the squared norm of the residuals is the loss, so that least-squares methods and population methods see the
same problem.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.calibration.contract import Prior
from rsr.calibration.windows import Windows
from rsr.scenarios import Scenario, residuals
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
    """

    scenario: Scenario
    simulator: Simulator
    windows: Windows
    prior: Prior

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
        count, windows = len(points), self.windows
        simulated = self.simulator.rollout(
            np.tile(windows.starts, (count, 1)),
            np.tile(windows.commands, (count, 1, 1)),
            np.repeat(self.values(points), len(windows), axis=0),
        )[:, 1:].reshape(count, len(windows), windows.steps, -1)
        errors = residuals(self.scenario, windows.real, self.scenario.measure(simulated))
        scales = channel_scales(self.scenario)
        parts = [(errors[name] / scale).reshape(count, len(windows), -1) for name, scale in scales.items()]
        # A window's rows share its start's error and are no independent witnesses: together they count as one row.
        return robust(np.concatenate(parts, axis=-1)) / np.sqrt(windows.steps)

    def residuals(self, points: np.ndarray) -> np.ndarray:
        """[K, W * R + P], the data's robust residuals and then the prior's."""
        return np.concatenate([self.misfits(points).reshape(len(points), -1), points], axis=1)

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """Losses [K] of points [K, P]."""
        return 0.5 * np.square(self.residuals(points)).sum(axis=1)


def channel_scales(scenario: Scenario) -> dict[str, float]:
    """What differences are measured in: noise and the model's expected error, in the channel's unit."""
    return {
        observed.channel.name: float(np.hypot(1.0, MODEL_ERROR_NOISES) * observed.noise)
        for observed in scenario.observed
    }


def robust(scaled: np.ndarray) -> np.ndarray:
    """Residuals whose half square is the pseudo-Huber loss d^2 (sqrt(1 + (r/d)^2) - 1) of the scaled differences."""
    scaled = np.clip(np.nan_to_num(scaled, nan=_WORST, posinf=_WORST, neginf=-_WORST), -_WORST, _WORST)
    return scaled * np.sqrt(2.0 / (1.0 + np.sqrt(1.0 + np.square(scaled / ROBUST_SCALES))))
