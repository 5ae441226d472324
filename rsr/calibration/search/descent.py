"""The contract of a search, and Levenberg-Marquardt, the descent that several searches share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rsr.calibration.problem import JacobianFunction, Loss
from rsr.calibration.uncertainty import information
from rsr.common import Advance

SearchStatus = Literal["converged", "budget spent"]


@dataclass(frozen=True)
class SearchResult:
    """Result of a search.

    Args:
        point: [P], in units of the prior.
        trace: [generations, 2], simulated physics steps so far and best loss.
        sensitivity: how derivatives were computed, if they were.
        remark: what a user should know of how it ended.
    """

    point: np.ndarray
    status: SearchStatus
    trace: np.ndarray
    sensitivity: str = ""
    remark: str = ""


Search = Callable[[Loss, int, int, Advance], SearchResult]
"""Minimise a loss: (loss, budget in evaluated points, seed, advance) -> SearchResult. Equal arguments, equal result."""


# Levenberg-Marquardt on a `Loss`: steps from a Jacobian, trial points in C, several dampings at once.

FIRST_DAMPING = 0.01
DAMPINGS = (0.1, 1.0, 10.0)
"""Multiples of the present damping, all tried after one Jacobian: trial points are cheap in C."""
LONGEST_STEP = 1.0
"""Of any parameter, in standard deviations of the prior: beyond, a linearisation of contact is not valid."""
SMALL_STEP = 0.05
"""Standard deviations of the prior."""
_WORST_DAMPING = 1e2

Count = Callable[[Loss, int, float], None]
"""Called after every evaluation: the loss, how many points, and the lowest value among them."""


@dataclass(frozen=True)
class Descent:
    """Result of a descent: point [P], its loss, its precision J'J [P, P], and whether steps became small."""

    point: np.ndarray
    loss: float
    precision: np.ndarray
    converged: bool


def descend(
    loss: Loss, slopes: JacobianFunction, initial: np.ndarray, iterations: int, tolerance: float, count: Count
) -> Descent:
    """Minimise a loss from the best of some initial points [S, P], inside its bounds.

    Args:
        tolerance: converged when the loss falls by less than this share and no parameter moves by more than
            `SMALL_STEP`.
        count: called after every evaluation; a Jacobian is one point, the trajectories it is taken along.
    """
    begun = loss.residuals(initial)
    lowest = int(np.square(begun).sum(axis=1).argmin())
    point, values, damping, converged = initial[lowest], begun[lowest], FIRST_DAMPING, False
    count(loss, len(initial), _half_square(values))
    precision = np.eye(len(point))
    for _ in range(iterations):
        sensitivities = slopes(loss, point)
        count(loss, 1, _half_square(values))
        precision = information(sensitivities)
        step = _best_step(loss, point, values, sensitivities, damping, count)
        if step is None:
            converged = True  # even a short, strongly damped step goes up: a minimum at this resolution
            break
        decrease = 1.0 - _half_square(step.values) / _half_square(values)
        moved = np.abs(step.point - point).max()
        point, values, damping = step.point, step.values, max(step.damping, 1e-8)
        # Both: along a narrow curved minimum the loss hardly falls while parameters still move far.
        if decrease < tolerance and moved < SMALL_STEP:
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
    """Try steps with several dampings; returns the best, or None where none decreases the loss."""
    while damping <= _WORST_DAMPING:
        dampings = damping * np.array(DAMPINGS)
        trials = np.array([_damped(loss, point, values, slopes, each) for each in dampings])
        tried = loss.residuals(trials)
        losses = 0.5 * np.square(tried).sum(axis=1)
        best = int(losses.argmin())
        count(loss, len(trials), float(losses[best]))
        if losses[best] < _half_square(values):
            return _Step(trials[best], tried[best], float(dampings[best]))
        # None of three decades helped: a rejected step says that the linear region is far smaller.
        damping *= 100.0 * max(DAMPINGS)
    return None


def _half_square(values: np.ndarray) -> float:
    return 0.5 * float(values @ values)


def _damped(loss: Loss, point: np.ndarray, values: np.ndarray, slopes: np.ndarray, damping: float) -> np.ndarray:
    """Take one Levenberg-Marquardt step; parameters that a bound blocks are left out (active set)."""
    # (J'J + damping diag(J'J)) step = -J'r: Marquardt's scaling, which does not depend on the parameters' units.
    gradient, precision = slopes.T @ values, information(slopes)
    lower, upper = loss.bounds.T
    free = ~((point <= lower) & (gradient > 0) | (point >= upper) & (gradient < 0))
    step = np.zeros(len(point))
    inner = precision[np.ix_(free, free)]
    step[free] = -np.linalg.solve(inner + damping * np.diag(np.diag(inner)), gradient[free])
    # Shorten as a whole, so that the direction stays.
    step *= min(1.0, LONGEST_STEP / max(np.abs(step).max(), 1e-12))
    return np.clip(point + step, lower, upper)
