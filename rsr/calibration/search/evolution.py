"""Method `cmaes`: covariance matrix adaptation (library `cmaes`), one rollout of the whole population a generation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from cmaes import CMA

from rsr.calibration.problem import Loss, losses_of
from rsr.calibration.search.descent import Count, Descent, SearchResult
from rsr.common import Advance

POPULATION = 12
SIGMA = 0.6
"""First spread, in standard deviations of the prior."""
SHORT_WINDOWS = 1 / 3
"""Share of the budget, and of each window, in the first part: short windows have fewer local minima and cost less."""
TOLERANCE = 0.02
"""Converged when a generation's points spread less than this, in standard deviations of the prior."""


def search_cmaes(loss: Loss, budget: int, seed: int, advance: Advance) -> SearchResult:
    """See `Search`. Begins at `Loss.first`; a point on short windows counts for their share of the budget."""
    bounds = loss.bounds
    best = loss.first
    sigma = SIGMA if loss.origin is None else SIGMA / 3  # around an earlier search's end
    optimizer = CMA(mean=best.copy(), sigma=sigma, bounds=bounds, seed=seed, population_size=POPULATION)
    short = loss.shortened(max(1, round(SHORT_WINDOWS * loss.windows.steps)))
    lowest, spread, spent, trace = np.inf, np.inf, 0.0, []
    while not trace or (spent + POPULATION <= budget and spread > TOLERANCE):
        current = short if spent < SHORT_WINDOWS * budget else loss
        points = np.array([optimizer.ask() for _ in range(POPULATION)])
        losses = losses_of(current, points)
        # Ranks are all CMA-ES uses, so losses of short and of whole windows may follow each other without scaling.
        optimizer.tell(list(zip(points, losses.tolist(), strict=True)))
        spent += POPULATION * current.windows.steps / loss.windows.steps
        advance(min(1.0, spent / budget), f"loss {losses.min():.4g}")
        # Losses on short windows are smaller and not comparable: they enter neither the best point nor the trace.
        if current is short:
            continue
        spread = float(points.std(axis=0).max())
        if losses.min() < lowest:
            best, lowest = points[losses.argmin()], float(losses.min())
        trace.append((spent * loss.steps_per_point, lowest))
    centre = np.clip(optimizer.mean, *bounds.T)
    # On a rough loss the lowest of many points is the luckiest; the mean of the distribution averages roughness out.
    point = centre if loss(centre[None])[0] <= lowest else best
    return SearchResult(point, "converged" if spread <= TOLERANCE else "budget spent", np.array(trace))


# A short evolution strategy around a descent's end: contact-induced roughness is finer than any gradient resolves.

SHORT_POPULATION = 8
PATIENCE = 5
"""Generations in a row without a better point, after which the evolution ends."""


@dataclass(frozen=True)
class EvolutionResult:
    """The best point [P] met, its loss, and the centre [P] of the last generation, which averages over roughness."""

    best: np.ndarray
    lowest: float
    centre: np.ndarray


def evolve(
    loss: Loss,
    around: Descent,
    temper: float,
    generations: int,
    seed: int,
    count: Count,
    affordable: Callable[[], bool],
) -> EvolutionResult:
    """CMA-ES in coordinates whitened by a descent's Gauss-Newton covariance; never worse than the descent's point.

    Args:
        around: its `loss` is that of its point here.
        temper: divides the data's information, not the prior's: directions that the data determine are searched
            narrowly, the others as widely as the prior allows.
        affordable: whether the budget allows another generation.
    """
    root, size = tempered_root(around, temper), len(around.point)
    optimizer = CMA(np.zeros(size), 1.0, seed=seed, population_size=SHORT_POPULATION)
    best, lowest, stale = around.point, around.loss, 0
    for _ in range(generations):
        if stale == PATIENCE or not affordable():
            break
        drawn = np.array([optimizer.ask() for _ in range(SHORT_POPULATION)])
        points = np.clip(around.point + drawn @ root.T, *loss.bounds.T)
        losses = loss(points)
        optimizer.tell(list(zip(drawn, losses.tolist(), strict=True)))
        count(loss, SHORT_POPULATION, float(losses.min()))
        stale += 1
        if losses.min() < lowest:
            best, lowest, stale = points[losses.argmin()], float(losses.min()), 0
    return EvolutionResult(best, lowest, np.clip(around.point + root @ optimizer.mean, *loss.bounds.T))


def tempered_root(around: Descent, temper: float) -> np.ndarray:
    """Compute A [P, P] with A A' the covariance at a descent's end, with the data's information divided by `temper`."""
    # `precision` is J'J + I; the identity is the prior's, in units of the prior.
    prior = np.eye(len(around.point))
    return np.linalg.cholesky(np.linalg.inv((around.precision - prior) / temper + prior))
