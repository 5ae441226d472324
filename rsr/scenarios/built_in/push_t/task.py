"""The task of the paper's Appendix B for the T-shaped block: position and orientation count.

The paper's reward says nothing of the finger, and pays for pushes that only later turn out well. So training also pays
the increase of a potential: how near the block's corners are to where they shall be, which is smooth in position and
orientation alike, and how short the finger's way is to where a push would now help most, the way around the block
included. That second part fades out near the goal: else it would pay to keep the last push back, as it moves that
place to another side. The reward also pays for every step that the block is where it shall be: it is brought there
soon, and left there.
"""

from __future__ import annotations

import numpy as np

from rsr.common import about_z, joined, lengths, rotated, wrapped, yaw_error, yaw_of
from rsr.scenarios import Channels, ObservationTerm, ProgressFigure, Starts, Task
from rsr.scenarios.built_in.push_t.pushing_point import nearest, off_goal, push_from
from rsr.scenarios.built_in.pushing import (
    ACTION,
    CENTRE_M,
    PLACE_FIGURES,
    PLANE,
    PROBES,
    SUCCESS_M,
    TIP_HEIGHT_M,
    ArmLimits,
    away_from,
    derived,
    distance,
    instruction,
    kinematics,
    motions,
    states,
    tool_plane,
    way_around,
)

DISTANCE_WEIGHT = 3.0
ORIENTATION_WEIGHT = 6.0
CORNER_WEIGHT = 2000.0
"""Per metre; far above the paper's weights, which alone teach the finger to keep away from the block."""
GUIDANCE_WEIGHT = 500.0
ARRIVAL_WEIGHT = 6.0
ARRIVED_M = 0.02
"""Off the goal by so much (`off_goal`), guidance begins to fade and arriving begins to pay."""
BLOCK_HALF_HEIGHT_M = 0.025
SUCCESS_RAD = np.deg2rad(15.0)
TURN_RAD = np.deg2rad(45.0)
"""Targets are turned by at most this much from where the block starts."""
TIP_CLEARANCE_M = 0.09
"""Fingertips start at least this far from the block's frame: its farthest corner is 66 mm off, the finger 12 mm."""


def observation(channels: Channels) -> np.ndarray:
    """[B, 33]: what `TERMS` lists. Joints and orientation are for the head; all else is in the block's frame."""
    yaw, goal, turn, tip = _seen(channels)
    place, inwards = push_from(goal, turn)
    parts = [
        *(channels["joint_position"], _upper(channels["block_orientation"])),
        *(tip, goal, joined(np.sin(turn), np.cos(turn))),
        *(place - tip, inwards, nearest(tip), channels["velocity:block_orientation"][..., 2:]),
        *(rotated(each[..., :2], -yaw) for each in motions(channels)),
    ]
    return np.concatenate(parts, axis=-1)


def _seen(channels: Channels) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Yaw of the block [...]; in its frame, its goal [..., 2], the missing turn [...], the fingertip [..., 2]."""
    block, yaw = channels["block_position"][..., :2], yaw_of(channels["block_orientation"])
    goal = rotated(channels["target_position"][..., :2] - block, -yaw)
    return yaw, goal, missing_yaw(channels), rotated(channels["tip_position"][..., :2] - block, -yaw)


def reward(channels: Channels) -> np.ndarray:
    """The paper's 3.0 r_d + 6.0 r_o, and what a block pays that has arrived.

    r_d = -|block - target|, r_o = -arccos|<q_block, q_target>|, half their angle.
    """
    gap = lengths(channels["block_position"] - channels["target_position"])
    alike = np.abs(np.sum(channels["block_orientation"] * channels["target_orientation"], axis=-1))
    _, goal, turn, _ = _seen(channels)
    arrived = np.exp(-((off_goal(goal, turn) / ARRIVED_M) ** 2))
    return ARRIVAL_WEIGHT * arrived - DISTANCE_WEIGHT * gap - ORIENTATION_WEIGHT * np.arccos(np.minimum(alike, 1.0))


def potential(channels: Channels) -> np.ndarray:
    """Minus what the block is off its goal, and minus the finger's way to where a push now helps most."""
    _, goal, turn, tip = _seen(channels)
    off = off_goal(goal, turn)
    way = way_around(tip, push_from(goal, turn)[0]) * np.minimum(1.0, off / ARRIVED_M)
    return -CORNER_WEIGHT * off - GUIDANCE_WEIGHT * way


def heading_of(observation: np.ndarray) -> np.ndarray:
    """Yaw [...] of the block, along whose axes the network chooses."""
    return yaw_of(observation[..., 6:10])


def missing_yaw(channels: Channels) -> np.ndarray:
    """Turn about the vertical [...] that is missing, in -pi..pi."""
    return yaw_error(channels["block_orientation"], channels["target_orientation"])


def succeeded(channels: Channels) -> np.ndarray:
    """True where the block ends within 3 cm and 15 degrees of its target."""
    return (distance(channels) < SUCCESS_M) & (np.abs(missing_yaw(channels)) < SUCCESS_RAD)


def sample_starts(rng: np.random.Generator, count: int) -> Starts:
    """Draw block poses, targets at least 4 cm and up to 45 degrees away, and fingertips clear of the block."""
    block = rng.uniform(-0.06, 0.06, (count, 2))
    target = away_from(rng, block, 0.08, 0.04)
    tip = away_from(rng, block, 0.13, TIP_CLEARANCE_M)
    yaw = rng.uniform(-np.pi, np.pi, count)
    goal = wrapped(yaw + rng.uniform(-TURN_RAD, TURN_RAD, count))
    joints = kinematics.joints_for(np.concatenate([tip + CENTRE_M, np.full((count, 1), TIP_HEIGHT_M)], axis=1))
    position, orientation = np.split(_pose(target, goal), [3], axis=1)
    qpos = np.concatenate([_pose(block, yaw), joints], axis=1)
    return Starts(qpos, {"target_position": position, "target_orientation": orientation})


def _pose(place: np.ndarray, yaw: np.ndarray) -> np.ndarray:
    """Poses [B, 7] on the table at places [B, 2] relative to the middle of the workspace."""
    height = np.full((len(place), 1), BLOCK_HALF_HEIGHT_M)
    return np.concatenate([place + CENTRE_M, height, about_z(yaw)], axis=1)


def _upper(quaternion: np.ndarray) -> np.ndarray:
    return np.where(quaternion[..., :1] < 0, -quaternion, quaternion)


_TARGET = ("target_position", "target_orientation")
_BLOCK = ("block_position", "block_orientation")
_ARM = ("joint_position", "block_orientation")
TERMS = (
    ObservationTerm("joints", 6, "rad", "joint", ("joint_position",)),
    ObservationTerm("block orientation", 4, "1", "world", ("block_orientation",)),
    ObservationTerm("fingertip", 2, "m", "block", ("tip_position", *_BLOCK)),
    ObservationTerm("target", 2, "m", "block", ("target_position", *_BLOCK)),
    ObservationTerm("sine and cosine of the missing yaw", 2, "1", "block", ("target_orientation", "block_orientation")),
    ObservationTerm("pushing point from fingertip", 2, "m", "block", ("tip_position", *_BLOCK, *_TARGET)),
    ObservationTerm("pushing direction", 2, "1", "block", (*_BLOCK, *_TARGET)),
    ObservationTerm("outline from fingertip", 2, "m", "block", ("tip_position", *_BLOCK)),
    ObservationTerm("block turning", 1, "rad/s", "world", ("velocity:block_orientation",)),
    ObservationTerm("base of the arm", 2, "m", "block", _BLOCK),
    ObservationTerm("fingertip velocity", 2, "m/s", "block", ("velocity:joint_position", *_ARM)),
    ObservationTerm("block velocity", 2, "m/s", "block", ("velocity:block_position", "block_orientation")),
    ObservationTerm("setpoint from fingertip", 2, "m", "block", ("joint_setpoint", *_ARM)),
    ObservationTerm("last action from fingertip", 2, "m", "block", ("action", *_ARM)),
)

TASK = Task(
    terms=TERMS,
    goal=_TARGET,
    action=ACTION,
    reset=sample_starts,
    reward=reward,
    figures=(*PLACE_FIGURES, ProgressFigure("yaw", missing_yaw, "rad", "block_orientation", float(SUCCESS_RAD))),
    states=states(turns=True),
    success=succeeded,
    potential=potential,
    observation=observation,
    derived=derived,
    head=tool_plane.head(heading_of, alone=10),
    limits=ArmLimits(),
    plane=PLANE,
    instruction=instruction,
    probes=PROBES,
    training={
        "ppo": {"train_steps": 1_000_000, "further_steps": 500_000},
        "sac": {"train_steps": 800_000, "further_steps": 150_000},
    },
)
