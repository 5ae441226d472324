"""Method `sysid`: MuJoCo's own system identification toolbox, from the best of many starts.

The toolbox supplies parameters and optimiser (`mujoco.sysid.ParameterDict`, `optimize`: Gauss-Newton with adaptive
damping and box constraints). Residuals and their Jacobian are ours: the toolbox's `ModelSequences` compiles a model
for every evaluation, which is several times slower, and has no place for windows that begin at recorded states,
for a delay that reaches back before them, nor for a prior.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field

import numpy as np

from rsr.calibration.differences import jacobian
from rsr.calibration.loss import Loss
from rsr.calibration.search import Found
from rsr.progress import Advance

SCREENED = 24
"""Points drawn from the prior; the best of them, in turn, are starts."""
STAGES = ((0.34, 0.3), (1.0, 0.3), (1.0, 0.1))
"""(share of the window, difference step in standard deviations of the prior). Short windows and coarse differences see
the wide valley, where fine ones get caught in the ripples of contact; from nominal parameters a step of 0.02 ended at
a loss two to four times higher."""
ITERATIONS = 10
"""At most, in one stage."""
TOLERANCE = 0.01
"""A stage is done when a step is shorter than this share of the point."""


def search_sysid(loss: Loss, budget: int, seed: int, advance: Advance) -> Found:
    """See `Search`. Starts until the budget is spent; the first start always runs to its end."""
    course = _Course(loss, budget, advance)
    starts = np.random.default_rng(seed).normal(size=(SCREENED, len(loss.bounds)))
    starts[0] = loss.first
    starts = np.clip(starts, *loss.bounds.T)
    order = np.argsort(course.evaluate(loss, starts), kind="stable")
    converged = False
    for start in starts[order]:
        point = start
        for share, step in STAGES:
            shorter = loss.shortened(max(1, round(share * loss.windows.steps)))
            point, ended = _optimise(shorter, point, step, course)
        if course.improved(point):
            converged = ended
        if course.spent >= budget / 2:
            break
    return Found(course.best, "converged" if converged else "budget spent", np.array(course.trace))


@dataclass
class _Course:
    """What was spent and found so far.

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


def _optimise(loss: Loss, point: np.ndarray, step: float, course: _Course) -> tuple[np.ndarray, bool]:
    """Run the toolbox's optimiser; returns the point and whether it ended before its iterations did."""
    from mujoco import sysid  # imports plotting libraries: half a second that other methods need not pay

    names, bounds = loss.scenario.space.names, loss.bounds
    iterations = []

    def residual(x: np.ndarray, _: object) -> tuple[list[np.ndarray], None, None]:
        course.count(loss, x.shape[1])
        return [loss.residuals(x.T).T], None, None

    def slopes(x: np.ndarray, _: np.ndarray) -> np.ndarray:
        course.count(loss, 2 * len(x))
        return jacobian(loss, x[:, 0], step)

    start = sysid.ParameterDict(
        {name: sysid.Parameter(name, point[i], *bounds[i]) for i, name in enumerate(names)}
    ).move_off_bounds()
    _, result = sysid.optimize(
        start,
        residual,
        optimizer="mujoco",
        verbose=False,
        jacobian=slopes,
        max_iters=ITERATIONS,
        xtol=TOLERANCE,
        gtol=1e-3,
        mu_factor=10**0.5,
        iter_callback=iterations.append,
        output=io.StringIO(),
    )
    return np.asarray(result.x, float).ravel(), len(iterations) <= ITERATIONS
