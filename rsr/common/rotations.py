"""Turns in a plane, counter-clockwise and in rad: of vectors, and of angles themselves."""

from __future__ import annotations

import numpy as np


def rotated(vectors: np.ndarray, angle_rad: float | np.ndarray) -> np.ndarray:
    """Turn vectors [..., 2] by one angle, or by angles [...] of their own."""
    cosine, sine = np.cos(angle_rad), np.sin(angle_rad)
    x, y = vectors[..., 0], vectors[..., 1]
    return joined(cosine * x - sine * y, sine * x + cosine * y)


def joined(*columns: np.ndarray) -> np.ndarray:
    """Columns [...] side by side, [..., n]: `np.stack` in a third of its time, which counts where rows are few."""
    return np.concatenate([column[..., None] for column in columns], axis=-1)


def lengths(vectors: np.ndarray) -> np.ndarray:
    """Lengths [...] of vectors [..., n], to the bit those of `np.linalg.norm`, in a third of its time for a few."""
    return np.sqrt(np.add.reduce(vectors * vectors, axis=-1))


def wrapped(angle_rad: np.ndarray) -> np.ndarray:
    """The same angles in -pi..pi."""
    return (angle_rad + np.pi) % (2 * np.pi) - np.pi


WRAPS_WITHIN_RAD = 2 * np.pi * (1 + 1e-3)
"""Angles that were cut to one turn lie within it, but for rounding; readings of more than a turn were not cut."""


def wraps(angles_rad: np.ndarray) -> np.ndarray:
    """Where angles [T, W], cut to one turn, go on at its other end: [T - 1, W], between a row and the next."""
    with np.errstate(invalid="ignore"):
        cut = np.ptp(angles_rad, axis=0) <= WRAPS_WITHIN_RAD if len(angles_rad) else False
        return (np.abs(np.diff(angles_rad, axis=0)) > np.pi) & cut


def unwrapped(angles_rad: np.ndarray) -> np.ndarray:
    """The same angles [T, W] without jumps of a turn, from the first row on; those that were not cut as they are."""
    jumps = np.where(wraps(angles_rad), np.round(np.diff(angles_rad, axis=0) / (2 * np.pi)), 0.0)
    return angles_rad - 2 * np.pi * np.concatenate([np.zeros_like(angles_rad[:1]), np.cumsum(jumps, axis=0)])


# Quaternions wxyz in numpy, any leading shape: product, conjugate, rotation vectors and what they turn.

_SMALL_RAD = 1e-8


def product(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Turn by `other` first, then by `one`."""
    w, v = one[..., :1], one[..., 1:]
    x, u = other[..., :1], other[..., 1:]
    return np.concatenate([w * x - (v * u).sum(-1, keepdims=True), w * u + x * v + cross(v, u)], axis=-1)


def cross(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """`np.cross` of vectors [..., 3] in a third of its time, which counts where few are turned at a time."""
    a, b, c = one[..., 0], one[..., 1], one[..., 2]
    x, y, z = other[..., 0], other[..., 1], other[..., 2]
    return joined(b * z - c * y, c * x - a * z, a * y - b * x)


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
    twice = 2 * cross(v, vector)
    return vector + w * twice + cross(v, twice)


def about_z(angle_rad: np.ndarray | float) -> np.ndarray:
    """Quaternions [..., 4] (wxyz) of turns about the vertical by angles [...]."""
    half = np.asarray(angle_rad, float) / 2
    return joined(np.cos(half), 0 * half, 0 * half, np.sin(half))


def angle_between(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Angle of the rotation from one orientation to the other, rad, in 0..pi."""
    return np.linalg.norm(rotation_vector(product(conjugate(one), other)), axis=-1)


# Turns about the vertical of orientations wxyz: their yaw.


def yaw_of(quaternion: np.ndarray) -> np.ndarray:
    """Turn about the vertical [...] in -pi..pi of orientations [..., 4] (wxyz)."""
    w, x, y, z = (quaternion[..., column] for column in range(4))
    return np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def yaw_error(orientation: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Turn about the vertical [...] that takes orientations [..., 4] to target orientations [..., 4], in -pi..pi."""
    return wrapped(yaw_of(target) - yaw_of(orientation))
