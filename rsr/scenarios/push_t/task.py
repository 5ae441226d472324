"""The task of the paper's Appendix B for the T-shaped block: position and orientation count.

The paper's reward weighs orientation five times position within the ranges below, and says nothing of the finger. So
training also pays the increase of a potential: how near the block's corners are to where they shall be, which is smooth
in position and orientation alike, and how near the finger is to where a push would now help most. (Guidance to the
block's middle, as for the cube, leaves a finger standing on the wrong side of it.)
"""

from __future__ import annotations

import numpy as np

from rsr.scenarios.plane import rotated, wrapped
from rsr.scenarios.push_t import pusher
from rsr.scenarios.pushing import kinematics
from rsr.scenarios.pushing.arm import CENTRE_M, TIP_HEIGHT_M
from rsr.scenarios.pushing.pose import quaternion_of, yaw_error, yaw_of
from rsr.scenarios.pushing.task import Starts, Task, Term, away_from

DISTANCE_WEIGHT = 3.0
ORIENTATION_WEIGHT = 6.0
CORNER_WEIGHT = 2000.0
GUIDANCE_WEIGHT = 500.0
BLOCK_HALF_HEIGHT_M = 0.025
SUCCESS_M = 0.03
SUCCESS_RAD = np.deg2rad(15.0)
TURN_RAD = np.deg2rad(45.0)
"""Targets are turned by at most this much from where the block starts."""
OUTLINE_M = 0.001 * np.array(
    [[-50, 35.6], [50, 35.6], [50, 5.6], [15, 5.6], [15, -64.4], [-15, -64.4], [-15, 5.6], [-50, 5.6]]
)
"""Corners of the T in the block's frame, clockwise."""
_EDGES = np.roll(OUTLINE_M, -1, axis=0) - OUTLINE_M
CONTACT_M = np.concatenate([OUTLINE_M + share * _EDGES for share in (0.2, 0.5, 0.8)])
"""Points of the outline that may be pushed, in the block's frame."""
NORMAL = np.tile(np.stack([-_EDGES[:, 1], _EDGES[:, 0]], axis=1) / np.linalg.norm(_EDGES, axis=1)[:, None], (3, 1))
"""Directions out of the block there."""
TIP_GAP_M = 0.018
"""From the outline to the finger's middle: its radius of 12 mm, and some room."""
TIP_CLEARANCE_M = 0.09
"""Fingertips start at least this far from the block's frame: its farthest corner is 66 mm off, the finger 12 mm."""


def observation(joints: np.ndarray, block: np.ndarray, target: np.ndarray) -> np.ndarray:
    """[B, 39] float32: what `TASK.terms` lists; quaternions with w >= 0, so that equal poses look equal."""
    tip = kinematics.fingertip(joints)
    yaw, error = yaw_of(block[..., 3:7]), yaw_error(block, target)
    place, inwards = push_from(block, target)
    parts = [
        *(joints, tip, target[..., :3], _upper(target[..., 3:7]), block[..., :3], _upper(block[..., 3:7])),
        *(target[..., :3] - block[..., :3], block[..., :3] - tip),
        rotated(tip[..., :2] - block[..., :2], -yaw),
        rotated(target[..., :2] - block[..., :2], -yaw),
        np.stack([np.sin(error), np.cos(error)], axis=-1),
        *(rotated(part, -yaw) for part in (place - tip[..., :2], inwards)),
    ]
    return np.concatenate(parts, axis=-1).astype(np.float32)


def reward(tip: np.ndarray, block: np.ndarray, target: np.ndarray) -> np.ndarray:
    """3.0 r_d + 6.0 r_o with r_d = -|block - target|, r_o = -arccos|<q_block, q_target>|, half their angle."""
    distance = np.linalg.norm(block[..., :3] - target[..., :3], axis=-1)
    alike = np.abs(np.sum(block[..., 3:7] * target[..., 3:7], axis=-1))
    return -DISTANCE_WEIGHT * distance - ORIENTATION_WEIGHT * np.arccos(np.minimum(alike, 1.0))


def potential(tip: np.ndarray, block: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Minus the weighted mean distance of the corners from their targets, and of the fingertip from `push_from`."""
    apart = np.linalg.norm(_placed(OUTLINE_M, block) - _placed(OUTLINE_M, target), axis=-1).mean(axis=-1)
    place, _ = push_from(block, target)
    guidance = np.linalg.norm(tip[..., :2] - place, axis=-1)
    return -CORNER_WEIGHT * apart - GUIDANCE_WEIGHT * guidance


def push_from(block: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where a push helps most: before that point of the outline which has farthest to go inwards.

    Returns:
        where the fingertip should be [..., 2], and the direction into the block there [..., 2].
    """
    contact, inwards = _placed(CONTACT_M, block), -rotated(NORMAL, yaw_of(block[..., 3:7])[..., None])
    to_go = np.sum((_placed(CONTACT_M, target) - contact) * inwards, axis=-1)
    best = np.argmax(to_go, axis=-1)[..., None, None]
    place = np.take_along_axis(contact - TIP_GAP_M * inwards, best, axis=-2)[..., 0, :]
    return place, np.take_along_axis(inwards, best, axis=-2)[..., 0, :]


def _placed(points: np.ndarray, block: np.ndarray) -> np.ndarray:
    """Points [n, 2] of the block's frame on the table [..., n, 2], for poses [..., 7]."""
    return block[..., None, :2] + rotated(points, yaw_of(block[..., 3:7])[..., None])


def succeeded(block: np.ndarray, target: np.ndarray) -> np.ndarray:
    """True where the block ends within 3 cm and 15 degrees of its target."""
    near = np.linalg.norm(block[..., :2] - target[..., :2], axis=-1) < SUCCESS_M
    return near & (np.abs(yaw_error(block, target)) < SUCCESS_RAD)


def sample_starts(rng: np.random.Generator, count: int) -> Starts:
    """Draw block poses, targets at least 4 cm and up to 45 degrees away, and fingertips clear of the block."""
    block = rng.uniform(-0.06, 0.06, (count, 2))
    target = away_from(rng, block, 0.08, 0.04)
    tip = away_from(rng, block, 0.13, TIP_CLEARANCE_M)
    yaw = rng.uniform(-np.pi, np.pi, count)
    goal = wrapped(yaw + rng.uniform(-TURN_RAD, TURN_RAD, count))
    joints = kinematics.joints_for(np.concatenate([tip + CENTRE_M, np.full((count, 1), TIP_HEIGHT_M)], axis=1))
    return Starts(np.concatenate([_pose(block, yaw), joints], axis=1), _pose(target, goal))


def _pose(place: np.ndarray, yaw: np.ndarray) -> np.ndarray:
    """Poses [B, 7] on the table at places [B, 2] relative to the middle of the workspace."""
    height = np.full((len(place), 1), BLOCK_HALF_HEIGHT_M)
    return np.concatenate([place + CENTRE_M, height, quaternion_of(yaw)], axis=1)


def _upper(quaternion: np.ndarray) -> np.ndarray:
    return np.where(quaternion[..., :1] < 0, -quaternion, quaternion)


def base_velocity(observation: np.ndarray) -> np.ndarray:
    """What the analytic pusher does [..., 2], along the block's axes; the network corrects it."""
    names = ("fingertip from block", "pushing point from fingertip", "pushing direction")
    first = [TASK.columns(name)[0] for name in names]
    return pusher.velocity(*(observation[..., start : start + 2] for start in first))


_BLOCK, _TARGET = ("block_position", "block_orientation"), ("target_position", "target_orientation")
TASK = Task(
    name="push_t",
    terms=(
        Term("joints", 6, "rad", "joint", ("joint_position",)),
        Term("fingertip", 3, "m", "world", ("tip_position",)),
        Term("target", 3, "m", "world", ("target_position",)),
        Term("target orientation", 4, "1", "world", ("target_orientation",)),
        Term("block", 3, "m", "world", ("block_position",)),
        Term("block orientation", 4, "1", "world", ("block_orientation",)),
        Term("target - block", 3, "m", "world", ("target_position", "block_position")),
        Term("block - fingertip", 3, "m", "world", ("block_position", "tip_position")),
        Term("fingertip from block", 2, "m", "block", ("tip_position", "block_position", "block_orientation")),
        Term("target from block", 2, "m", "block", ("target_position", "block_position", "block_orientation")),
        Term("sine and cosine of the missing yaw", 2, "1", "block", ("target_orientation", "block_orientation")),
        Term("pushing point from fingertip", 2, "m", "block", ("tip_position", *_BLOCK, *_TARGET)),
        Term("pushing direction", 2, "1", "block", (*_BLOCK, *_TARGET)),
    ),
    block_channels=_BLOCK,
    target_channels=_TARGET,
    observation=observation,
    reward=reward,
    potential=potential,
    base_velocity=base_velocity,
    succeeded=succeeded,
    sample_starts=sample_starts,
    success_m=SUCCESS_M,
    success_rad=float(SUCCESS_RAD),
)
