"""The policy's last, analytic layer: a fingertip velocity in the table's plane becomes six joint displacements.

The network in front of it decides in two dimensions what matters for pushing; this layer keeps the tool vertical and
at pushing height. Observation in, six displacements out: the whole policy acts in joint space.
"""

from __future__ import annotations

import numpy as np

from rsr.scenarios.push_cube import kinematics, task

SPEED_M_S = 0.30
STEP_S = 0.05
CORRECTION = 0.3
"""Share of the error in height, pitch and rolls taken back in one control step."""
REACH_M = (0.17, 0.52)


def displacements(observation: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    """Six displacements in -1..1, [B, 6], for velocities [B, 2] in units of SPEED_M_S."""
    joints = observation[..., :6].astype(float)
    tip = kinematics.fingertip(joints)
    pitch = joints[..., 1] + joints[..., 2] + joints[..., 4]
    goal = tip.copy()
    goal[..., :2] = _within_reach(tip[..., :2] + SPEED_M_S * STEP_S * np.clip(velocity, -1.0, 1.0))
    goal[..., 2] += CORRECTION * (task.TIP_HEIGHT_M - tip[..., 2])
    wanted = kinematics.joints_for(goal, pitch + CORRECTION * (np.pi / 2 - pitch))
    change = wanted - joints
    change[..., 3] *= CORRECTION
    change[..., 5] *= CORRECTION
    return np.clip(change / task.STEP_RAD, -1.0, 1.0)


def _within_reach(xy: np.ndarray) -> np.ndarray:
    radius = np.maximum(np.linalg.norm(xy, axis=-1, keepdims=True), 1e-6)
    return xy * (np.clip(radius, *REACH_M) / radius)
