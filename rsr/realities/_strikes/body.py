"""The true block in the plane: mass, inertia and centre, and the patch of ground friction that it slides on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.common import rotated
from rsr.realities._strikes.truth import Ground, StrikeTruth
from rsr.scenarios.built_in.strike import GRAVITY_M_S2, Shape

_GRID = 7
_SMOOTHING_M2_S2 = 4e-6
REST_SPEED_M_S, _REST_RADIUS_M = 0.004, 0.03


@dataclass
class Motion:
    """Poses [N, 3] (world: x, y, turn) and velocities [N, 3] of the true centre of mass; changed in place.

    Args:
        force: [N, 2], ground friction of the last step; it shifts the load to the leading edge.
    """

    pose: np.ndarray
    velocity: np.ndarray
    force: np.ndarray

    def take(self, rows: np.ndarray) -> Motion:
        return Motion(self.pose[rows], self.velocity[rows], self.force[rows])


class TrueBlock:
    """One block on its table."""

    def __init__(self, shape: Shape, truth: StrikeTruth) -> None:
        ground = truth.ground
        self.mass_kg = shape.mass_kg * truth.mass_ratio
        self.inertia_kg_m2 = shape.mass_kg * shape.gyration_m**2 * truth.inertia_ratio
        self.centre_m = np.array(truth.centre_m)
        self._ground, self._half_height_m = ground, shape.height_m / 2
        self._points = _inside(shape) - self.centre_m
        self._weights = _pressure(self._points, ground)
        moments = np.column_stack([np.ones(len(self._points)), self._points])
        self._columns = moments
        self._inverse = np.linalg.inv((moments * self._weights[:, None]).T @ moments)
        axes = rotated(np.eye(2), ground.direction_rad).T
        self._directions = axes @ np.diag([1 + ground.anisotropy, 1 - ground.anisotropy]) @ axes.T

    def friction(self, motion: Motion, scatter: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Force [N, 2] and torque [N] of the ground; `scatter` [N] multiplies friction."""
        ground, turn = self._ground, motion.pose[:, 2]
        arms = rotated(self._points[None], turn[:, None])
        turning = motion.velocity[:, 2:3]
        x_speed = motion.velocity[:, :1] - turning * arms[..., 1]
        y_speed = motion.velocity[:, 1:2] + turning * arms[..., 0]
        speed = np.sqrt(x_speed**2 + y_speed**2 + _SMOOTHING_M2_S2)
        static = (ground.static_ratio - 1) * np.exp(-speed / ground.static_speed_m_s)
        strength = ground.friction * scatter[:, None] * (1 + ground.rate_s_m * speed + static)
        per_speed = -strength * self._load(motion, turn) / speed
        (xx, xy), (_, yy) = self._directions
        x_force = per_speed * (xx * x_speed + xy * y_speed)
        y_force = per_speed * (xy * x_speed + yy * y_speed)
        torque = (arms[..., 0] * y_force - arms[..., 1] * x_force).sum(axis=1)
        return np.column_stack([x_force.sum(axis=1), y_force.sum(axis=1)]), torque

    def _load(self, motion: Motion, turn: np.ndarray) -> np.ndarray:
        """Force on each point [N, K]: the weight, tipped forward by friction below the centre of mass."""
        tipping = -self._half_height_m * rotated(motion.force, -turn)
        weight = np.full((len(turn), 1), self.mass_kg * GRAVITY_M_S2)
        load = np.maximum(np.hstack([weight, tipping]) @ self._inverse.T @ self._columns.T, 0) * self._weights
        return load * weight / np.maximum(load.sum(axis=1, keepdims=True), 1e-9)

    def push(self, motion: Motion, force: np.ndarray, torque: np.ndarray, step_s: float) -> None:
        """Advance by one step under a force [N, 2] and a torque [N]; semi-implicit."""
        motion.velocity[:, :2] += step_s * force / self.mass_kg
        motion.velocity[:, 2] += step_s * torque / self.inertia_kg_m2
        motion.pose += step_s * motion.velocity

    def slide(self, start: Motion, scatter: np.ndarray, step_s: float, frames: int, steps_a_frame: int) -> np.ndarray:
        """Slide for a number of frames; poses at the frames, [frames + 1, N, 3]. What stops stays where it is."""
        now, seen = start.take(np.arange(len(scatter))), [start.pose.copy()]
        going = np.arange(len(scatter))
        for _ in range(frames):
            part, own = now.take(going), scatter[going]
            for _ in range(steps_a_frame):
                force, torque = self.friction(part, own)
                part.force = force
                self.push(part, force, torque, step_s)
            still = _slow(part.velocity)
            part.velocity[still] = 0
            now.pose[going], now.velocity[going], now.force[going] = part.pose, part.velocity, part.force
            going = going[~still]
            seen.append(now.pose.copy())
        return np.stack(seen)


def _slow(velocity: np.ndarray) -> np.ndarray:
    return np.linalg.norm(velocity[:, :2], axis=1) + _REST_RADIUS_M * np.abs(velocity[:, 2]) < REST_SPEED_M_S


def _inside(shape: Shape) -> np.ndarray:
    """Points of a grid that lie in the outline, [K, 2]."""
    low, high = shape.outline.min(axis=0), shape.outline.max(axis=0)
    ticks = low + (np.arange(_GRID)[:, None] + 0.5) / _GRID * (high - low)
    grid = np.stack(np.meshgrid(ticks[:, 0], ticks[:, 1]), axis=-1).reshape(-1, 2)
    edges = np.roll(shape.outline, -1, axis=0) - shape.outline
    relative = grid[:, None] - shape.outline
    left = edges[:, 0] * relative[..., 1] - edges[:, 1] * relative[..., 0]
    return grid[(left > 0).all(axis=1)]


def _pressure(points: np.ndarray, ground: Ground) -> np.ndarray:
    radius = np.linalg.norm(points, axis=1)
    side = points @ np.array([np.cos(ground.slope_rad), np.sin(ground.slope_rad)])
    weights = np.maximum(1 + ground.rim * (radius / radius.max()) ** 2 + ground.slope * side / radius.max(), 0.05)
    return weights / weights.sum()
