"""Strikes and what came of them, in the frame of the struck block at the moment of impact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.common import rotated
from rsr.scenarios.built_in.strike.shapes import Shape

SPEED_M_S = (0.2, 0.8)
ANGLE_RAD = (-np.pi / 12, np.pi / 12)
"""Table I of the paper; on a semi-cylinder, places of at most 5/6 are its range [pi/12, 11 pi/12]."""
ROUND_PLACE, FLAT_PLACE = 5 / 6, 0.8  # near a corner, noise of a millimetre decides which face is struck


@dataclass(frozen=True)
class Strikes:
    """N strikes, just before contact. The struck block is at rest, its frame has the origin in its centre of mass.

    Args:
        speed_m_s: [N], of the striking block.
        angle_rad: [N], from the inward normal to the direction of motion, counter-clockwise.
        point_m: [N, 2], impact point.
        normal: [N, 2], unit, into the struck block.
    """

    speed_m_s: np.ndarray
    angle_rad: np.ndarray
    point_m: np.ndarray
    normal: np.ndarray

    def __len__(self) -> int:
        return len(self.speed_m_s)

    def take(self, rows: np.ndarray | slice) -> Strikes:
        return Strikes(self.speed_m_s[rows], self.angle_rad[rows], self.point_m[rows], self.normal[rows])

    @property
    def direction(self) -> np.ndarray:
        """Unit vectors of motion, [N, 2]."""
        return rotated(self.normal, self.angle_rad)

    @property
    def yaw_rad(self) -> np.ndarray:
        """Turn of the block in a world where the striking block moves along x, [N]."""
        return -np.arctan2(self.direction[:, 1], self.direction[:, 0])


@dataclass(frozen=True)
class RecordedStrikes:
    """Strikes and their outcomes, simulated or measured.

    Args:
        after: [N, 3], velocity (x, y in m/s, about z in rad/s) at the first moment without contact; NaN where none was
            recorded, but places of rest alone.
        rest: [N, 3] or None, where the block came to rest: displacement (m, m) and turn (rad) since the impact.
    """

    strikes: Strikes
    after: np.ndarray
    rest: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.strikes)

    def take(self, rows: np.ndarray | slice) -> RecordedStrikes:
        return RecordedStrikes(
            self.strikes.take(rows), self.after[rows], None if self.rest is None else self.rest[rows]
        )


def sample_strikes(shape: Shape, count: int, rng: np.random.Generator) -> Strikes:
    """Draw strikes over the ranges of Table I, faces in proportion to their lengths."""
    speed, place, angle = rng.uniform(*SPEED_M_S, count), rng.uniform(-1, 1, count), rng.uniform(*ANGLE_RAD, count)
    return strikes_at(shape, speed, place, angle)


def strikes_at(shape: Shape, speed_m_s: np.ndarray, place: np.ndarray, angle_rad: np.ndarray) -> Strikes:
    """Make strikes at places from -1 to 1, which run along all struck faces in turn, corners left out."""
    # By length, so that places drawn evenly strike all millimetres of the outline alike.
    lengths = np.array([face.length_m for face in shape.struck_faces])
    ends = np.cumsum(lengths) / lengths.sum()
    share = np.clip((np.asarray(place) + 1) / 2, 0, 1)
    which = np.minimum(np.searchsorted(ends, share), len(ends) - 1)
    within = (share - (ends - lengths / lengths.sum())[which]) / (lengths / lengths.sum())[which]
    point, normal = np.empty((len(share), 2)), np.empty((len(share), 2))
    for index, face in enumerate(shape.struck_faces):
        rows = which == index
        reach = ROUND_PLACE if len(face.points) > 2 else FLAT_PLACE
        point[rows], normal[rows] = face.at((2 * within[rows] - 1) * reach)
    return Strikes(speed_m_s, angle_rad, point, normal)
