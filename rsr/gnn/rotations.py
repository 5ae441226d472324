"""Quaternions wxyz in numpy, any leading shape: product, conjugate, rotation vectors and what they turn."""

from __future__ import annotations

import numpy as np

_SMALL_RAD = 1e-8


def product(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Turn by `other` first, then by `one`."""
    w, v = one[..., :1], one[..., 1:]
    x, u = other[..., :1], other[..., 1:]
    return np.concatenate([w * x - (v * u).sum(-1, keepdims=True), w * u + x * v + np.cross(v, u)], axis=-1)


def conjugate(quaternion: np.ndarray) -> np.ndarray:
    return quaternion * np.array([1.0, -1.0, -1.0, -1.0])


def rotation_vector(quaternion: np.ndarray) -> np.ndarray:
    """The shortest rotation vector, rad; q and -q are the same rotation."""
    quaternion = np.where(quaternion[..., :1] < 0, -quaternion, quaternion)
    sine = np.linalg.norm(quaternion[..., 1:], axis=-1, keepdims=True)
    angle = 2 * np.arctan2(sine, quaternion[..., :1])
    return quaternion[..., 1:] * np.where(sine < _SMALL_RAD, 2.0, angle / np.maximum(sine, _SMALL_RAD))


def from_rotation_vector(vector: np.ndarray) -> np.ndarray:
    angle = np.linalg.norm(vector, axis=-1, keepdims=True)
    share = np.where(angle < _SMALL_RAD, 0.5, np.sin(angle / 2) / np.maximum(angle, _SMALL_RAD))
    return np.concatenate([np.cos(angle / 2), vector * share], axis=-1)


def turned(quaternion: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Vectors given in the turned frame, in the frame that it was turned from."""
    w, v = quaternion[..., :1], quaternion[..., 1:]
    twice = 2 * np.cross(v, vector)
    return vector + w * twice + np.cross(v, twice)


def about_z(angle_rad: np.ndarray | float) -> np.ndarray:
    half = np.asarray(angle_rad, float) / 2
    return np.stack([np.cos(half), 0 * half, 0 * half, np.sin(half)], axis=-1)


def angle_between(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Angle of the rotation from one orientation to the other, rad, in 0..pi."""
    return np.linalg.norm(rotation_vector(product(conjugate(one), other)), axis=-1)
