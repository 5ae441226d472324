"""A block on a few feet, on a table whose friction differs from place to place; and its motion in the plane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.common import rotated
from rsr.scenarios.built_in.strike import GRAVITY_M_S2, Shape

_CREEP_M_S = 0.002
_REST_M_S, _REST_RADIUS_M = 0.004, 0.03
_WAVES = 4
SURFACES = {"low": 0.22, "high": 0.45}


@dataclass
class Bodies:
    """N true blocks: poses [N, 3] of the centre of mass (world: x, y, turn) and velocities [N, 3]; changed in place."""

    pose: np.ndarray
    velocity: np.ndarray

    def take(self, rows: np.ndarray) -> Bodies:
        return Bodies(self.pose[rows], self.velocity[rows])


class FootedBlock:
    """True mass, inertia and centre of one block, and the feet that carry it.

    Friction of a foot is Coulomb's, with a part that grows with speed and one that differs over the table: waves of 5
    to 30 cm. Drag tips the load to the feet in front.
    """

    def __init__(self, shape: Shape, friction: float, rng: np.random.Generator) -> None:
        self.mass_kg = shape.mass_kg * rng.uniform(0.97, 1.03)
        self.inertia_kg_m2 = shape.mass_kg * shape.gyration_m**2 * rng.uniform(0.92, 1.08)
        self.centre_m = rng.normal(0, 0.0007, 2)
        self._friction = friction * rng.uniform(0.8, 1.2)
        self._viscous_s_m = rng.uniform(0.0, 0.4)
        self._feet, self._loads = _feet(shape, self.centre_m, rng)
        lengths = np.exp(rng.uniform(np.log(0.05), np.log(0.3), _WAVES))
        headings = rng.uniform(0, 2 * np.pi, _WAVES)
        self._waves = 2 * np.pi / lengths * np.stack([np.cos(headings), np.sin(headings)])  # [2, K]
        self._phases, self._depth = rng.uniform(0, 2 * np.pi, _WAVES), rng.uniform(0.02, 0.12)
        spread = (self._feet * self._loads[:, None]).T @ self._feet
        self._tip = shape.height_m / 2 * np.linalg.inv(spread)

    def friction(self, bodies: Bodies, factor: np.ndarray, drag: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Force [N, 2] and torque [N]; `factor` [N] multiplies friction, `drag` [N, 2] is the last force."""
        turn = bodies.pose[:, 2]
        arms = rotated(self._feet[None], turn[:, None])
        spin = bodies.velocity[:, 2:]
        x_speed, y_speed = (
            bodies.velocity[:, :1] - spin * arms[..., 1],
            bodies.velocity[:, 1:2] + spin * arms[..., 0],
        )
        speed = np.sqrt(x_speed**2 + y_speed**2 + _CREEP_M_S**2)
        places = bodies.pose[:, None, :2] + arms
        rough = 1 + self._depth * np.sin(places @ self._waves + self._phases).sum(axis=-1) / np.sqrt(_WAVES / 2)
        # Moments: loads w_i (W + a . r_i) carry the weight and the drag that acts half a height below the centre.
        lean = -rotated(drag, -turn) @ self._tip.T
        weight = self.mass_kg * GRAVITY_M_S2
        load = np.maximum(weight + lean @ self._feet.T, 0) * self._loads
        # A foot that lifts off leaves its share to the others: all together they carry the weight, and no more.
        load *= weight / np.maximum(load.sum(axis=1, keepdims=True), 1e-9)
        strength = self._friction * factor[:, None] * rough * (1 + self._viscous_s_m * speed) * load / speed
        x_force, y_force = -strength * x_speed, -strength * y_speed
        torque = (arms[..., 0] * y_force - arms[..., 1] * x_force).sum(axis=1)
        return np.column_stack([x_force.sum(axis=1), y_force.sum(axis=1)]), torque

    def push(self, bodies: Bodies, force: np.ndarray, torque: np.ndarray, step_s: float) -> None:
        """Advance by one step, semi-implicitly."""
        bodies.velocity[:, :2] += step_s * force / self.mass_kg
        bodies.velocity[:, 2] += step_s * torque / self.inertia_kg_m2
        bodies.pose += step_s * bodies.velocity

    def slide(self, start: Bodies, factor: np.ndarray, step_s: float, frames: int, steps_a_frame: int) -> np.ndarray:
        """Poses at the frames, [frames + 1, N, 3]; what stops stays where it is."""
        now, going = start.take(np.arange(len(factor))), np.arange(len(factor))
        drag, seen = np.zeros((len(factor), 2)), [start.pose.copy()]
        for _ in range(frames):
            part = now.take(going)
            for _ in range(steps_a_frame if len(going) else 0):
                drag[going], torque = self.friction(part, factor[going], drag[going])
                self.push(part, drag[going], torque, step_s)
            now.pose[going], now.velocity[going] = part.pose, part.velocity
            speed = np.linalg.norm(part.velocity[:, :2], axis=1) + _REST_RADIUS_M * np.abs(part.velocity[:, 2])
            going = going[speed > _REST_M_S]
            seen.append(now.pose.copy())
        return np.stack(seen)


def _feet(shape: Shape, centre_m: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Places [K, 2] about the centre of mass, and shares [K] of the weight that balance there."""
    while True:
        count = int(rng.integers(3, 7))
        low, high = shape.outline.min(axis=0), shape.outline.max(axis=0)
        drawn = rng.uniform(low, high, (20 * count, 2))
        inside = drawn[_within(shape.outline, drawn)][:count] - centre_m
        moments = np.vstack([np.ones(len(inside)), inside.T])
        # Least-norm loads that carry the weight without a moment; a foot in the air means another draw.
        loads = np.linalg.pinv(moments) @ np.array([1.0, 0.0, 0.0])
        wide = np.linalg.svd(inside, compute_uv=False)[-1] > 0.4 * shape.gyration_m
        if len(inside) == count and (loads > 0.05).all() and wide and np.allclose(moments @ loads, [1, 0, 0]):
            return inside, loads


def _within(outline: np.ndarray, points: np.ndarray) -> np.ndarray:
    edges, relative = np.roll(outline, -1, axis=0) - outline, points[:, None] - outline
    return np.asarray((edges[:, 0] * relative[..., 1] - edges[:, 1] * relative[..., 0] > 0).all(axis=1))
