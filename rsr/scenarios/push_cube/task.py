"""The task of the paper's Appendix B: what the policy sees, what it is paid, where episodes start, what success is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.scenarios.push_cube import kinematics

DISTANCE_WEIGHT = 6.0
GUIDANCE_WEIGHT = 3.0
STEP_RAD = 0.08
"""Largest joint displacement an action can ask for in one control step."""
LEAD_RAD = 0.15
"""A setpoint never leads the measured joint by more, so that a blocked arm does not wind up."""
CUBE_HALF_M = 0.025
TIP_HEIGHT_M = 0.025
CENTRE_M = np.array([0.36, 0.0])
SUCCESS_M = 0.03
OBSERVATION_SIZE = 21
OBSERVATION_LIMIT = 100.0
"""No observation reaches it (rad, m); for learners that want bounded spaces."""
ACTION_SIZE = 6


@dataclass(frozen=True)
class Starts:
    """Where episodes begin.

    Args:
        qpos: [B, 13], cube pose then joints; everything at rest.
        target: [B, 3].
    """

    qpos: np.ndarray
    target: np.ndarray

    def __len__(self) -> int:
        return len(self.qpos)

    def repeated(self, times: int) -> Starts:
        """All of them, `times` times over."""
        return Starts(np.tile(self.qpos, (times, 1)), np.tile(self.target, (times, 1)))


def observation(joints: np.ndarray, block: np.ndarray, target: np.ndarray) -> np.ndarray:
    """[B, 21] float32: joints, fingertip, target, block, target - block, block - fingertip; rad and m, world frame."""
    tip = kinematics.fingertip(joints)
    return np.concatenate([joints, tip, target, block, target - block, block - tip], axis=-1).astype(np.float32)


def reward(tip: np.ndarray, block: np.ndarray, target: np.ndarray) -> np.ndarray:
    """6.0 r_d + 3.0 r_ee with r_d = -|block - target|, r_ee = -|fingertip - block|."""
    distance = np.linalg.norm(block - target, axis=-1)
    guidance = np.linalg.norm(tip - block, axis=-1)
    return -DISTANCE_WEIGHT * distance - GUIDANCE_WEIGHT * guidance


def next_setpoint(setpoint: np.ndarray, joints: np.ndarray, action: np.ndarray) -> np.ndarray:
    """Turn displacements in -1..1 into the next joint setpoints, within reach of the arm and of its limits."""
    wanted = setpoint + STEP_RAD * np.clip(action, -1.0, 1.0)
    near = np.clip(wanted, joints - LEAD_RAD, joints + LEAD_RAD)
    return np.clip(near, kinematics.JOINT_LOWER_RAD, kinematics.JOINT_UPPER_RAD)


def succeeded(block: np.ndarray, target: np.ndarray) -> np.ndarray:
    """True where the block ends within 3 cm of its target."""
    return np.linalg.norm(block[..., :2] - target[..., :2], axis=-1) < SUCCESS_M


def sample_starts(rng: np.random.Generator, count: int) -> Starts:
    """Draw cube poses, targets at least 6 cm away, and fingertips clear of the cube."""
    block = rng.uniform(-0.08, 0.08, (count, 2))
    target = _away_from(rng, block, 0.10, 0.06)
    tip = _away_from(rng, block, 0.12, 0.07)
    yaw = rng.uniform(-np.pi, np.pi, count)
    height = np.full((count, 1), CUBE_HALF_M)
    quaternion = np.stack([np.cos(yaw / 2), 0 * yaw, 0 * yaw, np.sin(yaw / 2)], axis=-1)
    tip_position = np.concatenate([tip + CENTRE_M, np.full((count, 1), TIP_HEIGHT_M)], axis=1)
    joints = kinematics.joints_for(tip_position)
    qpos = np.concatenate([block + CENTRE_M, height, quaternion, joints], axis=1)
    return Starts(qpos, np.concatenate([target + CENTRE_M, height], axis=1))


def _away_from(rng: np.random.Generator, points: np.ndarray, half_width: float, distance: float) -> np.ndarray:
    """Uniform points in a square, redrawn until each is at least `distance` from its partner."""
    drawn = rng.uniform(-half_width, half_width, points.shape)
    while (close := np.linalg.norm(drawn - points, axis=1) < distance).any():
        drawn[close] = rng.uniform(-half_width, half_width, (int(close.sum()), 2))
    return drawn
