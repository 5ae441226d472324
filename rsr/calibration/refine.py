"""The last steps of every method, which average over the ripples of contact.

Contact makes the misfit ripple: at the scale of one ripple, slopes say nothing about the parameters, and an
optimiser stops in whichever dent it meets. So residuals are regressed on points scattered as wide as the estimate is
uncertain (statistical linearisation), and Gauss-Newton steps are taken with that slope. Two-point differences,
fine or coarse, gave intervals 3 to 30 times too narrow where only a combination of parameters is known; this does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.calibration.loss import Loss
from rsr.progress import Advance

SIMULATIONS = 64 * 64
"""Of one regression, windows times points: over many windows ripples average out by themselves."""
POINTS = 64
"""In one regression, at most; at least four times as many as there are parameters."""
ROUNDS = 3
FIRST_SPREAD = 0.3
_SPREADS = (0.02, 1.0)
"""First, smallest and largest scatter along any direction, in standard deviations of the prior."""


@dataclass(frozen=True)
class Slope:
    """Residuals as a linear function of the point, around a centre.

    Args:
        centre: [P].
        misfits: [W, R] at the centre, ripples averaged out.
        sensitivities: [W, R, P].
    """

    centre: np.ndarray
    misfits: np.ndarray
    sensitivities: np.ndarray

    @property
    def precision(self) -> np.ndarray:
        """[P, P], Gauss-Newton: of the data and of the prior, whose own is one."""
        flat = self.sensitivities.reshape(-1, len(self.centre))
        return flat.T @ flat + np.eye(len(self.centre))

    def step(self) -> np.ndarray:
        """Where the linearised loss has its minimum, from the centre [P]."""
        gradient = np.einsum("wrp,wr->p", self.sensitivities, self.misfits) + self.centre
        return -np.linalg.solve(self.precision, gradient)


def linearise(loss: Loss, centre: np.ndarray, covariance: np.ndarray, rng: np.random.Generator) -> Slope:
    """Regress the residuals on points scattered around a centre [P] with a covariance [P, P], kept in moderation."""
    sizes, axes = np.linalg.eigh(covariance)
    scatter = axes * np.clip(np.sqrt(np.maximum(sizes, 0.0)), *_SPREADS)
    drawn = rng.normal(size=(_pairs(loss), len(centre))) @ scatter.T
    points = np.clip(centre + np.concatenate([drawn, -drawn]), *loss.bounds.T)
    misfits = loss.misfits(points)
    design = np.concatenate([np.ones((len(points), 1)), points - centre], axis=1)
    fitted = (np.linalg.pinv(design) @ misfits.reshape(len(points), -1)).reshape(-1, *misfits.shape[1:])
    return Slope(centre, fitted[0], np.moveaxis(fitted[1:], 0, -1))


def _pairs(loss: Loss) -> int:
    """How many pairs of opposite points a regression takes."""
    affordable = SIMULATIONS // max(1, len(loss.windows))
    return min(POINTS, max(affordable, 4 * len(loss.bounds))) // 2


def refine(loss: Loss, point: np.ndarray, seed: int, advance: Advance) -> tuple[np.ndarray, Slope]:
    """Improve a point [P]; returns it with the slope around it. The last two centres are averaged."""
    rng = np.random.default_rng(seed)
    covariance = FIRST_SPREAD**2 * np.eye(len(point))
    centres = [point]
    for done in range(ROUNDS):
        slope = linearise(loss, centres[-1], covariance, rng)
        centres.append(np.clip(centres[-1] + _within(slope.step(), covariance), *loss.bounds.T))
        covariance = np.linalg.inv(slope.precision)
        advance((done + 1) / ROUNDS, "averaging over ripples")
    return np.mean(centres[-2:], axis=0), slope


def _within(step: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Shorten a step to where the points were: beyond them the regression says nothing."""
    length = np.sqrt(step @ np.linalg.solve(covariance, step))
    return step * min(1.0, np.sqrt(len(step)) / max(length, 1e-12))
