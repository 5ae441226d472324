"""The outline of a prism: area, second moment, smooth faces between its corners, symmetries. All in the plane, in m."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rsr.common import rotated

_CORNER_RAD = np.radians(25)
"""An outline that turns by more than this at a vertex has a corner there; smaller turns approximate a curve."""
_LARGEST_FOLD = 12


@dataclass(frozen=True)
class Face:
    """A smooth stretch of an outline, from corner to corner, counter-clockwise.

    Args:
        points: [K, 2], vertices.
        outward_rad: [K], direction of the outward normal at the vertices, continuous along the face.
    """

    points: np.ndarray
    outward_rad: np.ndarray

    @property
    def length_m(self) -> float:
        return float(np.linalg.norm(np.diff(self.points, axis=0), axis=1).sum())

    def at(self, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Point [N, 2] and inward unit normal [N, 2] at places from -1 (one end) to 1 (the other)."""
        steps = np.linalg.norm(np.diff(self.points, axis=0), axis=1)
        along = np.concatenate([[0.0], np.cumsum(steps)])
        wanted = (np.asarray(place) + 1) / 2 * along[-1]
        point = np.stack([np.interp(wanted, along, self.points[:, axis]) for axis in (0, 1)], axis=1)
        angle = np.interp(wanted, along, self.outward_rad)
        return point, -np.stack([np.cos(angle), np.sin(angle)], axis=1)


def moments(outline: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Area, centroid [2], and mean of (x^2, y^2) about the centroid [2], of a counter-clockwise polygon [N, 2]."""
    area, centre = _area_and_centroid(outline)
    here = outline - centre
    there = np.roll(here, -1, axis=0)
    # Green's theorem: each edge spans a triangle with the centroid; their signed moments add up.
    cross = here[:, 0] * there[:, 1] - there[:, 0] * here[:, 1]
    squares = ((here**2 + here * there + there**2) * cross[:, None]).sum(axis=0) / 12
    return area, centre, squares / area


def _area_and_centroid(outline: np.ndarray) -> tuple[float, np.ndarray]:
    there = np.roll(outline, -1, axis=0)
    cross = outline[:, 0] * there[:, 1] - there[:, 0] * outline[:, 1]
    area = cross.sum() / 2
    return float(area), ((outline + there) * cross[:, None]).sum(axis=0) / (6 * area)


def faces_of(outline: np.ndarray) -> tuple[Face, ...]:
    """Cut a convex outline at its corners."""
    edges = np.roll(outline, -1, axis=0) - outline
    outward = np.unwrap(np.arctan2(-edges[:, 0], edges[:, 1]))
    turns = np.angle(np.exp(1j * (outward - np.roll(outward, 1))))
    corners = np.flatnonzero(turns > _CORNER_RAD)
    if len(corners) == 0:  # round all about: one face that begins anywhere
        corners = np.array([0])
    ends = np.append(corners[1:], corners[0] + len(outline))
    return tuple(_face(outline, outward, *ends) for ends in zip(corners.tolist(), ends.tolist(), strict=True))


def _face(outline: np.ndarray, outward: np.ndarray, first: int, last: int) -> Face:
    index = np.arange(first, last + 1) % len(outline)
    normals = np.unwrap(outward[index[:-1]])
    between = (normals[1:] + normals[:-1]) / 2
    # At its two ends a curve goes on turning as it did: half a turn beyond the last edge's normal.
    half = np.diff(normals) / 2
    start = normals[0] - (half[0] if len(half) else 0.0)
    end = normals[-1] + (half[-1] if len(half) else 0.0)
    return Face(outline[index], np.concatenate([[start], between, [end]]))


def fold_of(outline: np.ndarray, tolerance_m: float) -> int:
    """By how many rotations a centred outline looks the same: 4 for a square, 1 for a semi-circle."""
    for fold in range(_LARGEST_FOLD, 1, -1):
        if _same(rotated(outline, 2 * np.pi / fold), outline, tolerance_m):
            return fold
    return 1


def mirror_axes(outline: np.ndarray, tolerance_m: float) -> Iterator[float]:
    """Directions from the centre (rad) along which a mirror leaves a centred outline as it is."""
    middles = (outline + np.roll(outline, -1, axis=0)) / 2
    for x, y in np.concatenate([middles, outline]):
        axis = float(np.arctan2(y, x))
        flipped = rotated(rotated(outline, -axis) * np.array([1.0, -1.0]), axis)
        if _same(flipped, outline, tolerance_m):
            yield axis


def distances(points: np.ndarray, outline: np.ndarray) -> np.ndarray:
    """Distance [N] of points from the outline's line."""
    edges = np.roll(outline, -1, axis=0) - outline
    relative = points[:, None] - outline
    share = np.clip((relative * edges).sum(axis=2) / (edges**2).sum(axis=1), 0, 1)
    return np.linalg.norm(relative - share[..., None] * edges, axis=2).min(axis=1)


def _same(one: np.ndarray, other: np.ndarray, tolerance_m: float) -> bool:
    return bool(distances(one, other).max() < tolerance_m and distances(other, one).max() < tolerance_m)
