"""Routes of straight segments along which a block is struck, and the task of one segment: rules, observations, reward.

The task is to bring the block to the sub-goal at the segment's end, without leaving the zone, in few strikes. Positions
are of the segment's frame: x along it from its start, y across. The direction of a block is the one in which it goes
when struck in the middle of its struck face.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from rsr.common import ConfigError, check_choice, rotated, wrapped
from rsr.scenarios.built_in.strike import ANGLE_RAD, SPEED_M_S, Shape, Strikes, strikes_at

SEGMENT_M = 0.3
HALF_WIDTH_M = 0.04
REACHED_M = 0.04
"""Section IV-C of the paper: segments of 0.3 x 0.08 m, sub-goals reached within 0.04 m, by the centre of mass."""


@dataclass(frozen=True)
class Route:
    """Segments of equal length, one after the other.

    Args:
        headings_rad: direction of each segment, of which the first is zero.
        spread_rad: the block starts turned by up to this much from the first segment's direction.
    """

    name: str
    headings_rad: tuple[float, ...]
    spread_rad: float

    def __len__(self) -> int:
        return len(self.headings_rad)

    @property
    def turns_rad(self) -> tuple[float, ...]:
        """By how much the route turns at the end of each segment; the last sub-goal asks for its own direction."""
        return (*np.diff(self.headings_rad).tolist(), 0.0)

    @property
    def corners_m(self) -> np.ndarray:
        """Start and sub-goals, [segments + 1, 2]."""
        steps = SEGMENT_M * np.column_stack([np.cos(self.headings_rad), np.sin(self.headings_rad)])
        return np.vstack([np.zeros(2), np.cumsum(steps, axis=0)])

    def to_world(self, segment: int, pose: np.ndarray) -> np.ndarray:
        """Turn poses [N, 3] of a segment's frame (along, across, direction) into those of the route's start."""
        heading = np.full(len(pose), self.headings_rad[segment])
        return np.column_stack([rotated(pose[:, :2], heading) + self.corners_m[segment], pose[:, 2] + heading])


_BEND_RAD, _SPREAD_RAD = np.pi / 4, np.pi / 6

ROUTES = {
    route.name: route
    for route in (
        Route("straight", (0.0,), _SPREAD_RAD),
        Route("bend", (0.0, _BEND_RAD), _SPREAD_RAD),
        Route("double_bend", (0.0, _BEND_RAD, 0.0), 0.0),
    )
}
"""Like the paper's three: one, two and three segments, harder from one to the next; turned at random but for the last.

Its drawings give no angles; ours are 45 degrees.
"""


def next_segment(pose: np.ndarray, turn_rad: np.ndarray) -> np.ndarray:
    """Poses [N, 3] of a segment's frame in that of the next one, which turns by `turn_rad` [N]."""
    beyond = pose[:, :2] - np.array([SEGMENT_M, 0.0])
    return np.column_stack([rotated(beyond, -turn_rad), pose[:, 2] - turn_rad])


# The task of one segment.

OBSERVATIONS = (
    *("along", "across", "goal_ahead", "goal_aside"),
    *("cos_direction", "sin_direction", "cos_wanted", "sin_wanted", "strikes_left"),
)
"""The block's place on the segment; the sub-goal as the block sees it; its direction from the segment's, and from the
one that is wanted at the sub-goal."""
ACTIONS = ("speed", "place", "angle")
"""Each in -1..1 over its range in Table I."""

_TURN_RAD, _SPREAD_RAD = np.pi / 3, np.pi / 3
"""Trained on turns and starts of up to this much, more than routes ask for."""
_BACK_M = 0.04


@dataclass(frozen=True)
class Blocks:
    """N blocks on their segments.

    Args:
        pose: [N, 3], along and across the segment (m), direction from the segment's (rad).
        struck: [N], strikes so far on this segment.
        turn_rad: [N], where the route goes on from the sub-goal; the direction that is wanted there.
    """

    pose: np.ndarray
    struck: np.ndarray
    turn_rad: np.ndarray

    def __len__(self) -> int:
        return len(self.pose)

    def take(self, rows: np.ndarray) -> Blocks:
        return Blocks(self.pose[rows], self.struck[rows], self.turn_rad[rows])

    @property
    def distance_m(self) -> np.ndarray:
        """From the sub-goal, [N]."""
        return np.hypot(SEGMENT_M - self.pose[:, 0], self.pose[:, 1])


@dataclass(frozen=True)
class Outcome:
    """Results of N strikes.

    Args:
        reached, outside, spent: [N], where an episode ends: at the sub-goal, out of the zone, without strikes left.
        reward: [N].
    """

    blocks: Blocks
    reached: np.ndarray
    outside: np.ndarray
    spent: np.ndarray
    reward: np.ndarray

    @property
    def ended(self) -> np.ndarray:
        return self.reached | self.outside | self.spent


@dataclass(frozen=True)
class SegmentTask:
    """Rules of a segment; the defaults are the paper's, but for the reward.

    Args:
        most_strikes: T of Table V.
        reward: `progress`, under which the task is learnt, or `literal`; see `REWARDS`.
    """

    shape: Shape
    most_strikes: int = 5
    half_width_m: float = HALF_WIDTH_M
    reached_m: float = REACHED_M
    reward: str = "progress"

    def __post_init__(self) -> None:
        check_choice(
            self.reward,
            REWARDS,
            got=f"reward '{self.reward}'",
            where="sequence of strikes",
            next_step="Correct the name.",
        )
        if self.most_strikes < 1:
            raise ConfigError(
                got=f"at most {self.most_strikes} strikes on a segment",
                expected="at least 1; the paper allows 5",
                where="sequence of strikes",
                next_step="Allow more.",
            )

    def starts(self, count: int, rng: np.random.Generator) -> Blocks:
        """Draw blocks as the segment before may have left them: near its start, turned, with a turn ahead."""
        # The root of a uniform number spreads places evenly over the disc in which the last sub-goal was reached.
        radius, around = self.reached_m * np.sqrt(rng.uniform(size=count)), rng.uniform(-np.pi, np.pi, count)
        direction = rng.uniform(-_SPREAD_RAD, _SPREAD_RAD, count)
        across = np.clip(radius * np.sin(around), -self.half_width_m, self.half_width_m)
        pose = np.column_stack([radius * np.cos(around), across, direction])
        return Blocks(pose, np.zeros(count, int), rng.uniform(-_TURN_RAD, _TURN_RAD, count))

    def observe(self, blocks: Blocks) -> np.ndarray:
        """Observations [N, 9] of a policy, float32, each of about one."""
        x, y, direction = blocks.pose.T
        # In the block's own frame: a strike acts there, so the same sub-goal always asks for the same strike.
        ahead = rotated(np.column_stack([SEGMENT_M - x, -y]), -direction) / SEGMENT_M
        wanted = direction - blocks.turn_rad
        share = 1 - blocks.struck / self.most_strikes
        columns = [x / SEGMENT_M, y / self.half_width_m, ahead[:, 0], ahead[:, 1]]
        columns += [np.cos(direction), np.sin(direction), np.cos(wanted), np.sin(wanted), share]
        return np.column_stack(columns).astype(np.float32)

    def strikes(self, actions: np.ndarray) -> Strikes:
        """Strikes of actions [N, 3] in -1..1."""
        share = (np.clip(np.asarray(actions, float), -1, 1) + 1) / 2
        low, high = np.array([SPEED_M_S, (-1.0, 1.0), ANGLE_RAD]).T
        speed, place, angle = (low + share * (high - low)).T
        return strikes_at(self.shape, speed, place, angle)

    def outcome(self, blocks: Blocks, rests: np.ndarray) -> Outcome:
        """Judge where strikes took the blocks: `rests` [N, 3], displacement and turn in the block's frame before."""
        pose = blocks.pose.copy()
        # The block's frame is turned from its direction by as much as the middle of its struck face is.
        pose[:, :2] += rotated(rests[:, :2], pose[:, 2] - self.ahead_rad)
        pose[:, 2] = wrapped(pose[:, 2] + rests[:, 2])
        moved = replace(blocks, pose=pose, struck=blocks.struck + 1)
        # Reached comes first: a sub-goal's disc reaches beyond the zone's end.
        reached = moved.distance_m <= self.reached_m
        beyond = (pose[:, 0] < -_BACK_M) | (pose[:, 0] > SEGMENT_M + _BACK_M)
        outside = (beyond | (np.abs(pose[:, 1]) > self.half_width_m)) & ~reached
        spent = (moved.struck >= self.most_strikes) & ~reached & ~outside
        reward = REWARDS[self.reward](self, blocks, moved, reached, outside)
        return Outcome(moved, reached, outside, spent, reward)

    @property
    def ahead_rad(self) -> float:
        """Direction, in the block's frame, in which the middle of its struck face is struck."""
        normal = self.shape.struck_faces[0].at(np.zeros(1))[1][0]
        return float(np.arctan2(normal[1], normal[0]))


Reward = Callable[[SegmentTask, Blocks, Blocks, np.ndarray, np.ndarray], np.ndarray]


def _at_goal(task: SegmentTask, after: Blocks) -> np.ndarray:
    """R2 + R3 of Table V: how well the block points to the sub-goal after this one, and strikes that are left."""
    return (1 + np.cos(after.pose[:, 2] - after.turn_rad)) / 2 + task.most_strikes - after.struck


def _literal(task: SegmentTask, before: Blocks, after: Blocks, reached: np.ndarray, outside: np.ndarray) -> np.ndarray:
    return np.exp(-(after.distance_m**2)) + reached * _at_goal(task, after) - 10.0 * outside


def _progress(task: SegmentTask, before: Blocks, after: Blocks, reached: np.ndarray, outside: np.ndarray) -> np.ndarray:
    gained = (before.distance_m - after.distance_m) / REACHED_M
    return gained + reached * (10.0 + _at_goal(task, after)) - 10.0 * outside


REWARDS: dict[str, Reward] = {"progress": _progress, "literal": _literal}
"""`literal` is Table V as it stands. Its R1 = exp(-dx^2), with dx in m, is 0.91 a whole segment away: waiting earns as
much as arriving, and risks nothing. `progress` pays what a strike gains, in radii of the sub-goal, and 10 for reaching
it, as much as leaving the zone costs; R2, R3 and R4 stay."""
