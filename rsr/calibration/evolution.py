"""A short evolution strategy around a descent's end, where contact makes the loss ripple at a scale no slope sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from cmaes import CMA

from rsr.calibration.descent import Count, Descent
from rsr.calibration.loss import Loss

POPULATION = 8
PATIENCE = 5
"""Generations in a row without a better point, after which the evolution ends."""


@dataclass(frozen=True)
class Evolved:
    """The best point [P] met, its loss, and the centre [P] of the last generation, which no single ripple chose."""

    best: np.ndarray
    lowest: float
    centre: np.ndarray


def evolve(
    loss: Loss, around: Descent, temper: float, generations: int, seed: int, count: Count, may: Callable[[], bool]
) -> Evolved:
    """CMA-ES in coordinates whitened by a descent's Gauss-Newton covariance; never worse than the descent's point.

    Args:
        around: its `loss` is that of its point here.
        temper: data count for so many times less, the prior for all it is: directions that the data tell are searched
            narrowly, and those that they leave open as widely as the prior allows.
        may: whether the budget allows another generation.
    """
    root, size = tempered_root(around, temper), len(around.point)
    optimizer = CMA(np.zeros(size), 1.0, seed=seed, population_size=POPULATION)
    best, lowest, stale = around.point, around.loss, 0
    for _ in range(generations):
        if stale == PATIENCE or not may():
            break
        drawn = np.array([optimizer.ask() for _ in range(POPULATION)])
        points = np.clip(around.point + drawn @ root.T, *loss.bounds.T)
        losses = loss(points)
        optimizer.tell(list(zip(drawn, losses.tolist(), strict=True)))
        count(loss, POPULATION, float(losses.min()))
        stale += 1
        if losses.min() < lowest:
            best, lowest, stale = points[losses.argmin()], float(losses.min()), 0
    return Evolved(best, lowest, np.clip(around.point + root @ optimizer.mean, *loss.bounds.T))


def tempered_root(around: Descent, temper: float) -> np.ndarray:
    """A matrix [P, P] whose square is the covariance of a descent's end, had the data told so many times less."""
    prior = np.eye(len(around.point))
    return np.linalg.cholesky(np.linalg.inv((around.precision - prior) / temper + prior))
