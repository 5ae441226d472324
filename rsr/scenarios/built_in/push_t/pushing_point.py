"""Where a push of the T helps most; all in the T's own frame, in m.

A hint for the learner, not a law: training pays a little for being there, and the network sees the place.
"""

from __future__ import annotations

import numpy as np

from rsr.common import lengths, rotated

OUTLINE_M = 0.001 * np.array(
    [[-50, 35.6], [50, 35.6], [50, 5.6], [15, 5.6], [15, -64.4], [-15, -64.4], [-15, 5.6], [-50, 5.6]]
)
"""Corners of the T, clockwise."""
_EDGES = np.roll(OUTLINE_M, -1, axis=0) - OUTLINE_M
CONTACT_M = np.concatenate([OUTLINE_M + share * _EDGES for share in (0.2, 0.5, 0.8)])
"""Points of the outline that may be pushed."""
NORMAL = np.tile(np.stack([-_EDGES[:, 1], _EDGES[:, 0]], axis=1) / np.linalg.norm(_EDGES, axis=1)[:, None], (3, 1))
"""Directions out of the T there."""
TIP_GAP_M = 0.018
"""From the outline to the finger's middle: its radius of 12 mm, and some room."""


def push_from(goal: np.ndarray, turn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Choose the point of the outline that has farthest to go inwards.

    Args:
        goal: where the T's frame shall be [..., 2].
        turn: by which it shall be turned [...].

    Returns:
        where the fingertip should be [..., 2], and the direction into the T there [..., 2].
    """
    to_go = -np.sum((_moved(CONTACT_M, goal, turn) - CONTACT_M) * NORMAL, axis=-1)
    best = np.argmax(to_go, axis=-1)
    return (CONTACT_M + TIP_GAP_M * NORMAL)[best], -NORMAL[best]


def off_goal(goal: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Mean distance [...] of the corners of a T of twice the size from where they shall be.

    Twice, so that the 15 degrees of the task weigh about as much as its 3 cm.
    """
    return lengths(_moved(2 * OUTLINE_M, goal, turn) - 2 * OUTLINE_M).mean(axis=-1)


def nearest(tip: np.ndarray) -> np.ndarray:
    """From the fingertip to the nearest point of the outline [..., 2]."""
    along = np.sum((tip[..., None, :] - OUTLINE_M) * _EDGES, axis=-1) / np.sum(_EDGES**2, axis=-1)
    way = OUTLINE_M + np.clip(along, 0.0, 1.0)[..., None] * _EDGES - tip[..., None, :]
    best = np.argmin(np.sum(way**2, axis=-1), axis=-1)[..., None, None]
    return np.take_along_axis(way, best, axis=-2)[..., 0, :]


def _moved(points: np.ndarray, goal: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Points [n, 2] of the T where they shall be [..., n, 2]."""
    return goal[..., None, :] + rotated(points, turn[..., None])
