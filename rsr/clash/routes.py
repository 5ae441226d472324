"""Routes of straight segments along which a block is pushed by strikes, each with a zone that it must not leave."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.scenarios.plane import rotated

SEGMENT_M = 0.3
HALF_WIDTH_M = 0.04
REACHED_M = 0.04
"""Paper: segments of 0.3 x 0.08 m, a sub-goal counts as reached within 0.04 m; all of the block's centre of mass."""


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
