"""The block's pose: position in m, then orientation as a quaternion (wxyz); turns about the vertical are its yaw."""

from __future__ import annotations

import numpy as np

from rsr.scenarios.plane import wrapped


def quaternion_of(yaw: np.ndarray) -> np.ndarray:
    """Quaternions [..., 4] (wxyz) of turns about the vertical by yaw [...]."""
    zero = 0 * yaw
    return np.stack([np.cos(yaw / 2), zero, zero, np.sin(yaw / 2)], axis=-1)


def yaw_of(quaternion: np.ndarray) -> np.ndarray:
    """Turn about the vertical [...] in -pi..pi of orientations [..., 4] (wxyz)."""
    w, x, y, z = np.moveaxis(quaternion, -1, 0)
    return np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def yaw_error(block: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Turn about the vertical [...] that takes poses [..., 7] to target poses [..., 7], in -pi..pi."""
    return wrapped(yaw_of(target[..., 3:7]) - yaw_of(block[..., 3:7]))


def turned(quaternion: np.ndarray, yaw: np.ndarray) -> np.ndarray:
    """Turn orientations [B, 4] (wxyz) about the vertical by yaw [B]."""
    w, x, y, z = quaternion.T
    cosine, sine = np.cos(yaw / 2), np.sin(yaw / 2)
    return np.stack([cosine * w - sine * z, cosine * x - sine * y, cosine * y + sine * x, cosine * z + sine * w], 1)
