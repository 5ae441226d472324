"""Rollouts of single strikes in the adapted model, and plans of a strike to a target pose (eq. (5) of the paper)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from cmaes import CMA

from rsr.common import CalibrationError, derive_seed, generator, wrapped
from rsr.learned.clash.adaptation import Adapted
from rsr.scenarios.built_in.strike import ANGLE_RAD, SPEED_M_S, Shape, Strikes, strikes_at

Rollouts = Callable[[Strikes], np.ndarray]
"""From strikes to displacement and turn at rest, [N, 3]; hybrid or MuJoCo."""

TAU = 0.01
"""Weight of a squared radian against a squared metre."""
_SIGMA = 0.3
_ELITE_SHARE = 0.25


@dataclass(frozen=True)
class StrikeRollout:
    """N strikes, from impact to rest.

    Args:
        rest: [N, 3], displacement and turn, in the frame of the block before (m, m, rad).
        after: [N, 3], velocity when the blocks part.
        handled: [N], which impacts the surrogate computed: all but those with no speed along the normal.
    """

    rest: np.ndarray
    after: np.ndarray
    handled: np.ndarray


class HybridStrikes:
    """Rolls strikes out in the adapted model, a population at once.

    Nothing is stepped where nothing happens: an approach is free motion, an impact one evaluation of the surrogate, a
    slide a formula. A hook that watches MuJoCo's contacts step by step is slower than MuJoCo itself.
    """

    def __init__(self, model: Adapted) -> None:
        if model.sliding is None:
            raise CalibrationError(
                got="recordings without rest_x, rest_y, rest_yaw",
                expected="where the block came to rest",
                where="hybrid simulator",
                next_step="Record it too: without it nothing is known of how the block slides.",
            )
        self._model, self._slide = model, model.sliding

    def __call__(self, strikes: Strikes) -> np.ndarray:
        """Displacement and turn at rest, [N, 3]."""
        return self.rollout(strikes).rest

    def rollout(self, strikes: Strikes) -> StrikeRollout:
        # A striker that moves along the face or away from it never touches: the surrogate must not extrapolate there.
        handled = strikes.speed_m_s * np.cos(strikes.angle_rad) > 0
        after = np.zeros((len(strikes), 3))
        after[handled] = self._model(strikes.take(handled))
        rest = np.zeros((len(strikes), 3))
        rest[handled] = self._slide(after[handled])
        return StrikeRollout(rest, after, handled)


# Plans: CMA-ES or the cross-entropy method over speed, place and angle.


@dataclass(frozen=True)
class StrikePlan:
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
) -> StrikePlan:
    """Search for the strike after which the block rests at `target` (m, m, rad) from where it lies."""
    propose = {"cmaes": _cmaes, "cem": _cem}[method]
    best = StrikePlan(_strikes(shape, np.full((1, 3), 0.5)), np.inf, np.zeros(3))

    def evaluate(points: np.ndarray) -> np.ndarray:
        nonlocal best
        strikes = _strikes(shape, points)
        rests = rollouts(strikes)
        costs = cost(rests, target)
        # The best strike of all generations, not the last mean: a mean over two faces may lie on a corner.
        row = int(costs.argmin())
        if costs[row] < best.cost:
            best = StrikePlan(strikes.take(slice(row, row + 1)), float(costs[row]), rests[row])
        return costs

    propose(evaluate, population, generations, seed)
    return best


def cost(rests: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Eq. (5) of the paper: squared distance plus tau times squared angle, [N]."""
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
        # A floor under the deviation: an elite of equal points would end the search where it stands.
        mean, std = best.mean(axis=0), best.std(axis=0) + 1e-3


def _strikes(shape: Shape, points: np.ndarray) -> Strikes:
    """Make strikes of points [N, 3] in the unit cube, whose axes are speed, place and angle over Table I."""
    low, high = np.array([SPEED_M_S, (-1.0, 1.0), ANGLE_RAD]).T
    speed, place, angle = (low + points * (high - low)).T
    return strikes_at(shape, speed, place, angle)
