"""The task of the paper's Appendix B: what the policy sees, what it is paid, where episodes start, what success is."""

from __future__ import annotations

import numpy as np

from rsr.scenarios.pushing import kinematics
from rsr.scenarios.pushing.arm import CENTRE_M, TIP_HEIGHT_M
from rsr.scenarios.pushing.pose import quaternion_of
from rsr.scenarios.pushing.task import Starts, Task, Term, away_from

DISTANCE_WEIGHT = 6.0
GUIDANCE_WEIGHT = 3.0
CUBE_HALF_M = 0.025
SUCCESS_M = 0.03


def observation(joints: np.ndarray, block: np.ndarray, target: np.ndarray) -> np.ndarray:
    """[B, 21] float32: joints, fingertip, target, block, target - block, block - fingertip; rad and m, world frame."""
    tip = kinematics.fingertip(joints)
    return np.concatenate([joints, tip, target, block, target - block, block - tip], axis=-1).astype(np.float32)


def reward(tip: np.ndarray, block: np.ndarray, target: np.ndarray) -> np.ndarray:
    """6.0 r_d + 3.0 r_ee with r_d = -|block - target|, r_ee = -|fingertip - block|."""
    distance = np.linalg.norm(block - target, axis=-1)
    guidance = np.linalg.norm(tip - block, axis=-1)
    return -DISTANCE_WEIGHT * distance - GUIDANCE_WEIGHT * guidance


def succeeded(block: np.ndarray, target: np.ndarray) -> np.ndarray:
    """True where the block ends within 3 cm of its target."""
    return np.linalg.norm(block[..., :2] - target[..., :2], axis=-1) < SUCCESS_M


def sample_starts(rng: np.random.Generator, count: int) -> Starts:
    """Draw cube poses, targets at least 6 cm away, and fingertips clear of the cube."""
    block = rng.uniform(-0.08, 0.08, (count, 2))
    target = away_from(rng, block, 0.10, 0.06)
    tip = away_from(rng, block, 0.12, 0.07)
    yaw = rng.uniform(-np.pi, np.pi, count)
    height = np.full((count, 1), CUBE_HALF_M)
    tip_position = np.concatenate([tip + CENTRE_M, np.full((count, 1), TIP_HEIGHT_M)], axis=1)
    joints = kinematics.joints_for(tip_position)
    qpos = np.concatenate([block + CENTRE_M, height, quaternion_of(yaw), joints], axis=1)
    return Starts(qpos, np.concatenate([target + CENTRE_M, height], axis=1))


TASK = Task(
    name="push_cube",
    terms=(
        Term("joints", 6, "rad", "joint", ("joint_position",)),
        Term("fingertip", 3, "m", "world", ("tip_position",)),
        Term("target", 3, "m", "world", ("target_position",)),
        Term("block", 3, "m", "world", ("block_position",)),
        Term("target - block", 3, "m", "world", ("target_position", "block_position")),
        Term("block - fingertip", 3, "m", "world", ("block_position", "tip_position")),
    ),
    block_channels=("block_position",),
    target_channels=("target_position",),
    observation=observation,
    reward=reward,
    succeeded=succeeded,
    sample_starts=sample_starts,
    success_m=SUCCESS_M,
)
