"""Method `mjx`: least squares on exact sensitivities, from short windows to whole ones, then a polish.

Over short windows the loss is nearly convex; each stage leads the next into its valley. Sensitivities come from MJX
(`sensitivity`), trial points from C, which is ten times faster where no derivative is asked for. The end is rippled by
contact at a scale that no derivative sees: a short CMA-ES, in coordinates in which the descent's precision is the unit
matrix, looks around.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from cmaes import CMA

from rsr.calibration.descent import Descent, descend
from rsr.calibration.loss import Loss
from rsr.calibration.search import Found
from rsr.calibration.sensitivity import Sensitivity, Slopes, choose_slopes
from rsr.progress import Advance

STAGES_S = (0.1, 0.2)
"""Lengths of the windows before whole ones."""
ITERATIONS = (5, 5, 8)
"""Jacobians at most, in each stage and on whole windows."""
TOLERANCE = 0.01
SCREENED = 24
"""Points drawn from the prior; the best of them on the shortest windows are further starts."""
STARTS = 3
POPULATION = 12
POLISH_SPREAD = 0.7
"""First spread of the polish, in standard deviations of the Gauss-Newton covariance."""
POLISH_GENERATIONS = 8
ROUNDS = 4
"""Of polish and descent, at most."""


def search_mjx(
    loss: Loss, budget: int, seed: int, advance: Advance, sensitivity: Sensitivity = "mjx", polish: bool = True
) -> Found:
    """See `Search`. The prior's mean is the first start; the better of the descents is polished."""
    picked, slopes = choose_slopes(loss.scenario, sensitivity)
    course = _Course(loss, budget, advance)
    best = _staged(loss, slopes, loss.first, course)
    for start in _more_starts(loss, seed, course):
        other = _staged(loss, slopes, start, course)
        best = min(best, other, key=lambda descent: descent.loss)
    if polish:
        best = _polished(loss, slopes, best, seed, course)
    status = "converged" if best.converged else "budget spent"
    return Found(best.point, status, np.array(course.trace), picked)


@dataclass
class _Course:
    """What was spent and found so far. A point on shorter windows counts for their share, a Jacobian for one point."""

    loss: Loss
    budget: int
    advance: Advance
    spent: float = 0.0
    lowest: float = np.inf
    trace: list[tuple[float, float]] = field(default_factory=list)

    def count(self, loss: Loss, points: int, value: float) -> None:
        """See `descent.Count`. Losses on shorter windows say nothing about the search's own."""
        self.spent += points * loss.windows.steps / self.loss.windows.steps
        if loss.windows.steps == self.loss.windows.steps and value < self.lowest:
            self.lowest = value
            self.trace.append((self.spent * self.loss.steps_per_point, value))
        words = f"loss {self.lowest:.4g}" if self.trace else "short windows"
        self.advance(min(1.0, self.spent / self.budget), words)


def _staged(loss: Loss, slopes: Slopes, start: np.ndarray, course: _Course) -> Descent:
    """Descend on longer and longer windows."""
    point = start
    for short, iterations in zip(stages(loss), ITERATIONS, strict=False):
        point = descend(short, slopes, point, iterations, TOLERANCE, course.count).point
    return descend(loss, slopes, point, ITERATIONS[-1], TOLERANCE, course.count)


def stages(loss: Loss) -> list[Loss]:
    """The loss on windows broken off early, where that makes them shorter."""
    steps = [max(1, round(length / loss.scenario.control_dt_s)) for length in STAGES_S]
    return [loss.shortened(each) for each in steps if each < loss.windows.steps]


def _more_starts(loss: Loss, seed: int, course: _Course) -> np.ndarray:
    """[STARTS - 1, P], the best of points drawn from the prior, if the budget allows a descent from them."""
    if course.spent > course.budget / 3:
        return np.zeros((0, len(loss.bounds)))
    short = (stages(loss) or [loss])[0]
    drawn = np.clip(np.random.default_rng(seed).normal(size=(SCREENED, len(loss.bounds))), *loss.bounds.T)
    losses = short(drawn)
    course.count(short, len(drawn), float(losses.min()))
    return drawn[np.argsort(losses, kind="stable")[: STARTS - 1]]


def _polished(loss: Loss, slopes: Slopes, best: Descent, seed: int, course: _Course) -> Descent:
    """Polish and descend in turn while that helps: either one gets out of dents in which the other is stuck."""
    for turn in range(ROUNDS):
        if course.spent + POPULATION > course.budget:
            break
        point = _polish(loss, best, seed + turn, course)
        found = descend(loss, slopes, point, ITERATIONS[-1], TOLERANCE, course.count)
        fall = 1.0 - found.loss / best.loss
        best = found if fall > 0 else best
        if fall < TOLERANCE:
            break
    return best


def _polish(loss: Loss, descent: Descent, seed: int, course: _Course) -> np.ndarray:
    """CMA-ES around a descent's end, whitened by its precision; the best point, never a worse one."""
    whitened = np.linalg.cholesky(np.linalg.inv(descent.precision + 1e-9 * np.eye(len(descent.point))))
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
    return best
