"""Planning one strike to a target pose (eq. 5): CMA-ES or the cross-entropy method over speed, place and angle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from cmaes import CMA

from rsr.randomness import derive_seed, generator
from rsr.scenarios.plane import wrapped
from rsr.scenarios.strike import ANGLE_RAD, SPEED_M_S, Shape, Strikes, strikes_at

Rollouts = Callable[[Strikes], np.ndarray]
"""From strikes to displacement and turn at rest, [N, 3]; hybrid or MuJoCo."""

TAU = 0.01
"""Weight of a squared radian against a squared metre."""
_SIGMA = 0.3
_ELITE_SHARE = 0.25


@dataclass(frozen=True)
class Plan:
    """The best strike found.

    Args:
        strike: one row.
        cost: eq. 5, in m2. expected: [3], where the simulator says that the block comes to rest.
    """

    strike: Strikes
    cost: float
    expected: np.ndarray


def plan(
    shape: Shape,
    rollouts: Rollouts,
    target: np.ndarray,
    method: Literal["cmaes", "cem"] = "cmaes",
    population: int = 12,
    generations: int = 30,
    seed: int = 0,
) -> Plan:
    """Search for the strike after which the block rests at `target` (m, m, rad) from where it lies."""
    propose = {"cmaes": _cmaes, "cem": _cem}[method]
    best = Plan(_strikes(shape, np.full((1, 3), 0.5)), np.inf, np.zeros(3))

    def evaluate(points: np.ndarray) -> np.ndarray:
        nonlocal best
        strikes = _strikes(shape, points)
        rests = rollouts(strikes)
        costs = cost(rests, target)
        row = int(costs.argmin())
        if costs[row] < best.cost:
            best = Plan(strikes.take(slice(row, row + 1)), float(costs[row]), rests[row])
        return costs

    propose(evaluate, population, generations, seed)
    return best


def cost(rests: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Squared distance plus tau times squared angle, [N]."""
    return ((rests[:, :2] - target[:2]) ** 2).sum(axis=1) + TAU * wrapped(rests[:, 2] - target[2]) ** 2


Evaluate = Callable[[np.ndarray], np.ndarray]


def _cmaes(evaluate: Evaluate, population: int, generations: int, seed: int) -> None:
    search = CMA(
        mean=np.full(3, 0.5),
        sigma=_SIGMA,
        bounds=np.array([[0.0, 1.0]] * 3),
        population_size=population,
        seed=derive_seed(seed, "plan"),
    )
    for _ in range(generations):
        points = np.array([search.ask() for _ in range(population)])
        search.tell(list(zip(points, evaluate(points).tolist(), strict=True)))
        if search.should_stop():
            break


def _cem(evaluate: Evaluate, population: int, generations: int, seed: int) -> None:
    rng = generator(seed, "plan")
    mean, std = np.full(3, 0.5), np.full(3, _SIGMA)
    elite = max(2, int(_ELITE_SHARE * population))
    for _ in range(generations):
        points = np.clip(rng.normal(mean, std, (population, 3)), 0, 1)
        best = points[np.argsort(evaluate(points))[:elite]]
        mean, std = best.mean(axis=0), best.std(axis=0) + 1e-3


def _strikes(shape: Shape, points: np.ndarray) -> Strikes:
    """Strikes of points [N, 3] in the unit cube."""
    low, high = np.array([SPEED_M_S, (-1.0, 1.0), ANGLE_RAD]).T
    speed, place, angle = (low + points * (high - low)).T
    return strikes_at(shape, speed, place, angle)
