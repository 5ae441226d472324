"""Scenes that data are scaled over: which bodies, where they stand, and how fast the pushed one starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rsr.gnn.bodies import Body, Mesh, World, box_mesh, hull_mesh, uniform_body
from rsr.gnn.rotations import about_z
from rsr.scenarios.two_cubes import FRAME_S, MASS_KG, SIDE_M

_EDGE_M = (0.06, 0.10)
_MASSES_KG = (0.08, 0.30)
_SPEED_M_S = (0.3, 1.5)
_SPIN_RAD_S = 1.5
_GAP_M = 0.08
_ASIDE_M = 0.04
_PINS_APART_M = (0.005, 0.03)
LEAD_FRAMES = 2
"""Trajectories begin so many frames later: a body put on the table at full speed rocks on its edges at first."""
_TRIES = 1000


@dataclass(frozen=True)
class Scene:
    """How a simulation begins, `LEAD_FRAMES` before the trajectory does.

    Args:
        poses: [n, 7].
        velocities: [n, 6], m/s in the world's frame and rad/s in the body's.
    """

    world: World
    poses: np.ndarray
    velocities: np.ndarray


Overlap = Callable[[np.ndarray], bool]
"""Whether any two bodies overlap at poses [n, 7]."""


def cube_world(count: int = 2) -> World:
    """The scenario's cubes on the table."""
    mesh = box_mesh(np.full(3, SIDE_M / 2), "cube")
    return World(tuple(Body(f"cube{index + 1}", mesh, MASS_KG) for index in range(count)))


def varied_world(rng: np.random.Generator, count: int) -> World:
    """Bodies of different mass and shape: cubes, boxes, and prisms with three to eight sides, some of them tapered."""
    return World(
        tuple(uniform_body(f"body{index + 1}", _solid(rng), float(rng.uniform(*_MASSES_KG))) for index in range(count))
    )


def sample_push(world: World, rng: np.random.Generator, overlap: Overlap) -> Scene:
    """The first body slides towards the others, which stand in a ragged row ahead of it; in a fifth all slide."""
    count = len(world.bodies)
    heading, speed_m_s = rng.uniform(-np.pi, np.pi), rng.uniform(*_SPEED_M_S)
    for _ in range(_TRIES):
        yaw = rng.uniform(-np.pi, np.pi, count)
        if rng.random() < 0.5:  # flat face against flat face, which a free draw hardly ever shows
            yaw = heading + rng.normal(0, 0.2, count)
        poses = _standing(world, _row(world, heading, speed_m_s * LEAD_FRAMES * FRAME_S, rng), yaw)
        if not overlap(poses):
            break
    velocities = np.zeros((count, 6))
    aim = heading + rng.normal(0, 0.2)
    velocities[0, :2] = speed_m_s * np.array([np.cos(aim), np.sin(aim)])
    velocities[0, 5] = rng.normal(0, _SPIN_RAD_S)
    if rng.random() < 0.2:
        velocities[1:, :2] = rng.normal(0, 0.3, (count - 1, 2))
        velocities[1:, 5] = rng.normal(0, 1.0, count - 1)
    return Scene(world, poses, velocities)


def sample_bowling(world: World, rng: np.random.Generator) -> Scene:
    """A cube slides at others that stand like bowling pins: rows of 1, 2, 3, 4 and so on."""
    pins = len(world.bodies) - 1
    apart = SIDE_M + rng.uniform(*_PINS_APART_M)
    rows = [(row, place) for row in range(pins) for place in range(row + 1)][:pins]
    places = np.array([[row * apart, (place - row / 2) * apart] for row, place in rows])
    speed_m_s = rng.uniform(1.5, 2.5)
    behind_m = SIDE_M + rng.uniform(0.02, _GAP_M) + speed_m_s * LEAD_FRAMES * FRAME_S
    striker = np.array([[-behind_m, rng.uniform(-0.3, 0.3) * SIDE_M]])
    centre = np.concatenate([striker, places])
    yaw = np.concatenate([rng.normal(0, 0.2, 1), rng.normal(0, 0.03, pins)])
    velocities = np.zeros((pins + 1, 6))
    aim = rng.normal(0, 0.05)
    velocities[0, :2] = speed_m_s * np.array([np.cos(aim), np.sin(aim)])
    return Scene(world, _standing(world, centre, yaw), velocities)


def _row(world: World, heading: float, run_up_m: float, rng: np.random.Generator) -> np.ndarray:
    """Places [n, 2] of bodies, each a gap ahead of the one before and a little aside; the first needs a run-up."""
    ahead = np.array([np.cos(heading), np.sin(heading)])
    aside = np.array([-ahead[1], ahead[0]])
    radii = [np.linalg.norm(body.mesh.vertices_m[:, :2], axis=1).max() for body in world.bodies]
    places = [rng.uniform(-0.2, 0.2, 2)]
    for radius, before in zip(radii[1:], radii[:-1], strict=True):
        step = (radius + before) * rng.uniform(0.7, 1.0) + rng.uniform(0, _GAP_M) + run_up_m
        run_up_m = 0.0
        places.append(places[-1] + ahead * step + aside * rng.uniform(-_ASIDE_M, _ASIDE_M))
    return np.array(places)


def _standing(world: World, places: np.ndarray, yaw_rad: np.ndarray) -> np.ndarray:
    heights = [-body.mesh.vertices_m[:, 2].min() for body in world.bodies]
    return np.column_stack([places, heights, about_z(yaw_rad)])


def _solid(rng: np.random.Generator) -> Mesh:
    kind = rng.choice(["cube", "box", "prism"], p=[0.25, 0.4, 0.35])
    if kind == "cube":
        return box_mesh(np.full(3, rng.uniform(*_EDGE_M) / 2), "cube")
    if kind == "box":
        return box_mesh(rng.uniform(*_EDGE_M, 3) / 2, "box")
    return _prism(rng)


def _prism(rng: np.random.Generator) -> Mesh:
    """Sides of unequal width, so that no two of these are alike; the top may be smaller than the base."""
    sides = int(rng.integers(3, 9))
    angle = 2 * np.pi * (np.arange(sides) + rng.uniform(-0.25, 0.25, sides)) / sides
    outline = rng.uniform(*_EDGE_M) / 2 * 1.15 * np.column_stack([np.cos(angle), np.sin(angle)])
    half_m = rng.uniform(*_EDGE_M) / 2
    top = outline * (rng.uniform(0.7, 1.0) if rng.random() < 0.5 else 1.0)
    levels = [np.column_stack([outline, np.full(sides, -half_m)]), np.column_stack([top, np.full(sides, half_m)])]
    return hull_mesh(np.concatenate(levels), "prism")
