"""Method `mjx`: least squares on exact sensitivities, from few short windows to all whole ones, then a polish.

Over short windows the loss is nearly convex, and a few of them lead into its valley for a fraction of the cost. Where
they leave open what the parameters are, the search goes on from several places, the better of them on whole windows,
the best on all windows. Sensitivities come from MJX (`sensitivity`), trial points from C, which is ten times faster
where no derivative is asked for. The end is rippled by contact at a scale that no derivative sees: a short CMA-ES, in
coordinates in which the descent's precision is the unit matrix, looks around.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from cmaes import CMA

from rsr.calibration.descent import Descent, descend
from rsr.calibration.loss import Loss
from rsr.calibration.search import Found
from rsr.calibration.sensitivity import Sensitivity, Slopes, choose_slopes
from rsr.progress import Advance

STAGES_S = (0.1, 0.2)
"""Lengths of the windows before whole ones."""
FEW = 32
"""Windows in every stage but the last."""
SCREENED = 36
"""Points drawn around the end of the first descent on short windows ..."""
SCREEN_SPREAD = 2.0
"""... with so many times its standard deviations: what short windows tell stays, what they do not tell varies."""
STARTS, FINALISTS = 4, 2
"""Of those points descend on short windows, and on whole ones."""
APART = 0.2
"""Points nearer to each other than this, in standard deviations of the prior, are one."""
ITERATIONS = 4
"""Jacobians at most, in each stage but the last."""
LAST_ITERATIONS = 6
TOLERANCE = 0.01
"""A stage is done when the loss falls by less than this share in one step ..."""
LAST_TOLERANCE = 0.003
"""... and the last one when it falls by less than this."""
POPULATION = 12
POLISH_SPREAD = 0.7
"""First spread of the polish, in standard deviations of the Gauss-Newton covariance."""
POLISH_GENERATIONS = 2


def search_mjx(
    loss: Loss, budget: int, seed: int, advance: Advance, sensitivity: Sensitivity = "mjx", polish: bool = True
) -> Found:
    """See `Search`. The prior's mean is one of the starts; the best of the descents is polished."""
    picked, slopes = choose_slopes(loss.scenario, sensitivity)
    course = _Course(loss, budget, advance)
    point = _led_in(loss.thinned(FEW), slopes, seed, course)
    best = descend(loss, slopes, point, LAST_ITERATIONS, LAST_TOLERANCE, course.count)
    if polish:
        best = _polished(loss, slopes, best, seed, course)
    status = "converged" if best.converged else "budget spent"
    return Found(best.point, status, np.array(course.trace), picked)


@dataclass
class _Course:
    """What was spent and found. A point on fewer or shorter windows counts for their share, a Jacobian for one."""

    loss: Loss
    budget: int
    advance: Advance
    spent: float = 0.0
    lowest: float = np.inf
    trace: list[tuple[float, float]] = field(default_factory=list)

    def count(self, loss: Loss, points: int, value: float) -> None:
        """See `descent.Count`. Losses on other windows say nothing about the search's own."""
        self.spent += points * loss.steps_per_point / self.loss.steps_per_point
        if loss.steps_per_point == self.loss.steps_per_point and value < self.lowest:
            self.lowest = value
            self.trace.append((self.spent * self.loss.steps_per_point, value))
        words = f"loss {self.lowest:.4g}" if self.trace else "short windows"
        self.advance(min(1.0, self.spent / self.budget), words)


def _led_in(few: Loss, slopes: Slopes, seed: int, course: _Course) -> np.ndarray:
    """The best end [P] of descents on few windows."""
    short, first = stages(few), Descent(few.first, np.inf, np.eye(len(few.bounds)), True)
    for level in short:
        first = descend(level, slopes, first.point, ITERATIONS, TOLERANCE, course.count)
    points = [first.point]
    if short and few.origin is None:  # an earlier search has said where to begin
        screened = _best(short[-1], np.stack([first.point, *_around(first, few.bounds, seed)]), STARTS, course)
        points = [descend(short[-1], slopes, each, ITERATIONS, TOLERANCE, course.count).point for each in screened]
    finalists = _best(few, np.stack(points), FINALISTS, course)
    ends = [descend(few, slopes, each, ITERATIONS, TOLERANCE, course.count) for each in finalists]
    return min(ends, key=lambda end: end.loss).point


def _around(descent: Descent, bounds: np.ndarray, seed: int) -> np.ndarray:
    """Points [SCREENED, P] drawn as widely as a descent leaves its end open."""
    drawn = np.random.default_rng(seed).normal(size=(SCREENED, len(bounds)))
    return np.clip(descent.point + SCREEN_SPREAD * drawn @ _root(descent).T, *bounds.T)


def _best(loss: Loss, points: np.ndarray, count: int, course: _Course) -> list[np.ndarray]:
    """The best so many of points [N, P] that lie apart."""
    losses = loss(points)
    course.count(loss, len(points), float(losses.min()))
    chosen: list[np.ndarray] = []
    for point in points[np.argsort(losses, kind="stable")]:
        if len(chosen) < count and all(np.abs(point - each).max() > APART for each in chosen):
            chosen.append(point)
    return chosen


def _root(descent: Descent) -> np.ndarray:
    """A matrix [P, P] whose square is the Gauss-Newton covariance of a descent's end."""
    return np.linalg.cholesky(np.linalg.inv(descent.precision + 1e-9 * np.eye(len(descent.point))))


def stages(loss: Loss) -> list[Loss]:
    """The loss on windows broken off early, where that makes them shorter."""
    steps = [max(1, round(length / loss.scenario.control_dt_s)) for length in STAGES_S]
    return [loss.shortened(each) for each in steps if each < loss.windows.steps]


def _polished(loss: Loss, slopes: Slopes, best: Descent, seed: int, course: _Course) -> Descent:
    """Look around, and descend again from where it is clearly lower: that gets out of dents."""
    point, lowest = _polish(loss, best, seed, course)
    if lowest > (1.0 - LAST_TOLERANCE) * best.loss:
        return replace(best, point=point, loss=lowest)
    return descend(loss, slopes, point, ITERATIONS, LAST_TOLERANCE, course.count)


def _polish(loss: Loss, descent: Descent, seed: int, course: _Course) -> tuple[np.ndarray, float]:
    """CMA-ES around a descent's end, whitened by its precision; the best point, never a worse one."""
    whitened = _root(descent)
    optimizer = CMA(np.zeros(len(descent.point)), POLISH_SPREAD, seed=seed, population_size=POPULATION)
    best, lowest = descent.point, descent.loss
    for _ in range(POLISH_GENERATIONS):
        if course.spent + POPULATION > course.budget:
            break
        drawn = [optimizer.ask() for _ in range(POPULATION)]
        points = np.clip(descent.point + np.array(drawn) @ whitened.T, *loss.bounds.T)
        losses = loss(points)
        optimizer.tell(list(zip(drawn, losses.tolist(), strict=True)))
        course.count(loss, POPULATION, float(losses.min()))
        if losses.min() < lowest:
            best, lowest = points[losses.argmin()], float(losses.min())
    return best, lowest
