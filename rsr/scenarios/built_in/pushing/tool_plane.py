"""The policy's last, analytic layer: a fingertip velocity in the table's plane becomes six joint displacements.

The network in front of it decides in two dimensions what matters for pushing; this layer keeps the tool vertical and
at pushing height. Observation in, six displacements out: the whole policy acts in joint space.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from rsr.common import rotated
from rsr.scenarios import ActionHead
from rsr.scenarios.built_in.pushing import arm, kinematics

SPEED_M_S = 0.30
STEP_S = 0.05
CORRECTION = 0.3
"""Share of the error in height, pitch and rolls taken back in one control step."""
REACH_M = (0.17, 0.52)


def head(heading: Callable[[np.ndarray], np.ndarray], alone: int) -> ActionHead:
    """Make the head of a task.

    Args:
        heading: observation [B, n] -> direction [B] in the world of the first axis along which the network chooses: how
            to push a block does not depend on how it lies on the table.
        alone: see `ActionHead`.
    """
    return ActionHead(2, partial(_act, heading=heading), alone)


def _act(observation: np.ndarray, chosen: np.ndarray, heading: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Six displacements in -1..1, [B, 6], for what the network chose [B, 2], in units of SPEED_M_S."""
    return displacements(observation, rotated(np.clip(chosen, -1.0, 1.0), heading(observation)))


def displacements(observation: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    """Six displacements in -1..1, [B, 6], for velocities [B, 2] in units of SPEED_M_S."""
    joints = observation[..., :6].astype(float)
    tip = kinematics.fingertip(joints)
    pitch = joints[..., 1] + joints[..., 2] + joints[..., 4]
    goal = tip.copy()
    goal[..., :2] = _within_reach(tip[..., :2] + SPEED_M_S * STEP_S * np.clip(velocity, -1.0, 1.0))
    goal[..., 2] += CORRECTION * (arm.TIP_HEIGHT_M - tip[..., 2])
    wanted = kinematics.joints_for(goal, pitch + CORRECTION * (np.pi / 2 - pitch))
    change = wanted - joints
    change[..., 3] *= CORRECTION
    change[..., 5] *= CORRECTION
    return np.clip(change / arm.STEP_RAD, -1.0, 1.0)


def _within_reach(xy: np.ndarray) -> np.ndarray:
    radius = np.maximum(np.linalg.norm(xy, axis=-1, keepdims=True), 1e-6)
    return xy * (np.clip(radius, *REACH_M) / radius)
