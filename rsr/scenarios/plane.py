"""Turns in a plane, counter-clockwise and in rad: of vectors, and of angles themselves."""

from __future__ import annotations

import numpy as np


def rotated(vectors: np.ndarray, angle_rad: float | np.ndarray) -> np.ndarray:
    """Turn vectors [..., 2] by one angle, or by angles [...] of their own."""
    cosine, sine = np.cos(angle_rad), np.sin(angle_rad)
    x, y = vectors[..., 0], vectors[..., 1]
    return np.stack([cosine * x - sine * y, sine * x + cosine * y], axis=-1)


def wrapped(angle_rad: np.ndarray) -> np.ndarray:
    """The same angles in -pi..pi."""
    return (angle_rad + np.pi) % (2 * np.pi) - np.pi
