"""Measurement of tags on the cubes by cameras: noisy poses, and now and then one that jumps for a frame."""

from __future__ import annotations

import mujoco
import numpy as np

NOISE_M, NOISE_RAD = 0.0003, np.radians(0.25)
JUMP_SHARE = 0.005
_JUMP_M, _JUMP_RAD = (0.005, 0.02), (0.05, 0.2)


def seen(poses: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Measure poses [T, n, 7]."""
    shape = poses.shape[:2]
    shifts, turns = rng.normal(0, NOISE_M, (*shape, 3)), rng.normal(0, NOISE_RAD, (*shape, 3))
    jumps = rng.random(shape) < JUMP_SHARE
    shifts += jumps[..., None] * _directed(rng, shape) * rng.uniform(*_JUMP_M, size=(*shape, 1))
    turns += jumps[..., None] * _directed(rng, shape) * rng.uniform(*_JUMP_RAD, size=(*shape, 1))
    measured = poses.copy()
    measured[..., :3] += shifts
    for quaternion, turn in zip(measured.reshape(-1, 7)[:, 3:], turns.reshape(-1, 3), strict=True):
        mujoco.mju_quatIntegrate(quaternion, turn, 1.0)
    return measured


def _directed(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    directions = rng.normal(size=(*shape, 3))
    return directions / np.linalg.norm(directions, axis=-1, keepdims=True)
