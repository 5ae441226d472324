"""Refinement, the last steps of every method: Gauss-Newton that averages over contact-induced roughness.

Contact makes the misfit rough: at that scale derivatives carry no information on the parameters, and an optimiser stops
in whichever local minimum it meets. So residuals are regressed on points scattered as wide as the estimate is uncertain
(statistical linearisation), and Gauss-Newton steps are taken with that slope. Two-point differences, fine or coarse,
gave intervals 3 to 30 times too narrow where only a combination of parameters is determined; this does not.
"""

from __future__ import annotations

import numpy as np

from rsr.calibration.problem import Linearisation, Loss, exact_linearisation, value_slopes
from rsr.common import Advance

SIMULATIONS = 64 * 64
"""Of one regression, windows times points: over many windows roughness averages out by itself."""
POINTS = 64
"""In one regression, at most, but for many parameters."""
POINTS_PER_PARAMETER = 4
"""In one regression, at least. Fewer points than parameters have many exact solutions, and a slope picked among them
is not the slope; about as many fit the roughness of contact as if it were slope."""
ROUNDS = 3
FIRST_SPREAD = 0.3
_SPREADS = (0.02, 1.0)
"""First, smallest and largest scatter along any direction, in standard deviations of the prior."""


def linearise(loss: Loss, centre: np.ndarray, covariance: np.ndarray, rng: np.random.Generator) -> Linearisation:
    """Regress the residuals on points scattered around a centre [P] with a covariance [P, P], its axes clipped.

    Where the loss is smooth its tangents say exactly what a regression estimates.
    """
    if loss.tangents is not None:
        return exact_linearisation(loss, centre)
    # Too narrow a scatter would measure roughness, too wide a one leaves the linear region.
    sizes, axes = np.linalg.eigh(covariance)
    scatter = axes * np.clip(np.sqrt(np.maximum(sizes, 0.0)), *_SPREADS)
    drawn = rng.normal(size=(_pairs(loss), len(centre))) @ scatter.T
    points = np.clip(centre + np.concatenate([drawn, -drawn]), *loss.bounds.T)
    # Opposite pairs: even terms (curvature) do not disturb the slope, only the value at the centre.
    misfits = loss.misfits(points)
    design = np.concatenate([np.ones((len(points), 1)), points - centre], axis=1)
    fitted = (np.linalg.pinv(design) @ misfits.reshape(len(points), -1)).reshape(-1, *misfits.shape[1:])
    return Linearisation(centre, fitted[0], np.moveaxis(fitted[1:], 0, -1))


def _pairs(loss: Loss) -> int:
    """Compute the number of pairs of opposite points in a regression."""
    affordable = SIMULATIONS // max(1, len(loss.windows))
    return max(min(POINTS, affordable), POINTS_PER_PARAMETER * len(loss.bounds)) // 2


def refine(loss: Loss, point: np.ndarray, seed: int, advance: Advance) -> tuple[np.ndarray, Linearisation]:
    """Improve a point [P]; returns it with the slope around it. The last two centres are averaged."""
    if loss.tangents is not None:
        end = descend_exactly(loss, point)
        return end, exact_linearisation(loss, end)
    rng = np.random.default_rng(seed)
    covariance = FIRST_SPREAD**2 * np.eye(len(point))
    centres = [point]
    for done in range(ROUNDS):
        slope = linearise(loss, centres[-1], covariance, rng)
        centres.append(np.clip(centres[-1] + _within(slope.step(), covariance), *loss.bounds.T))
        covariance = np.linalg.inv(slope.precision)
        advance((done + 1) / ROUNDS, "averaging contact-induced roughness")
    return np.mean(centres[-2:], axis=0), slope


def _within(step: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Shorten a step to where the points were: beyond them the regression is not valid."""
    # Mahalanobis length: the points' own is sqrt(P) on average.
    length = np.sqrt(step @ np.linalg.solve(covariance, step))
    return step * min(1.0, np.sqrt(len(step)) / max(length, 1e-12))


# Where the loss is smooth: Gauss-Newton with its tangents, along physical values instead of their logarithms.

EXACT, EXACT_STEPS = 1e-6, 12
"""The descent is done when the loss falls by less than this share, or after so many steps."""
_DAMPINGS = (0.0, 0.01, 0.1, 1.0, 10.0)
"""Levenberg-Marquardt, all tried at once."""
_LEAST_LEFT = 0.2
"""Share of a logarithmic value that a step leaves at least."""


def descend_exactly(loss: Loss, point: np.ndarray, steps: int = EXACT_STEPS) -> np.ndarray:
    """Minimise a loss by its tangents from a point [P], in so many steps at most."""
    lowest = float(loss(point[None])[0])
    for _ in range(steps):
        slope = exact_linearisation(loss, point)
        trials = moved_along_values(loss, point, np.array([slope.step(damping) for damping in _DAMPINGS]))
        losses = loss(trials)
        best, before = int(losses.argmin()), lowest
        if losses[best] >= before:
            break
        point, lowest = trials[best], float(losses[best])
        if before - lowest < EXACT * before:
            break
    return point


def moved_along_values(loss: Loss, point: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Move a point [P] by steps [K, P] of the physical values, each as long as it would be at the point.

    Where only a combination of damping, gain and friction is known, the loss is low along a line: straight in values,
    in which forces are linear, curved in logarithms.
    """
    values, space = loss.values(point), loss.scenario.space
    ends = values + value_slopes(loss, point) * steps
    positive = space.lower > 0.0
    ends = np.where(positive, np.maximum(ends, _LEAST_LEFT * values), ends)
    return np.clip(loss.points(np.clip(ends, space.lower, space.upper)), *loss.bounds.T)
