"""The slide of a struck block to rest, with friction against turning identified: an ellipsoidal limit surface.

Friction then is -mu m g (v, k^2 w) / s with s^2 = v^2 + k^2 w^2, where w is the angular velocity times the radius of
gyration and k the support radius in radii of gyration. Dividing the two equations gives w ~ v^(k^2): the block slides
straight, and distance and turn are integrals over the speed that remains, so a population costs hardly more than one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import least_squares

from rsr.common import rotated
from rsr.scenarios.built_in.strike import GRAVITY_M_S2, RecordedStrikes, Shape

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_REFERENCE_M_S = 0.5
_STEEPEST, _TABLE = 4.0, 801
"""A table of ratios of turning over moving up to sinh(4) = 27, dense about zero: it errs by less than 0.1 %."""
USUAL = np.array([np.log(0.35), np.log(0.8), 0.07, 0.6])
_SPREAD = np.array([0.7, 0.15, 0.1, 0.3])
"""Prior of (friction, support, rate, lead), the first two as logarithms. Learnt on the tuning
stand-ins, and more than twice as wide as they differ, friction apart."""
_FAR_SHARE, _ASIDE_SHARE, _TURN_SHARE = 0.08, 0.03, 0.12
_PLACE_STD_M, _TURN_STD_RAD = 0.001, 0.05
"""Deviations of slides from their mean: shares of the distance, more along the path than across it, and a rest."""


@dataclass(frozen=True)
class SlidingModel:
    """Places of rest as a function of the velocity after the impact.

    Args:
        friction: with the table, at a speed of 0.5 m/s.
        support: radius at which friction against turning acts, in radii of gyration.
        rate: friction grows with speed to this power.
        deflection: the path bends by this angle, in rad, where the block turns much; the load is on the leading edge,
            the more so the higher the friction, which is why a lead is fitted, in units of that.
    """

    gyration_m: float
    friction: float
    support: float = 0.9
    rate: float = 0.0
    deflection: float = 0.0

    def __call__(self, velocity: np.ndarray) -> np.ndarray:
        """Displacement (m, m) and turn (rad), [N, 3], from velocities [N, 3] (m/s, m/s, rad/s) on."""
        speed = np.maximum(np.linalg.norm(velocity[:, :2], axis=1), 1e-6)
        ratio = self.gyration_m * velocity[:, 2] / speed
        far, turned = _integrals(ratio, self.support)
        # A block that only slides stops after v^2 / (2 mu g); `far` is one half then, and less where it turns.
        scale = speed**2 / (self.friction * GRAVITY_M_S2 * (speed / _REFERENCE_M_S) ** self.rate)
        # The bend saturates: past a ratio of one, turning faster does not shift the load any further.
        bend = self.deflection * ratio / np.sqrt(1 + ratio**2)
        straight = velocity[:, :2] * (scale * far / speed)[:, None]
        return np.column_stack([rotated(straight, bend), scale * turned / self.gyration_m])

    def velocities(self, rest: np.ndarray) -> np.ndarray:
        """Velocities [N, 3] from which blocks slide to places of rest [N, 3]: the inverse."""
        distance = np.maximum(np.linalg.norm(rest[:, :2], axis=1), 1e-6)
        # Turn over distance grows with the ratio of the two speeds alone, so a table of one inverts it.
        ratios = np.sinh(np.linspace(-_STEEPEST, _STEEPEST, _TABLE))
        far, turned = _integrals(ratios, self.support)
        ratio = np.interp(self.gyration_m * rest[:, 2] / distance, turned / far, ratios)
        scale = distance / np.interp(ratio, ratios, far)
        speed = (scale * self.friction * GRAVITY_M_S2 * _REFERENCE_M_S**-self.rate) ** (1 / (2 - self.rate))
        bend = self.deflection * ratio / np.sqrt(1 + ratio**2)
        heading = rotated(rest[:, :2] / distance[:, None], -bend)
        return np.column_stack([heading * speed[:, None], ratio * speed / self.gyration_m])


def fit_sliding(shape: Shape, recorded: RecordedStrikes) -> SlidingModel | None:
    """Identify a sliding model from where blocks came to rest; None without such recordings."""
    rest = recorded.rest
    if rest is None:
        return None
    weigh = weighing(rest)

    def residuals(coordinates: np.ndarray) -> np.ndarray:
        missed = weigh(sliding_at(shape, coordinates)(recorded.after) - rest)
        return np.concatenate([missed.ravel(), surprise(coordinates)])

    # soft_l1: one block that hit the table's edge must not decide the friction.
    return sliding_at(shape, least_squares(residuals, USUAL, loss="soft_l1").x)


def sliding_at(shape: Shape, coordinates: np.ndarray) -> SlidingModel:
    """Make a model of logarithms of friction and support, rate and lead: [4]."""
    friction, support = map(float, np.exp(coordinates[:2]))
    rate, lead = map(float, coordinates[2:])
    return SlidingModel(shape.gyration_m, friction, support, rate, -lead * friction)


def velocities_known(recorded: RecordedStrikes) -> bool:
    return not np.isnan(recorded.after).any()


def with_velocities(recorded: RecordedStrikes, sliding: SlidingModel | None) -> RecordedStrikes:
    """Recorded strikes as they are, or, of places of rest alone, with the velocities that led there."""
    if velocities_known(recorded) or recorded.rest is None or sliding is None:
        return recorded
    return replace(recorded, after=sliding.velocities(recorded.rest))


def surprise(coordinates: np.ndarray) -> np.ndarray:
    """How far coordinates [4] are from usual ones, in standard deviations of the prior."""
    return (coordinates - USUAL) / _SPREAD


def weighing(rest: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Make the function from what a model missed [N, 3] to standard deviations: along the path, across it, turn.

    Friction differs from strike to strike by shares, so a long slide tells no more of it than a short one.
    """
    far = np.linalg.norm(rest[:, :2], axis=1)
    along = rest[:, :2] / np.maximum(far, 1e-6)[:, None]
    across = np.column_stack([-along[:, 1], along[:, 0]])
    path_m = np.hypot(_PLACE_STD_M, np.outer(far, [_FAR_SHARE, _ASIDE_SHARE]))
    turn_rad = np.hypot(_TURN_STD_RAD, _TURN_SHARE * rest[:, 2])

    def weigh(missed: np.ndarray) -> np.ndarray:
        placed = np.column_stack([(missed[:, :2] * direction).sum(axis=1) for direction in (along, across)])
        return np.column_stack([placed / path_m, missed[:, 2] / turn_rad])

    return weigh


def _integrals(ratio: np.ndarray, support: float) -> tuple[np.ndarray, np.ndarray]:
    """Distance in speed^2 / (friction g), and turn in that over the radius of gyration, [N] each.

    Over x, the share of the speed that is left, with x = y^p: p makes both integrands smooth where x goes to zero.
    """
    square = support**2
    power = max(2.0, 2.0 / square)
    y = (1 + _NODES) / 2
    # In y, 24 nodes of Gauss and Legendre err by less than 1e-9 of the distance, for ratios up to five.
    x, weight = y**power, _WEIGHTS / 2 * power * y ** (power - 1)
    slip = np.sqrt(x**2 + square * ratio[:, None] ** 2 * x ** (2 * square))
    return slip @ weight, ratio * ((slip * x ** (square - 1)) @ weight)
