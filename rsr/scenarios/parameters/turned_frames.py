"""Frames that parameters turn: a site, a camera or a body, by angles about its own axes.

Values may be numpy's or JAX's; quaternions are wxyz.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any
"""A numpy array, or one of JAX under a transformation."""


def turned_about(quaternions: Array, axis: int, angles: Array) -> Array:
    """Orientations [N, 4], turned by angles [N] in rad about an axis (0, 1, 2) of their own frame."""
    xp = angles.__array_namespace__()
    half = angles[:, None] / 2
    turn = xp.cos(half) * np.eye(4)[0] + xp.sin(half) * np.eye(4)[1 + axis]
    return _product(xp, quaternions, turn)


def _product(xp: Any, first: Array, second: Array) -> Array:
    """Hamilton product [N, 4]."""
    w, x, y, z = (first[:, each] for each in range(4))
    matrix = xp.stack(
        [xp.stack(row, axis=-1) for row in ((w, -x, -y, -z), (x, w, -z, y), (y, z, w, -x), (z, -y, x, w))], axis=-2
    )
    return (matrix @ second[..., None])[..., 0]
