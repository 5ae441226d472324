"""Method `sysid`: the optimiser of MuJoCo's system identification toolbox, with multi-start.

`mujoco.sysid.optimize` hands its work to `mujoco.minimize.least_squares` (Gauss-Newton with adaptive damping and box
constraints), which is called here. Residuals and their Jacobian are ours: the toolbox's `ModelSequences` compiles a
model for every evaluation, which is several times slower, and has no place for windows that begin at recorded states,
for a delay that reaches back before them, nor for a prior.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from mujoco import minimize

from rsr.calibration.problem import Loss, jacobian
from rsr.calibration.search.descent import SearchResult
from rsr.common import Advance

SCREENED = 24
"""Points drawn from the prior; the best of them, in turn, are initial points."""
STAGES = ((0.34, 0.3), (1.0, 0.3), (1.0, 0.1))
"""(share of the window, difference step in standard deviations of the prior). Short windows and coarse differences see
the wide minimum; fine ones end in local minima of contact-induced roughness: from nominal parameters a step of 0.02
ended at a loss two to four times higher."""
ITERATIONS = 10
"""At most, in one stage."""
TOLERANCE = 0.01
"""A stage is done when a step is shorter than this share of the point."""


def search_sysid(loss: Loss, budget: int, seed: int, advance: Advance) -> SearchResult:
    """See `Search`. Multi-start until half the budget is spent; the first run always completes."""
    log = _SearchLog(loss, budget, advance)
    starts = np.random.default_rng(seed).normal(size=(SCREENED, len(loss.bounds)))
    starts[0] = loss.first  # the prior's mean competes with the draws
    starts = np.clip(starts, *loss.bounds.T)
    order = np.argsort(log.evaluate(loss, starts), kind="stable")
    converged = False
    for start in starts[order]:
        point = start
        for share, step in STAGES:
            shorter = loss.shortened(max(1, round(share * loss.windows.steps)))
            point, ended = _optimise(shorter, point, step, log)
        if log.improved(point):
            converged = ended
        # A further run costs about as much as the first, which would exceed the rest.
        if log.spent >= budget / 2:
            break
    return SearchResult(log.best, "converged" if converged else "budget spent", np.array(log.trace))


@dataclass
class _SearchLog:
    """Budget spent, and the best point so far.

    Args:
        spent: evaluated points; one on shorter windows counts for their share.
    """

    loss: Loss
    budget: int
    advance: Advance
    spent: float = 0.0
    lowest: float = np.inf
    best: np.ndarray = field(default_factory=lambda: np.zeros(0))
    trace: list[tuple[float, float]] = field(default_factory=list)

    def evaluate(self, loss: Loss, points: np.ndarray) -> np.ndarray:
        self.count(loss, len(points))
        return loss(points)

    def count(self, loss: Loss, points: int) -> None:
        self.spent += points * loss.windows.steps / self.loss.windows.steps
        self.advance(min(1.0, self.spent / self.budget), f"loss {self.lowest:.4g}")

    def improved(self, point: np.ndarray) -> bool:
        value = float(self.evaluate(self.loss, point[None])[0])
        better = value < self.lowest
        if better:
            self.best, self.lowest = point, value
        self.trace.append((self.spent * self.loss.steps_per_point, self.lowest))
        return better


def _optimise(loss: Loss, point: np.ndarray, step: float, log: _SearchLog) -> tuple[np.ndarray, bool]:
    """Run MuJoCo's optimiser; returns the point and whether it ended before its iterations did."""

    def residual(x: np.ndarray) -> np.ndarray:
        log.count(loss, x.shape[1])
        return loss.residuals(x.T).T

    def slopes(x: np.ndarray, _: np.ndarray) -> np.ndarray:
        log.count(loss, 2 * len(x))
        return jacobian(loss, x[:, 0], step)

    lower, upper = loss.bounds.T
    found, trace = minimize.least_squares(
        _off_bounds(point, lower, upper),
        residual,
        bounds=(lower, upper),
        jacobian=slopes,
        max_iter=ITERATIONS,
        xtol=TOLERANCE,
        gtol=1e-3,
        mu_factor=10**0.5,
        verbose=minimize.Verbosity.SILENT,
    )
    return np.asarray(found, float).ravel(), len(trace) <= ITERATIONS


def _off_bounds(point: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Move what stands on a bound a little inward: from there the optimiser would hardly leave it."""
    span = upper - lower
    point = np.where(point - lower <= 1e-3 * span, lower + 0.05 * span, point)
    return np.where(upper - point <= 1e-3 * span, upper - 0.05 * span, point)
