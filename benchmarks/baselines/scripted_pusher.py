"""A scripted pusher of the T, with which a learnt one is compared: around the block to the pushing point, then push.

All vectors are in the block's frame, in m; velocities in units of the head's full speed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.scenarios import Task

ORBIT_M = 0.090
"""The finger goes around the block's middle at this distance: its farthest corner is 66 mm off, the finger 12 mm."""
ORBIT_GAIN_PER_M = 33.0
APPROACH_GAIN_PER_M = 50.0
ALIGN_GAIN_PER_M = 33.0
SAME_SIDE_RAD = 0.4
"""Nearer than this to the pushing point's bearing, the finger goes straight to it."""
ALIGNED_M = 0.005
AT_CONTACT_M = 0.02


@dataclass(frozen=True)
class ScriptedPusher:
    """Acts as a policy does, from the same observation and through the same head."""

    task: Task

    def act(self, observation: np.ndarray) -> np.ndarray:
        """Actions [B, 6] of observations [B, n]."""
        names = ("fingertip", "pushing point from fingertip", "pushing direction")
        return self.task.act(observation, velocity(*(observation[..., self.task.columns(name)] for name in names)))


def velocity(tip: np.ndarray, way: np.ndarray, inwards: np.ndarray) -> np.ndarray:
    """Fingertip velocity [..., 2] along the block's axes, in -1..1.

    Args:
        tip: of the finger from the block's middle [..., 2].
        way: from the fingertip to the pushing point [..., 2].
        inwards: direction of the push there [..., 2].
    """
    along = way[..., 0] * inwards[..., 0] + way[..., 1] * inwards[..., 1]
    aside = way - along[..., None] * inwards
    aligned = np.linalg.norm(aside, axis=-1, keepdims=True) < ALIGNED_M
    push = inwards + ALIGN_GAIN_PER_M * aside
    approach = np.where(_other_side(tip, way), _orbit(tip, way), APPROACH_GAIN_PER_M * way)
    at_contact = along[..., None] < AT_CONTACT_M
    return np.clip(np.where(aligned, np.where(at_contact, push, approach), approach), -1.0, 1.0)


def _bearing(tip: np.ndarray, way: np.ndarray) -> np.ndarray:
    """Turn [..., 1] about the block's middle that takes the fingertip to the bearing of the pushing point."""
    goal = tip + way
    cross = tip[..., 0] * goal[..., 1] - tip[..., 1] * goal[..., 0]
    dot = tip[..., 0] * goal[..., 0] + tip[..., 1] * goal[..., 1]
    return np.arctan2(cross, dot)[..., None]


def _other_side(tip: np.ndarray, way: np.ndarray) -> np.ndarray:
    return np.abs(_bearing(tip, way)) > SAME_SIDE_RAD


def _orbit(tip: np.ndarray, way: np.ndarray) -> np.ndarray:
    """Around the block the short way, at a distance that keeps clear of it."""
    distance = np.maximum(np.linalg.norm(tip, axis=-1, keepdims=True), 1e-6)
    outwards = tip / distance
    left = np.stack([-outwards[..., 1], outwards[..., 0]], axis=-1)
    course = np.where(_bearing(tip, way) < 0.0, -left, left) + ORBIT_GAIN_PER_M * (ORBIT_M - distance) * outwards
    return course / np.maximum(np.linalg.norm(course, axis=-1, keepdims=True), 1e-6)
