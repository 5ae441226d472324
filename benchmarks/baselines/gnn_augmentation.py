"""Rotation augmentation: a few recorded trajectories under many headings, the baseline that data scaling is against."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rsr.common import SessionError, about_z, generator, product, turned
from rsr.learned.gnn import Trajectory


def rotated(trajectory: Trajectory, angle_rad: float, name: str | None = None) -> Trajectory:
    """Turn a trajectory about the vertical through the world's origin: on a level floor it is as possible as before."""
    turn = about_z(angle_rad)
    position, orientation = turned(turn, trajectory.poses[..., :3]), product(turn, trajectory.poses[..., 3:])
    return trajectory.with_poses(np.concatenate([position, orientation], axis=-1), name)


def augment(trajectories: Sequence[Trajectory], count: int, seed: int = 0) -> list[Trajectory]:
    """Make `count` trajectories of a few, each in turn under another heading. Equal arguments, equal trajectories."""
    if not trajectories:
        raise SessionError(
            got="no trajectory",
            expected="at least one that can be turned",
            where="rotation augmentation",
            next_step="Name recorded trajectories.",
        )
    angles = generator(seed, "gnn", "augmentation").uniform(-np.pi, np.pi, count).tolist()
    chosen = [trajectories[index % len(trajectories)] for index in range(count)]
    return [
        rotated(each, angle, f"{each.name}, turned {index}")
        for index, (each, angle) in enumerate(zip(chosen, angles, strict=True))
    ]
