"""Trajectories that tests share: two cubes, one pushed into the other, simulated by a teacher with known contacts."""

from __future__ import annotations

from functools import cache

import numpy as np

from benchmarks.baselines.gnn_scenes import compiled, cube_world, simulate
from rsr.common.rotations import from_rotation_vector, product
from rsr.learned.gnn.trajectories import Trajectory
from rsr.scenarios.built_in.two_cubes import ContactParameters

KNOWN = ContactParameters(0.3, (0.92, 0.97, 0.002, 0.03, 2.5), (0.012, 0.7))
WORLD = cube_world(2)


@cache
def pushed(speed_m_s: float = 1.0, aside_m: float = 0.01, frames: int = 20) -> Trajectory:
    """The first cube slides 5 cm along x and hits the second off its middle. It has slid for two frames already."""
    poses = np.tile([0, 0, 0.04, 1, 0, 0, 0.0], (2, 1))
    poses[0, :2] = -0.13 - 2 * speed_m_s / 60, aside_m
    velocities = np.zeros((2, 6))
    velocities[0, 0] = speed_m_s + 2 * KNOWN.mu * 9.81 / 60
    found = simulate(compiled(WORLD, KNOWN), poses[None], velocities[None], frames + 2)
    return Trajectory(WORLD, found[0, 2:], name=f"push at {speed_m_s:g} m/s")


def noisy(
    trajectory: Trajectory, rng: np.random.Generator, noise_m: float = 3e-4, noise_rad: float = 4e-3
) -> Trajectory:
    """The same as a camera sees it."""
    poses = trajectory.poses.copy()
    poses[..., :3] += rng.normal(0, noise_m, poses[..., :3].shape)
    poses[..., 3:] = product(poses[..., 3:], from_rotation_vector(rng.normal(0, noise_rad, poses[..., :3].shape)))
    return trajectory.with_poses(poses)
