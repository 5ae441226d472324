"""Method `cmaes`: covariance matrix adaptation (library `cmaes`), one rollout of the whole population a generation."""

from __future__ import annotations

import numpy as np
from cmaes import CMA

from rsr.calibration.loss import Loss
from rsr.calibration.search import Found
from rsr.progress import Advance

POPULATION = 12
SIGMA = 0.6
"""First spread, in standard deviations of the prior."""
TOLERANCE = 0.02
"""Converged when a generation's points spread less than this, in standard deviations of the prior."""


def search_cmaes(loss: Loss, budget: int, seed: int, advance: Advance) -> Found:
    """See `Search`. Starts at the prior's mean."""
    bounds = loss.bounds
    start = np.clip(np.zeros(len(bounds)), *bounds.T)
    optimizer = CMA(mean=start, sigma=SIGMA, bounds=bounds, seed=seed, population_size=POPULATION)
    best, lowest, trace, spent = start, np.inf, [], 0
    spread = np.inf
    while spent + POPULATION < budget and spread > TOLERANCE:
        points = np.array([optimizer.ask() for _ in range(POPULATION)])
        losses = loss(points)
        optimizer.tell(list(zip(points, losses.tolist(), strict=True)))
        spent += POPULATION
        spread = float(points.std(axis=0).max())
        if losses.min() < lowest:
            best, lowest = points[losses.argmin()], float(losses.min())
        trace.append((spent * loss.steps_per_point, lowest))
        advance(spent / budget, f"loss {lowest:.4g}")
    centre = np.clip(optimizer.mean, *bounds.T)
    # The landscape is rippled: the centre of the last generation is a steadier estimate than its luckiest point.
    point = centre if loss(centre[None])[0] <= lowest else best
    return Found(point, "converged" if spread <= TOLERANCE else "budget spent", np.array(trace).reshape(-1, 2))
