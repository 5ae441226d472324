"""The contact frame, in which impacts are learnt, and the metric by which predictions of them are judged.

Axes of the contact frame run along the inward normal and across it; velocities are shares of the striking speed. In it
a strike and its mirror image are one and the same, and what is left to learn is small and smooth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.scenarios.built_in.strike import Shape, Strikes

MIRROR = np.array([1.0, -1.0, -1.0])
"""Signs that a mirror gives to (along the normal, across it, turning)."""
_QUARTER = np.array([-1.0, 1.0])
TOLERANCE = 0.1
"""Alpha of Accuracy(alpha) in the paper."""


@dataclass(frozen=True)
class Geometry:
    """N strikes as the contact sees them.

    Args:
        speed_m_s, angle_rad: [N], as in `Strikes`.
        across, along: [N], impact point from the centre of mass, in radii of gyration, across and along the normal.
        facing_rad: [N], direction of the struck place on the block, from the mirror's axis.
    """

    speed_m_s: np.ndarray
    angle_rad: np.ndarray
    across: np.ndarray
    along: np.ndarray
    facing_rad: np.ndarray

    def mirrored(self, where: np.ndarray | bool = True) -> Geometry:
        """Mirror the strikes of the rows in `where`."""
        sign = np.where(where, -1.0, 1.0)
        return Geometry(self.speed_m_s, sign * self.angle_rad, sign * self.across, self.along, sign * self.facing_rad)


def geometry_of(shape: Shape, strikes: Strikes) -> Geometry:
    # Lengths in radii of gyration: a unit impulse with this lever turns the block as fast as it moves it.
    across = (strikes.point_m * tangent_of(strikes)).sum(axis=1) / shape.gyration_m
    along = (strikes.point_m * strikes.normal).sum(axis=1) / shape.gyration_m
    return Geometry(strikes.speed_m_s, strikes.angle_rad, across, along, shape.facing(strikes.normal))


def to_contact(shape: Shape, strikes: Strikes, motion: np.ndarray) -> np.ndarray:
    """Turn velocities [N, 3] (m/s, m/s, rad/s) of the block's frame into shares of the striking speed."""
    scaled = motion / strikes.speed_m_s[:, None]
    along = (scaled[:, :2] * strikes.normal).sum(axis=1)
    across = (scaled[:, :2] * tangent_of(strikes)).sum(axis=1)
    # rad/s times the radius of gyration: all three components then carry energy alike and may share one loss.
    return np.column_stack([along, across, shape.gyration_m * scaled[:, 2]])


def from_contact(shape: Shape, strikes: Strikes, shares: np.ndarray) -> np.ndarray:
    """Undo `to_contact`."""
    plane = shares[:, :1] * strikes.normal + shares[:, 1:2] * tangent_of(strikes)
    return strikes.speed_m_s[:, None] * np.column_stack([plane, shares[:, 2] / shape.gyration_m])


def tangent_of(strikes: Strikes) -> np.ndarray:
    # Asked for a dozen times a strike: a product costs a quarter of stacking columns.
    return strikes.normal[:, ::-1] * _QUARTER


# How predictions are judged.


@dataclass(frozen=True)
class Accuracy:
    """Shares of strikes predicted within 10 %: Accuracy(0.1) of eq. (4).

    Args:
        scaled: with angular velocities times the radius of gyration. This is what is quoted.
        raw: with m/s and rad/s in one norm, as they stand; then almost only the turning counts.
        median_error: of the relative errors, scaled.
    """

    scaled: float
    raw: float
    median_error: float


def accuracy(shape: Shape, predicted: np.ndarray, measured: np.ndarray, tolerance: float = TOLERANCE) -> Accuracy:
    """Judge velocities [N, 3] (m/s, m/s, rad/s)."""
    errors = relative_errors(predicted, measured, shape.gyration_m)
    raw = relative_errors(predicted, measured, 1.0)
    return Accuracy(float((errors < tolerance).mean()), float((raw < tolerance).mean()), float(np.median(errors)))


def relative_errors(predicted: np.ndarray, measured: np.ndarray, radius_m: float) -> np.ndarray:
    """Length of the difference over the length of the measured velocity, [N]."""
    weights = np.array([1.0, 1.0, radius_m])
    # The paper's eq. (4) does not say in which unit it adds m/s to rad/s; with a lever of 1 m turning decides alone.
    return np.linalg.norm((predicted - measured) * weights, axis=1) / np.linalg.norm(measured * weights, axis=1)
