"""How a struck block slides to rest, with friction against turning identified: an ellipsoidal limit surface.

Friction then is -mu m g (v, k^2 w) / s with s^2 = v^2 + k^2 w^2, where w is the angular velocity times the radius of
gyration and k the support radius in radii of gyration. Dividing the two equations gives w ~ v^(k^2): the block slides
straight, and distance and turn are integrals over the speed that remains, so a population costs hardly more than one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from rsr.scenarios.strike import RecordedStrikes, Shape
from rsr.scenarios.strike.definition import GRAVITY_M_S2
from rsr.scenarios.strike.outline import rotated

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_REFERENCE_M_S = 0.5
_POSITION_STD_M, _TURN_STD_RAD = 0.01, 0.15
_PRIOR = np.array([1.0, 0.5, 0.2, 0.2])
"""Standard deviations about (friction 0.3, support 0.9, none, none); the first two of logarithms."""
_START = np.array([np.log(0.3), np.log(0.9), 0.0, 0.0])


@dataclass(frozen=True)
class SlidingModel:
    """Where blocks come to rest.

    Args:
        friction: with the table, at a speed of 0.5 m/s.
        support: radius at which friction against turning acts, in radii of gyration.
        rate: friction grows with speed to this power.
        deflection: the path bends by this angle, in rad, where the block turns much; the load is on the leading edge.
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
        scale = speed**2 / (self.friction * GRAVITY_M_S2 * (speed / _REFERENCE_M_S) ** self.rate)
        bend = self.deflection * ratio / np.sqrt(1 + ratio**2)
        straight = velocity[:, :2] * (scale * far / speed)[:, None]
        return np.column_stack([rotated(straight, bend), scale * turned / self.gyration_m])


def fit_sliding(shape: Shape, recorded: RecordedStrikes) -> SlidingModel | None:
    """Identify a sliding model from where blocks came to rest; None without such recordings."""
    rest = recorded.rest
    if rest is None:
        return None
    weights = 1 / np.array([_POSITION_STD_M, _POSITION_STD_M, _TURN_STD_RAD])

    def model(coordinates: np.ndarray) -> SlidingModel:
        friction, support = np.exp(coordinates[:2])
        return SlidingModel(shape.gyration_m, float(friction), float(support), *map(float, coordinates[2:]))

    def residuals(coordinates: np.ndarray) -> np.ndarray:
        missed = (model(coordinates)(recorded.after) - rest) * weights
        return np.concatenate([missed.ravel(), (coordinates - _START) / _PRIOR])

    return model(least_squares(residuals, _START, loss="soft_l1").x)


def _integrals(ratio: np.ndarray, support: float) -> tuple[np.ndarray, np.ndarray]:
    """Distance in speed^2 / (friction g), and turn in that over the radius of gyration, [N] each.

    Over x, the share of the speed that is left, with x = y^p: p makes both integrands smooth where x goes to zero.
    """
    square = support**2
    power = max(2.0, 2.0 / square)
    y = (1 + _NODES) / 2
    x, weight = y**power, _WEIGHTS / 2 * power * y ** (power - 1)
    slip = np.sqrt(x**2 + square * ratio[:, None] ** 2 * x ** (2 * square))
    return slip @ weight, ratio * ((slip * x ** (square - 1)) @ weight)
