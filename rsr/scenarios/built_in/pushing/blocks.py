"""What both pushing tasks say of a block: where it starts, how far it is from its target, what InfoGap compares."""

from __future__ import annotations

import numpy as np

from rsr.common import lengths, yaw_of
from rsr.scenarios import Channels, Plane, ProgressFigure, Starts, StateColumns
from rsr.scenarios.built_in.pushing import kinematics
from rsr.scenarios.built_in.pushing.arm import CENTRE_M, STEP_RAD

SUCCESS_M = 0.03
ORBIT_M = 0.09
"""The way around a block is counted at this radius: the T's farthest corner is 66 mm off, the finger 12 mm."""
_STEP_S = 0.05
_JOINT_NOISE_RAD, _BLOCK_NOISE_M, _TURN_NOISE_RAD = 0.002, 0.001, 0.02


def derived(channels: Channels) -> dict[str, np.ndarray]:
    """The fingertip's position, from the joints."""
    return {"tip_position": kinematics.fingertip(channels["joint_position"])}


def offset(channels: Channels, axis: int) -> np.ndarray:
    """Distance [...] of the block from its target along an axis of the world."""
    return channels["block_position"][..., axis] - channels["target_position"][..., axis]


def distance(channels: Channels) -> np.ndarray:
    """Distance [...] of the block from its target on the table."""
    return lengths((channels["block_position"] - channels["target_position"])[..., :2])


PLACE_FIGURES = (
    ProgressFigure("x", lambda channels: offset(channels, 0), "m", "block_position"),
    ProgressFigure("y", lambda channels: offset(channels, 1), "m", "block_position"),
    ProgressFigure("distance", distance, "m", "block_position", tolerance=SUCCESS_M, axis=False),
)
PLANE = Plane(
    ("x", "y"),
    "m",
    lambda channels: channels["block_position"][..., :2],
    (float(CENTRE_M[0]), float(CENTRE_M[1])),
    0.15,
)


def motions(channels: Channels) -> list[np.ndarray]:
    """In the world's axes [..., 3]: the base from the block, both velocities, and where the arm is commanded to go.

    Under latency and soft servos these say what the last commands have yet to do.
    """
    joints, tip = channels["joint_position"], channels["tip_position"]
    after, last = joints + _STEP_S * channels["velocity:joint_position"], joints + STEP_RAD * channels["action"]
    moved, commanded, asked = kinematics.fingertip(np.array([after, channels["joint_setpoint"], last])) - tip
    return [-channels["block_position"], moved / _STEP_S, channels["velocity:block_position"], commanded, asked]


def way_around(tip: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Length [...] of the finger's way: straight ahead, or along a circle about the block where that is longer.

    Args:
        tip, place: from the block [..., 2].
    """
    cross = tip[..., 0] * place[..., 1] - tip[..., 1] * place[..., 0]
    bearing = np.arctan2(cross, np.sum(tip * place, axis=-1))
    return np.maximum(ORBIT_M * np.abs(bearing), lengths(tip - place))


def states(turns: bool) -> StateColumns:
    """Fingertip and block on the table, and the block's yaw where it counts; all that the dynamics depend on."""
    tip = _JOINT_NOISE_RAD * float(np.linalg.norm(CENTRE_M))
    names, noise = ("tip_x", "tip_y", "block_x", "block_y"), (tip, tip, _BLOCK_NOISE_M, _BLOCK_NOISE_M)
    if not turns:
        return StateColumns(names, _place, noise)
    more = ("block_yaw_cosine", "block_yaw_sine")
    return StateColumns((*names, *more), _pose, (*noise, _TURN_NOISE_RAD, _TURN_NOISE_RAD))


def _place(channels: Channels) -> np.ndarray:
    return np.concatenate([channels["tip_position"][..., :2], channels["block_position"][..., :2]], axis=-1)


def _pose(channels: Channels) -> np.ndarray:
    yaw = yaw_of(channels["block_orientation"])[..., None]
    return np.concatenate([_place(channels), np.cos(yaw), np.sin(yaw)], axis=-1)


def instruction(start: Starts) -> str:
    """What a person puts where before an episode."""
    tip = kinematics.fingertip(start.qpos[0, 7:])
    target = np.concatenate([start.goal[name][0] for name in start.goal])
    block = _placed(start.qpos[0, : 7 if len(target) > 3 else 3])
    return f"put the block at {block}; its target is {_placed(target)}. Bring the fingertip near {_placed(tip)}."


def _placed(pose: np.ndarray) -> str:
    turn = f", turned by {np.rad2deg(yaw_of(pose[3:7])):.0f} degrees" if len(pose) >= 7 else ""
    return f"x = {pose[0]:.3f} m, y = {pose[1]:.3f} m{turn}"


def away_from(rng: np.random.Generator, points: np.ndarray, half_width: float, distance: float) -> np.ndarray:
    """Uniform points in a square, redrawn until each is at least `distance` from its partner."""
    drawn = rng.uniform(-half_width, half_width, points.shape)
    while (close := np.linalg.norm(drawn - points, axis=1) < distance).any():
        drawn[close] = rng.uniform(-half_width, half_width, (int(close.sum()), 2))
    return drawn
