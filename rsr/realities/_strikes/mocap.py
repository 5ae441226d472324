"""Motion capture of strikes: noisy frames, velocities by a quadratic through the first of them."""

from __future__ import annotations

import numpy as np

from rsr.common import rotated
from rsr.realities._strikes.body import REST_SPEED_M_S
from rsr.scenarios.built_in.strike import Strikes

FRAME_S = 0.004
_FITTED_FRAMES, _FEWEST_FRAMES = 15, 6
NOISE = np.array([0.00015, 0.00015, np.radians(0.17)])
_SPEED_SHARE, _POINT_M, _DIRECTION_RAD = 0.01, 0.0003, np.radians(0.5)


def measured_strikes(strikes: Strikes, curvature: np.ndarray, rng: np.random.Generator) -> Strikes:
    """Strikes as recorded: with errors of speed, place on the face and direction."""
    speed, shift, turn = rng.normal(size=(3, len(strikes)))
    shift = shift * _POINT_M
    tangent = np.column_stack([-strikes.normal[:, 1], strikes.normal[:, 0]])
    # The normal is inward and tangent is to its left: that way around a convex block, it turns clockwise.
    bend = -shift * curvature
    normal, point = rotated(strikes.normal, bend), strikes.point_m + tangent * shift[:, None]
    angle = strikes.angle_rad + turn * _DIRECTION_RAD - bend
    return Strikes(strikes.speed_m_s * (1 + speed * _SPEED_SHARE), angle, point, normal)


def fitted_velocities(poses: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Velocities [N, 3] at the first of the frames [T, N, 3], from noisy ones as long as the block moves."""
    noisy = poses[:_FITTED_FRAMES] + rng.normal(size=poses[:_FITTED_FRAMES].shape) * NOISE
    steps = np.linalg.norm(np.diff(poses[:_FITTED_FRAMES, :, :2], axis=0), axis=2)
    moving = np.clip((steps > REST_SPEED_M_S * FRAME_S).sum(axis=0), _FEWEST_FRAMES, None)
    time_s = np.arange(len(noisy)) * FRAME_S
    return np.array([np.polyfit(time_s[:n], noisy[:n, i], 2)[1] for i, n in enumerate(moving)])


def resting(poses: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Measure the last poses, [N, 3]."""
    return poses[-1] + rng.normal(size=poses[-1].shape) * NOISE
