"""Method `cmaes`: covariance matrix adaptation (library `cmaes`), one rollout of the whole population a generation."""

from __future__ import annotations

import numpy as np
from cmaes import CMA

from rsr.calibration.loss import Loss
from rsr.calibration.search import Found
from rsr.calibration.shares import losses_of
from rsr.progress import Advance

POPULATION = 12
SIGMA = 0.6
"""First spread, in standard deviations of the prior."""
SHORT_WINDOWS = 1 / 3
"""Share of the budget, and of each window, in the first part: short windows have fewer local minima and cost less."""
TOLERANCE = 0.02
"""Converged when a generation's points spread less than this, in standard deviations of the prior."""


def search_cmaes(loss: Loss, budget: int, seed: int, advance: Advance) -> Found:
    """See `Search`. Starts where the loss says; a point on short windows counts for their share of the budget."""
    bounds = loss.bounds
    best = loss.first
    optimizer = CMA(mean=best.copy(), sigma=SIGMA, bounds=bounds, seed=seed, population_size=POPULATION)
    short = loss.shortened(max(1, round(SHORT_WINDOWS * loss.windows.steps)))
    lowest, spread, spent, trace = np.inf, np.inf, 0.0, []
    while not trace or (spent + POPULATION <= budget and spread > TOLERANCE):
        current = short if spent < SHORT_WINDOWS * budget else loss
        points = np.array([optimizer.ask() for _ in range(POPULATION)])
        losses = losses_of(current, points)
        optimizer.tell(list(zip(points, losses.tolist(), strict=True)))
        spent += POPULATION * current.windows.steps / loss.windows.steps
        advance(spent / budget, f"loss {losses.min():.4g}")
        if current is short:
            continue
        spread = float(points.std(axis=0).max())
        if losses.min() < lowest:
            best, lowest = points[losses.argmin()], float(losses.min())
        trace.append((spent * loss.steps_per_point, lowest))
    centre = np.clip(optimizer.mean, *bounds.T)
    # The landscape is rippled: the centre of the last generation is a steadier estimate than its luckiest point.
    point = centre if loss(centre[None])[0] <= lowest else best
    return Found(point, "converged" if spread <= TOLERANCE else "budget spent", np.array(trace))
