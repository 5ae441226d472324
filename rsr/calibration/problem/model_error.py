"""Model error: by how much a simulator is still wrong that fits best, of each channel and growing with time.

No model is right up to sensor noise. A residual t steps after a window's start has the variance noise^2 + error(t)^2,
and error(t) never shrinks, for simulations only drift away. It is estimated from the residuals themselves, in turn with
the fit (iteratively reweighted least squares); `noise` stays what the sensor's data sheet says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import erfcx

from rsr.scenarios import Scenario

if TYPE_CHECKING:
    from rsr.calibration.problem.loss import Loss

ROBUST_SCALES = 1.345
"""Residuals beyond this many scales count linearly instead of quadratically (pseudo-Huber): tosses that bounce
otherwise than simulated say little. With Gaussian errors it costs 5 % of the information (Huber 1964)."""
ASSUMED_NOISES = 3.0
"""Before anything is estimated: a simulator may be wrong by this many standard deviations of a channel's noise."""
_ITERATIONS, _TINY = 30, 1e-300
_GAUSSIAN = ROBUST_SCALES**2 * (1.0 - np.sqrt(np.pi / 2) * ROBUST_SCALES * erfcx(ROBUST_SCALES / np.sqrt(2)))
"""Mean of psi(z)^2 = z^2 / (1 + (z / d)^2) over a standard normal z."""


@dataclass(frozen=True)
class ModelError:
    """What is estimated of the residuals of a fit.

    Args:
        channels: observed channel -> [T], standard deviation of the model's error in each step, in the channel's unit.
        rows_as_one: how many rows carry as much information as one that is independent, for the errors of a window
            stay, and windows overlap.
    """

    channels: Mapping[str, np.ndarray]
    rows_as_one: float

    @classmethod
    def of(cls, loss: Loss, point: np.ndarray) -> ModelError:
        """Estimate it from the residuals at a point [P]."""
        left, inside, channels, scaled = loss.differences(point), loss.windows.inside, {}, []
        for observed in loss.scenario.observed:
            noise, errors = observed.noise, left[observed.channel.name]
            # Negative by luck where the model is right: regressed first, or what is above by luck alone would count.
            grown = np.maximum(_growing(mean_square(errors, inside) - noise**2, inside.sum(axis=0)), 0.0)
            channels[observed.channel.name] = np.sqrt(grown)
            scaled.append(errors / np.sqrt(noise**2 + grown)[:, None])
        return cls(channels, _rows_as_one(np.concatenate(scaled, axis=-1), inside) * loss.windows.overlap)


def assumed_scales(scenario: Scenario) -> dict[str, float]:
    """Standard deviation of each channel's residuals in its unit, before a fit has estimated the model's error."""
    return {each.channel.name: float(np.hypot(1.0, ASSUMED_NOISES) * each.noise) for each in scenario.observed}


def robust_weights(scaled: np.ndarray) -> np.ndarray:
    """Weights of scaled residuals in reweighted least squares with the pseudo-Huber loss."""
    return 1.0 / np.sqrt(1.0 + np.square(scaled / ROBUST_SCALES))


def _growing(variance: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """Variance [T] that never shrinks, nearest to a measured one [T] of so many windows [T]."""
    # Monotone regression pools steps; where windows are few, that of a single one is luck. Of steps that no window
    # reaches, all episodes being shorter, nothing is known: they keep the last one's.
    reached = int(np.count_nonzero(windows))
    grown = isotonic_regression(variance[:reached], weights=windows[:reached]).x
    return np.pad(grown, (0, len(variance) - reached), mode="edge")


def mean_square(errors: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Variance [T] of errors [W, T, C], to which no single window contributes more than a bounded share."""
    # Huber's Proposal 2 (1964): the mean of psi(r / s)^2 is what it is for Gaussian errors. A fixed point in s^2.
    errors = np.where(inside[..., None], errors, 0.0)
    total = np.maximum(inside.sum(axis=0) * errors.shape[2], 1) * _GAUSSIAN
    variance = np.maximum(np.square(errors).sum(axis=(0, 2)) / total, _TINY)
    for _ in range(_ITERATIONS):
        bounded = errors * robust_weights(errors / np.sqrt(variance)[:, None])
        variance = np.maximum(np.square(bounded).sum(axis=(0, 2)) / total, _TINY)
    return variance


def _rows_as_one(scaled: np.ndarray, inside: np.ndarray) -> float:
    """Rows [W, T, C] that count as one: how much wider a window's mean scatters than that of independent rows."""
    left = scaled * robust_weights(scaled) * inside[..., None]
    lengths = inside.sum(axis=1)[:, None]
    # Var(sum of n rows) = n Var(row) if they are independent, n^2 Var(row) if they are equal.
    ratio = np.square(left.sum(axis=1)).sum() / max(float(np.square(left).sum()), _TINY)
    return float(np.clip(ratio, 1.0, lengths.max()))
