"""Nearest points of triangles, many pairs at once: what the faces of two meshes exchange messages over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from rsr.learned.gnn import Scenes, cross, nearest_of_segments

_CORNERS = torch.tensor([0, 1, 2])
_NEXT = torch.tensor([1, 2, 0])


def nearest_of_triangles(first_m: Tensor, second_m: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Find nearest points of triangles [C, 3, 3] that do not cut each other.

    Two triangles are nearest at a corner of one and a point of the other's inside, or at points of two edges.

    Returns:
        Barycentric coordinates of the points on both, [C, 3] each, and their distance [C] in m.
    """
    corners = torch.eye(3, dtype=first_m.dtype).expand(len(first_m), 3, 3)
    feet, apart = _corners_over(first_m, second_m)
    opposite, opposite_apart = _corners_over(second_m, first_m)
    one, other, between = _edges(first_m, second_m)
    shares = torch.cat([corners, opposite, one], dim=1)
    partners = torch.cat([feet, corners, other], dim=1)
    squared, best = torch.cat([apart, opposite_apart, between], dim=1).min(1)
    rows = torch.arange(len(best))
    return shares[rows, best], partners[rows, best], squared.sqrt()


def _corners_over(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Feet of the first one's corners on the second, barycentric [C, 3, 3], and squared distances; inf outside."""
    origin, one, two = second[:, :1], second[:, 1:2] - second[:, :1], second[:, 2:] - second[:, :1]
    away = first - origin
    # Foot = origin + s one + t two; the normal equations are [[a, b], [b, c]] (s, t) = (d, e).
    a, b, c = (one * one).sum(-1), (one * two).sum(-1), (two * two).sum(-1)
    d, e = (away * one).sum(-1), (away * two).sum(-1)
    whole = a * c - b * b
    s, t = (c * d - b * e) / whole, (a * e - b * d) / whole
    squared = (away - s[..., None] * one - t[..., None] * two).square().sum(-1)
    inside = (s >= 0) & (t >= 0) & (s + t <= 1)
    # A foot outside of the triangle is no candidate: an edge is nearer there.
    return torch.stack([1 - s - t, s, t], dim=-1), squared.masked_fill(~inside, torch.inf)


def _edges(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Nearest points of all nine pairs of edges: barycentric [C, 9, 3] on both, squared distances [C, 9]."""
    one, other = _CORNERS.repeat_interleave(3), _CORNERS.repeat(3)
    ends = torch.stack([first[:, one], first[:, _NEXT[one]]], dim=2)
    others = torch.stack([second[:, other], second[:, _NEXT[other]]], dim=2)
    share, partner = nearest_of_segments(ends, others)
    on_first, on_second = _barycentric(share, one), _barycentric(partner, other)
    return on_first, on_second, (on_first @ first - on_second @ second).square().sum(-1)


def _barycentric(share: Tensor, edge: Tensor) -> Tensor:
    rows = torch.arange(9)
    coordinates = share.new_zeros(len(share), 9, 3)
    coordinates[:, rows, edge] = 1 - share
    coordinates[:, rows, _NEXT[edge]] = share
    return coordinates


# Pairs of nearby faces: what FIGNet passes messages over. In torch for batches, or by Coal as in the paper.


@dataclass(frozen=True)
class FacePairs:
    """F pairs of faces of different bodies whose nearest points are within a margin. A fixed choice, not a gradient."""

    first: Tensor
    """[F], row of a body."""
    second: Tensor
    """[F], row of another."""
    face_first: Tensor
    """[F], which of the body's faces."""
    face_second: Tensor
    local_first_m: Tensor
    """[F, 3], the nearest point in the first body's frame."""
    local_second_m: Tensor
    """[F, 3]"""


FaceDetector = Callable[[Scenes, Tensor, Tensor, float], FacePairs]
"""From scenes, places [N, 3], turns [N, 3, 3] and a margin to pairs of faces."""


@torch.no_grad()
def face_pairs(scenes: Scenes, positions_m: Tensor, turns: Tensor, margin_m: float) -> FacePairs:
    """Find all pairs of faces that look at each other within a margin."""
    one, two = scenes.pairs.unbind(1)
    reach = scenes.radii_m[one] + scenes.radii_m[two] + margin_m
    close = (positions_m[one] - positions_m[two]).square().sum(1) < reach.square()
    one, two = one[close], two[close]
    triangles = triangles_of(scenes, positions_m, turns)
    row, first_face, second_face = _candidates(scenes, triangles, one, two, margin_m)
    first, second = one[row], two[row]
    shares, partners, apart = nearest_of_triangles(triangles[first, first_face], triangles[second, second_face])
    kept = apart < margin_m
    first, second, first_face, second_face = first[kept], second[kept], first_face[kept], second_face[kept]
    return FacePairs(
        *(first, second, first_face, second_face),
        _local(scenes, first, first_face, shares[kept]),
        _local(scenes, second, second_face, partners[kept]),
    )


def triangles_of(scenes: Scenes, positions_m: Tensor, turns: Tensor) -> Tensor:
    """Corners of all faces in the world's frame, [N, F, 3, 3]."""
    corners = positions_m[:, None] + scenes.vertices_m @ turns.mT
    return corners[torch.arange(len(corners))[:, None, None], scenes.faces]


def face_normals(triangles: Tensor) -> Tensor:
    """Outward unit normals [..., 3] of triangles [..., 3, 3]."""
    normals = cross(triangles[..., 1, :] - triangles[..., 0, :], triangles[..., 2, :] - triangles[..., 0, :])
    return normals / normals.norm(dim=-1, keepdim=True)


def _candidates(
    scenes: Scenes, triangles: Tensor, one: Tensor, two: Tensor, margin: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Pairs of bodies and their faces whose boxes come within the margin, and that do not look the same way."""
    # Axis-aligned boxes first: most pairs never need the exact test.
    low, high, normals = triangles.amin(2), triangles.amax(2) + margin, face_normals(triangles)
    close = (low[one][:, :, None] <= high[two][:, None]) & (low[two][:, None] <= high[one][:, :, None])
    # Faces that look the same way lie behind one another and do not touch.
    facing = normals[one] @ normals[two].mT < 0
    real = scenes.real_faces[one][:, :, None] & scenes.real_faces[two][:, None]
    row, first, second = (close.all(-1) & facing & real).nonzero(as_tuple=True)
    return row, first, second


def _local(scenes: Scenes, body: Tensor, face: Tensor, shares: Tensor) -> Tensor:
    corners = scenes.vertices_m[body[:, None], scenes.faces[body, face]]
    return (shares[..., None] * corners).sum(1)
