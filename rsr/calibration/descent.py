"""Levenberg-Marquardt on a `Loss`: steps from sensitivities, trial points in C, several dampings at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rsr.calibration.loss import Loss
from rsr.calibration.sensitivity import Slopes

FIRST_DAMPING = 0.01
DAMPINGS = (0.1, 1.0, 10.0)
"""Multiples of the present damping, all tried after one Jacobian: trial points are cheap in C."""
LONGEST_STEP = 1.0
"""Of any parameter, in standard deviations of the prior: beyond, a linearisation of contact says nothing."""
SMALL_STEP = 0.05
"""Standard deviations of the prior."""
_WORST_DAMPING = 1e2

Count = Callable[[Loss, int, float], None]
"""Told of every evaluation: the loss, how many points, and the lowest value among them."""


@dataclass(frozen=True)
class Descent:
    """Where a descent ended: point [P], its loss, its Jacobian's [P, P] precision, and whether steps became small."""

    point: np.ndarray
    loss: float
    precision: np.ndarray
    converged: bool


def descend(loss: Loss, slopes: Slopes, starts: np.ndarray, iterations: int, tolerance: float, count: Count) -> Descent:
    """Minimise a loss from the lowest of some starts [S, P], inside its bounds.

    Args:
        tolerance: converged when the loss falls by less than this share and no parameter moves by more than
            `SMALL_STEP`.
        count: told of every evaluation; a Jacobian is one point, the trajectories it is taken along.
    """
    begun = loss.residuals(starts)
    lowest = int(np.square(begun).sum(axis=1).argmin())
    point, values, damping, converged = starts[lowest], begun[lowest], FIRST_DAMPING, False
    count(loss, len(starts), _half_square(values))
    precision = np.eye(len(point))
    for _ in range(iterations):
        sensitivities = slopes(loss, point)
        count(loss, 1, _half_square(values))
        precision = sensitivities.T @ sensitivities
        step = _best_step(loss, point, values, sensitivities, damping, count)
        if step is None:
            converged = True
            break
        fall = 1.0 - _half_square(step.values) / _half_square(values)
        moved = np.abs(step.point - point).max()
        point, values, damping = step.point, step.values, max(step.damping, 1e-8)
        if fall < tolerance and moved < SMALL_STEP:
            converged = True
            break
    return Descent(point, _half_square(values), precision, converged)


@dataclass(frozen=True)
class _Step:
    point: np.ndarray
    values: np.ndarray
    damping: float


def _best_step(
    loss: Loss, point: np.ndarray, values: np.ndarray, slopes: np.ndarray, damping: float, count: Count
) -> _Step | None:
    """The best of steps with different damping, or None where none goes down."""
    while damping <= _WORST_DAMPING:
        dampings = damping * np.array(DAMPINGS)
        trials = np.array([_damped(loss, point, values, slopes, each) for each in dampings])
        tried = loss.residuals(trials)
        losses = 0.5 * np.square(tried).sum(axis=1)
        best = int(losses.argmin())
        count(loss, len(trials), float(losses[best]))
        if losses[best] < _half_square(values):
            return _Step(trials[best], tried[best], float(dampings[best]))
        damping *= 100.0 * max(DAMPINGS)
    return None


def _half_square(values: np.ndarray) -> float:
    return 0.5 * float(values @ values)


def _damped(loss: Loss, point: np.ndarray, values: np.ndarray, slopes: np.ndarray, damping: float) -> np.ndarray:
    """One Levenberg-Marquardt step; parameters that a bound holds back are left out of it."""
    gradient, precision = slopes.T @ values, slopes.T @ slopes
    lower, upper = loss.bounds.T
    free = ~((point <= lower) & (gradient > 0) | (point >= upper) & (gradient < 0))
    step = np.zeros(len(point))
    inner = precision[np.ix_(free, free)]
    step[free] = -np.linalg.solve(inner + damping * np.diag(np.diag(inner)), gradient[free])
    step *= min(1.0, LONGEST_STEP / max(np.abs(step).max(), 1e-12))
    return np.clip(point + step, lower, upper)
