"""What goes wrong in recordings: normals and points that err, also across the face; and glitches of motion capture."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rsr.common import rotated
from rsr.scenarios.built_in.strike import RecordedStrikes

GLITCHED_SHARE = 0.15
NORMAL_STD_RAD, POINT_STD_M = np.radians(1.0), 0.0007


def with_errors(recorded: RecordedStrikes, rng: np.random.Generator) -> RecordedStrikes:
    """Normals that are turned, and points that are moved in any direction; the motion stays as it was."""
    strikes = recorded.strikes
    turned = rng.normal(0, NORMAL_STD_RAD, len(strikes))
    moved = rng.normal(0, POINT_STD_M, (len(strikes), 2))
    seen = replace(
        strikes,
        normal=rotated(strikes.normal, turned),
        angle_rad=strikes.angle_rad - turned,
        point_m=strikes.point_m + moved,
    )
    return replace(recorded, strikes=seen)


def with_glitches(
    recorded: RecordedStrikes, rng: np.random.Generator, share: float = GLITCHED_SHARE
) -> RecordedStrikes:
    """Each strike is spoilt with a probability of `share`, in one of four ways that motion capture knows."""
    after = recorded.after.copy()
    for row in np.flatnonzero(rng.uniform(size=len(after)) < share):
        way = int(rng.integers(4))
        if way == 0:  # a marker jumps between two of the fitted frames
            heading = rng.uniform(0, 2 * np.pi)
            after[row, :2] += rng.uniform(0.5, 4) * np.array([np.cos(heading), np.sin(heading)])
        elif way == 1:  # two markers are taken for one another
            after[row, 2] += rng.choice([-1, 1]) * rng.uniform(20, 150)
        elif way == 2:  # the impact is looked for too late, when friction has slowed the block down
            after[row] *= rng.uniform(0.1, 0.6)
        else:  # an axis is mirrored
            after[row] *= [-1, 1, -1]
    return replace(recorded, after=after)
