"""The block's pose: position in m, then orientation as a quaternion (wxyz); turns about the vertical are its yaw."""

from __future__ import annotations

import numpy as np


def quaternion_of(yaw: np.ndarray) -> np.ndarray:
    """Quaternions [..., 4] (wxyz) of turns about the vertical by yaw [...]."""
    zero = 0 * yaw
    return np.stack([np.cos(yaw / 2), zero, zero, np.sin(yaw / 2)], axis=-1)


def yaw_of(quaternion: np.ndarray) -> np.ndarray:
    """Turn about the vertical [...] in -pi..pi of orientations [..., 4] (wxyz)."""
    w, x, y, z = np.moveaxis(quaternion, -1, 0)
    return np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def wrapped(angle_rad: np.ndarray) -> np.ndarray:
    """The same angles in -pi..pi."""
    return (angle_rad + np.pi) % (2 * np.pi) - np.pi


def yaw_error(block: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Turn about the vertical [...] that takes poses [..., 7] to target poses [..., 7], in -pi..pi."""
    return wrapped(yaw_of(target[..., 3:7]) - yaw_of(block[..., 3:7]))


def turned(quaternion: np.ndarray, yaw: np.ndarray) -> np.ndarray:
    """Turn orientations [B, 4] (wxyz) about the vertical by yaw [B]."""
    w, x, y, z = quaternion.T
    cosine, sine = np.cos(yaw / 2), np.sin(yaw / 2)
    return np.stack([cosine * w - sine * z, cosine * x - sine * y, cosine * y + sine * x, cosine * z + sine * w], 1)


def rotated(vector: np.ndarray, yaw: np.ndarray) -> np.ndarray:
    """Turn vectors [..., 2] in the plane of the table by yaw [...]."""
    cosine, sine = np.cos(yaw), np.sin(yaw)
    x, y = vector[..., 0], vector[..., 1]
    return np.stack([cosine * x - sine * y, sine * x + cosine * y], axis=-1)
