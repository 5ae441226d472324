"""The task of the paper's Appendix B for the cube: only its position counts.

What the network sees lies in a frame on the cube that points to its target, in which all pushes are one push. Training
pays what `push_t` pays, too: a cube nearer to its target, a shorter way around it for the finger, and arriving.
"""

from __future__ import annotations

import numpy as np

from rsr.common import about_z, lengths, rotated
from rsr.scenarios import Channels, ObservationTerm, Starts, Task
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

DISTANCE_WEIGHT = 6.0
GUIDANCE_WEIGHT = 3.0
NEARING_WEIGHT = 2000.0
"""Per metre; far above the paper's weights, as in `push_t`."""
WAY_WEIGHT = 500.0
ARRIVAL_WEIGHT = 6.0
ARRIVED_M = 0.02
"""This near to the target, guidance begins to fade and arriving begins to pay."""
CUBE_HALF_M = 0.025
BEHIND_M = np.array([-0.043, 0.0])
"""From where the finger pushes: half the cube, its own radius of 12 mm, and some room."""


def observation(channels: Channels) -> np.ndarray:
    """[B, 37]: what `TASK.terms` lists. The first 21 are the paper's; the network sees the others."""
    joints, tip = channels["joint_position"], channels["tip_position"]
    block, target = channels["block_position"], channels["target_position"]
    heading, near = _seen(channels)
    seen = [joints, tip, target, block, target - block, block - tip]
    seen += [near, distance(channels)[..., None], BEHIND_M - near, lengths(near)[..., None]]
    seen += [rotated(each[..., :2], -heading) for each in motions(channels)]
    return np.concatenate(seen, axis=-1)


def _seen(channels: Channels) -> tuple[np.ndarray, np.ndarray]:
    """Direction [...] from the cube to its target, and the fingertip [..., 2] in the frame that points there."""
    way = channels["target_position"] - channels["block_position"]
    heading = np.arctan2(way[..., 1], way[..., 0])
    return heading, rotated((channels["tip_position"] - channels["block_position"])[..., :2], -heading)


def reward(channels: Channels) -> np.ndarray:
    """The paper's 6.0 r_d + 3.0 r_ee, and what a cube pays that has arrived.

    r_d = -|block - target|, r_ee = -|fingertip - block|.
    """
    block = channels["block_position"]
    gap = lengths(block - channels["target_position"])
    guidance = lengths(channels["tip_position"] - block)
    arrived = np.exp(-((distance(channels) / ARRIVED_M) ** 2))
    return ARRIVAL_WEIGHT * arrived - DISTANCE_WEIGHT * gap - GUIDANCE_WEIGHT * guidance


def potential(channels: Channels) -> np.ndarray:
    """Minus the cube's distance to its target, and minus the finger's way to the cube's far side."""
    gap, (_, near) = distance(channels), _seen(channels)
    way = way_around(near, np.broadcast_to(BEHIND_M, near.shape)) * np.minimum(1.0, gap / ARRIVED_M)
    return -NEARING_WEIGHT * gap - WAY_WEIGHT * way


def heading_of(observation: np.ndarray) -> np.ndarray:
    """Direction [...] to the target, along which the network chooses."""
    return np.arctan2(observation[..., 16], observation[..., 15])


def succeeded(channels: Channels) -> np.ndarray:
    """True where the block ends within 3 cm of its target."""
    return distance(channels) < SUCCESS_M


def sample_starts(rng: np.random.Generator, count: int) -> Starts:
    """Draw cube poses, targets at least 6 cm away, and fingertips clear of the cube."""
    block = rng.uniform(-0.08, 0.08, (count, 2))
    target = away_from(rng, block, 0.10, 0.06)
    tip = away_from(rng, block, 0.12, 0.07)
    yaw = rng.uniform(-np.pi, np.pi, count)
    height = np.full((count, 1), CUBE_HALF_M)
    tip_position = np.concatenate([tip + CENTRE_M, np.full((count, 1), TIP_HEIGHT_M)], axis=1)
    joints = kinematics.joints_for(tip_position)
    qpos = np.concatenate([block + CENTRE_M, height, about_z(yaw), joints], axis=1)
    return Starts(qpos, {"target_position": np.concatenate([target + CENTRE_M, height], axis=1)})


_WAY = ("block_position", "target_position")
_ARM = ("joint_position", *_WAY)
TASK = Task(
    terms=(
        ObservationTerm("joints", 6, "rad", "joint", ("joint_position",)),
        ObservationTerm("fingertip", 3, "m", "world", ("tip_position",)),
        ObservationTerm("target", 3, "m", "world", ("target_position",)),
        ObservationTerm("block", 3, "m", "world", ("block_position",)),
        ObservationTerm("target - block", 3, "m", "world", ("target_position", "block_position")),
        ObservationTerm("block - fingertip", 3, "m", "world", ("block_position", "tip_position")),
        ObservationTerm("fingertip on the way", 2, "m", "way", ("tip_position", *_WAY)),
        ObservationTerm("distance", 1, "m", "way", _WAY),
        ObservationTerm("pushing point from fingertip", 2, "m", "way", ("tip_position", *_WAY)),
        ObservationTerm("fingertip's distance", 1, "m", "way", ("tip_position", "block_position")),
        ObservationTerm("base of the arm", 2, "m", "way", _WAY),
        ObservationTerm("fingertip velocity", 2, "m/s", "way", ("velocity:joint_position", *_ARM)),
        ObservationTerm("block velocity", 2, "m/s", "way", ("velocity:block_position", *_WAY)),
        ObservationTerm("setpoint from fingertip", 2, "m", "way", ("joint_setpoint", *_ARM)),
        ObservationTerm("last action from fingertip", 2, "m", "way", ("action", *_ARM)),
    ),
    goal=("target_position",),
    action=ACTION,
    reset=sample_starts,
    reward=reward,
    figures=PLACE_FIGURES,
    states=states(turns=False),
    success=succeeded,
    potential=potential,
    observation=observation,
    derived=derived,
    head=tool_plane.head(heading_of, alone=21),
    limits=ArmLimits(),
    plane=PLANE,
    instruction=instruction,
    probes=PROBES,
    training={
        "ppo": {"train_steps": 500_000, "further_steps": 300_000},
        "sac": {"train_steps": 400_000, "further_steps": 150_000},
    },
)
