"""Method `mjx`: least squares on exact Jacobians, from few short windows to all whole ones, then a polish.

Jacobians come from MJX (`sensitivity`), trial points from C, which is ten times faster where no derivative is needed.
A multi-start on short windows finds the initial points of the descent on all windows. At its end contact makes the loss
rough at a scale that no derivative resolves: a short evolution strategy searches around it, in coordinates whitened by
the Gauss-Newton covariance.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from rsr.calibration.problem import JacobianFunction, Loss, Sensitivity, choose_jacobian
from rsr.calibration.search.descent import Descent, SearchResult, descend
from rsr.calibration.search.evolution import SHORT_POPULATION, evolve
from rsr.common import Advance

WHOLE_ITERATIONS = 20
"""Jacobians at most on all windows, from the better of the initial points: it should converge before."""
TOLERANCE = 0.003
"""The descent is done when the loss falls by less than this share in one step."""
POLISH_TEMPER = 2.0
"""The polish begins wider than the Gauss-Newton covariance, which does not contain the roughness."""
POLISH_GENERATIONS = 12


def search_mjx(
    loss: Loss, budget: int, seed: int, advance: Advance, sensitivity: Sensitivity = "mjx", polish: bool = True
) -> SearchResult:
    """See `Search`."""
    picked, slopes = choose_jacobian(loss.scenario, sensitivity)
    log = SearchLog(loss, budget, advance)
    initial = initial_points(loss.thinned(FEW_WINDOWS), slopes, seed, log)
    best = descend(loss, slopes, initial, WHOLE_ITERATIONS, TOLERANCE, log.count)
    if polish:
        best = _polished(loss, slopes, best, seed, log)
    status = "converged" if best.converged else "budget spent"
    return SearchResult(best.point, status, np.array(log.trace), picked)


def _polished(loss: Loss, slopes: JacobianFunction, best: Descent, seed: int, log: SearchLog) -> Descent:
    """Search around the end, and descend again from a clearly lower point: that leaves a local minimum."""
    found = evolve(loss, best, POLISH_TEMPER, POLISH_GENERATIONS, seed, log.count, lambda: log.allows(SHORT_POPULATION))
    if found.lowest > (1.0 - TOLERANCE) * best.loss:
        return replace(best, point=found.best, loss=found.lowest)
    return descend(loss, slopes, found.best[None], ITERATIONS, TOLERANCE, log.count)


# Multi-start: the initial points of the descent on all windows, which decide on the local minimum it ends in.

STAGES_S = (0.1, 0.2)
"""Lengths of the windows before whole ones."""
FEW_WINDOWS = 32
"""Windows before all of them."""
DRAWN_POINTS, SPREAD = 96, 1.5
"""Points tried on the shortest windows, with so many standard deviations of the prior: its mean is only a guess."""
INITIAL_POINTS = 4
"""Of those points descend, and with them `Loss.first`."""
DISTINCT = 0.2
"""Points nearer to each other than this, in standard deviations of the prior, are one."""
ITERATIONS = 4
"""Jacobians at most, in a descent on short windows ..."""
FEW_ITERATIONS = 2
"""... and on few whole ones: an evolved point is near a minimum already, and Jacobians cost most."""
INITIAL_TOLERANCE = 0.01
"""A descent is done when the loss falls by less than this share in one step."""
TEMPER = 100.0
"""See `evolve`."""
GENERATIONS = 12
SHARE = 0.25
"""Of the budget; when it is spent, the evolution ends: in small problems few windows are not much cheaper than all."""


@dataclass
class SearchLog:
    """Budget spent, and losses found: a point on fewer or shorter windows counts for their share, a Jacobian once."""

    loss: Loss
    budget: int
    advance: Advance
    spent: float = 0.0
    lowest: float = np.inf
    trace: list[tuple[float, float]] = field(default_factory=list)

    def count(self, loss: Loss, points: int, value: float) -> None:
        """See `descent.Count`. Losses on other windows are not comparable, and are not traced."""
        self.spent += points * loss.steps_per_point / self.loss.steps_per_point
        if loss.steps_per_point == self.loss.steps_per_point and value < self.lowest:
            self.lowest = value
            self.trace.append((self.spent * self.loss.steps_per_point, value))
        words = f"loss {self.lowest:.4g}" if self.trace else "short windows"
        self.advance(min(1.0, self.spent / self.budget), words)

    def allows(self, points: int, share: float = 1.0) -> bool:
        """Check that so many more points stay within a share of the budget."""
        return self.spent + points <= share * self.budget


def initial_points(few: Loss, slopes: JacobianFunction, seed: int, log: SearchLog) -> np.ndarray:
    """Find one or two points [S, P]; the descent on all windows begins at the better."""
    if few.origin is not None:  # an earlier search found it
        return few.first[None]
    first = _descend_stages(few, slopes, _multi_start(few, slopes, seed, log), log)
    points = _evolved(few, first, seed, log)
    ends = [descend(few, slopes, each[None], FEW_ITERATIONS, INITIAL_TOLERANCE, log.count) for each in points]
    return np.array([end.point for end in ends])


def _evolved(few: Loss, first: Descent, seed: int, log: SearchLog) -> np.ndarray:
    """Evolve around a descent's end: the best point, and the centre where it lies apart, [1 or 2, P]."""
    first = replace(first, loss=float(few(first.point[None])[0]))
    log.count(few, 1, first.loss)
    generation = round(SHORT_POPULATION * few.steps_per_point / log.loss.steps_per_point)
    found = evolve(few, first, TEMPER, GENERATIONS, seed, log.count, lambda: log.allows(generation, SHARE))
    apart = np.abs(found.best - found.centre).max() > DISTINCT
    # The centre is worth a descent of its own only where it differs from the best point.
    improved = found.lowest < first.loss
    return np.stack([found.best, found.centre] if improved and apart else [found.best])


def _multi_start(few: Loss, slopes: JacobianFunction, seed: int, log: SearchLog) -> np.ndarray:
    """Descend from several points on the shortest windows; returns the end [P] with the lowest loss."""
    # Over short windows errors do not grow through contact, so the loss has few local minima.
    short = [*stages(few), few][0]
    drawn = few.first + SPREAD * np.random.default_rng(seed).normal(size=(DRAWN_POINTS, len(few.bounds)))
    initial = [few.first, *_best(short, np.clip(drawn, *few.bounds.T), log)]
    ends = [descend(short, slopes, each[None], ITERATIONS, INITIAL_TOLERANCE, log.count) for each in initial]
    return min(ends, key=lambda end: end.loss).point


def _best(loss: Loss, points: np.ndarray, log: SearchLog) -> list[np.ndarray]:
    """Pick the best `INITIAL_POINTS` of points [N, P] that are distinct."""
    losses = loss(points)
    log.count(loss, len(points), float(losses.min()))
    chosen: list[np.ndarray] = []
    for point in points[np.argsort(losses, kind="stable")]:
        if len(chosen) < INITIAL_POINTS and all(np.abs(point - each).max() > DISTINCT for each in chosen):
            chosen.append(point)
    return chosen


def _descend_stages(few: Loss, slopes: JacobianFunction, initial: np.ndarray, log: SearchLog) -> Descent:
    """Descend from a point [P] through all window lengths before the whole."""
    end = Descent(initial, np.inf, np.eye(len(initial)), True)
    for level in stages(few):
        end = descend(level, slopes, end.point[None], ITERATIONS, INITIAL_TOLERANCE, log.count)
    return end


def stages(loss: Loss) -> list[Loss]:
    """Shorten the loss to each of `STAGES_S`, where that makes its windows shorter."""
    steps = [max(1, round(length / loss.scenario.control_dt_s)) for length in STAGES_S]
    return [loss.shortened(each) for each in steps if each < loss.windows.steps]
