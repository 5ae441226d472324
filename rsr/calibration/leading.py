"""Into the right valley: where a descent on all windows should begin.

A start may be wrong in two ways, and each has a cure of its own. A drive's delay and stiffness have local minima, but
over 0.1 s a few windows tell which is the deepest: so many points of the prior are tried there, and the best of them
descend. Short windows leave open whether a cube is heavy on a smooth table or light on a rough one, and whole windows
ripple too much for slopes to tell: so an evolution strategy looks there, on few windows, narrowly where short windows
told and as widely as the prior where they did not. Where it finds a better point, that may be a lucky one: its centre
goes on beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from rsr.calibration.descent import Descent, descend
from rsr.calibration.evolution import POPULATION, evolve
from rsr.calibration.loss import Loss
from rsr.calibration.sensitivity import Slopes
from rsr.progress import Advance

STAGES_S = (0.1, 0.2)
"""Lengths of the windows before whole ones."""
FEW = 32
"""Windows before all of them."""
DRAWN, SPREAD = 96, 1.5
"""Points tried on the shortest windows, with so many standard deviations of the prior: its mean is a guess."""
STARTS = 4
"""Of those points descend, and with them the one where the search begins."""
APART = 0.2
"""Points nearer to each other than this, in standard deviations of the prior, are one."""
ITERATIONS = 4
"""Jacobians at most, in a descent on short windows ..."""
FEW_ITERATIONS = 2
"""... and on few whole ones."""
TOLERANCE = 0.01
"""A descent is done when the loss falls by less than this share in one step."""
TEMPER = 100.0
"""See `evolve`."""
GENERATIONS = 12
SHARE = 0.25
"""Of the budget; when it is spent, the evolution ends: small problems know no cheap windows."""


@dataclass
class Course:
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

    def allows(self, points: int, share: float = 1.0) -> bool:
        """Whether so many points more stay within a share of the budget."""
        return self.spent + points <= share * self.budget


def led_in(few: Loss, slopes: Slopes, seed: int, course: Course) -> np.ndarray:
    """One or two points [S, P], of which the better is to be descended from on all windows."""
    if few.origin is not None:  # an earlier search has said where to begin
        points, iterations = _down(few, slopes, few.first, course).point[None], ITERATIONS
    else:
        first = _down(few, slopes, _best_start(few, slopes, seed, course), course)
        points, iterations = _evolved(few, first, seed, course), FEW_ITERATIONS
    ends = [descend(few, slopes, each[None], iterations, TOLERANCE, course.count) for each in points]
    return np.array([end.point for end in ends])


def _evolved(few: Loss, first: Descent, seed: int, course: Course) -> np.ndarray:
    """The best point of an evolution around a descent's end, and its centre, where that lies apart [1 or 2, P]."""
    first = replace(first, loss=float(few(first.point[None])[0]))
    course.count(few, 1, first.loss)
    generation = round(POPULATION * few.steps_per_point / course.loss.steps_per_point)
    found = evolve(few, first, TEMPER, GENERATIONS, seed, course.count, lambda: course.allows(generation, SHARE))
    apart = np.abs(found.best - found.centre).max() > APART
    lucky = found.lowest < first.loss
    return np.stack([found.best, found.centre] if lucky and apart else [found.best])


def _best_start(few: Loss, slopes: Slopes, seed: int, course: Course) -> np.ndarray:
    """Where the best of several descents on the shortest windows ended [P]."""
    short = [*stages(few), few][0]
    drawn = few.first + SPREAD * np.random.default_rng(seed).normal(size=(DRAWN, len(few.bounds)))
    starts = [few.first, *_best(short, np.clip(drawn, *few.bounds.T), course)]
    ends = [descend(short, slopes, each[None], ITERATIONS, TOLERANCE, course.count) for each in starts]
    return min(ends, key=lambda end: end.loss).point


def _best(loss: Loss, points: np.ndarray, course: Course) -> list[np.ndarray]:
    """The best `STARTS` of points [N, P] that lie apart."""
    losses = loss(points)
    course.count(loss, len(points), float(losses.min()))
    chosen: list[np.ndarray] = []
    for point in points[np.argsort(losses, kind="stable")]:
        if len(chosen) < STARTS and all(np.abs(point - each).max() > APART for each in chosen):
            chosen.append(point)
    return chosen


def _down(few: Loss, slopes: Slopes, start: np.ndarray, course: Course) -> Descent:
    """Descend from a start [P] through all lengths before the whole."""
    end = Descent(start, np.inf, np.eye(len(start)), True)
    for level in stages(few):
        end = descend(level, slopes, end.point[None], ITERATIONS, TOLERANCE, course.count)
    return end


def stages(loss: Loss) -> list[Loss]:
    """The loss on windows broken off early, where that makes them shorter."""
    steps = [max(1, round(length / loss.scenario.control_dt_s)) for length in STAGES_S]
    return [loss.shortened(each) for each in steps if each < loss.windows.steps]
