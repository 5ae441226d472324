"""A body's inertia in coordinates that cannot be unphysical: stretches and shears of its mass distribution.

With L upper triangular and exp(stretch) on its diagonal, the second moments of mass about the centre of mass become
L S L', positive definite whatever the numbers: the log-Cholesky coordinates of Rucker and Wensing (2022), relative to
the MJCF. Each number is one factor of L, so that each can be a parameter of its own. Mass and centre of mass have
fields of their own. Values may be numpy's or JAX's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any
"""A numpy array, or one of JAX under a transformation."""

_APART = 1e-9
"""Relative distance kept between second moments: equal ones have principal axes without a derivative."""


def deformed(inertia: Array, quaternion: Array, row: int, column: int, values: Array) -> tuple[Array, Array]:
    """Principal inertias [N, 3] and their axes [N, 4] after one stretch (row = column) or shear, in the body's frame.

    Args:
        inertia, quaternion: principal inertias [N, 3] and axes [N, 4] before.
        values: [N]; 0 changes nothing.
    """
    xp = values.__array_namespace__()
    axes = _matrix(xp, quaternion)
    # Second moments: half the trace of the inertia, less the inertia.
    moments = inertia.sum(axis=-1, keepdims=True) / 2 - inertia
    whole = (axes * moments[:, None, :]) @ xp.swapaxes(axes, 1, 2)
    place = np.zeros((3, 3))
    place[row, column] = 1.0
    factor = np.eye(3) + place * ((xp.exp(values) - 1.0) if row == column else values)[:, None, None]
    whole = factor @ whole @ xp.swapaxes(factor, 1, 2)
    size = xp.trace(whole, axis1=1, axis2=2)[:, None, None]
    found, turned = xp.linalg.eigh(whole + _APART * size * np.diag([0.0, 1.0, 2.0]))
    # Right-handed axes; their signs are arbitrary otherwise.
    turned = turned * xp.where(xp.linalg.det(turned) < 0, -1.0, 1.0)[:, None, None]
    return found.sum(axis=-1, keepdims=True) - found, _quaternion(xp, turned)


def _matrix(xp: Any, quaternion: Array) -> Array:
    """Rotation matrices [N, 3, 3] of quaternions [N, 4] (wxyz)."""
    w, x, y, z = (quaternion[:, each] for each in range(4))
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return xp.stack([xp.stack(row, axis=-1) for row in rows], axis=-2)


def _quaternion(xp: Any, matrix: Array) -> Array:
    """Quaternions [N, 4] (wxyz) of rotation matrices: of the four rows of 4 q q', the one with the largest diagonal."""
    m = [[matrix[:, row, column] for column in range(3)] for row in range(3)]
    one = xp.ones_like(m[0][0])
    rows = (
        (one + m[0][0] + m[1][1] + m[2][2], m[2][1] - m[1][2], m[0][2] - m[2][0], m[1][0] - m[0][1]),
        (m[2][1] - m[1][2], one + m[0][0] - m[1][1] - m[2][2], m[0][1] + m[1][0], m[0][2] + m[2][0]),
        (m[0][2] - m[2][0], m[0][1] + m[1][0], one - m[0][0] + m[1][1] - m[2][2], m[1][2] + m[2][1]),
        (m[1][0] - m[0][1], m[0][2] + m[2][0], m[1][2] + m[2][1], one - m[0][0] - m[1][1] + m[2][2]),
    )
    outer = xp.stack([xp.stack(row, axis=-1) for row in rows], axis=-2)
    largest = xp.argmax(xp.stack([rows[each][each] for each in range(4)], axis=-1), axis=-1)
    chosen = xp.take_along_axis(outer, largest[:, None, None], axis=1)[:, 0]
    return chosen / xp.sqrt((chosen * chosen).sum(axis=-1, keepdims=True))
