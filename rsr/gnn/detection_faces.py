"""Pairs of nearby faces: what FIGNet passes messages over. In torch for batches, or by Coal as in the paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from rsr.gnn.graph import Scenes
from rsr.gnn.nearest_triangles import nearest_of_triangles
from rsr.gnn.rigid import cross


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
    low, high, normals = triangles.amin(2), triangles.amax(2) + margin, face_normals(triangles)
    close = (low[one][:, :, None] <= high[two][:, None]) & (low[two][:, None] <= high[one][:, :, None])
    facing = normals[one] @ normals[two].mT < 0
    real = scenes.real_faces[one][:, :, None] & scenes.real_faces[two][:, None]
    row, first, second = (close.all(-1) & facing & real).nonzero(as_tuple=True)
    return row, first, second


def _local(scenes: Scenes, body: Tensor, face: Tensor, shares: Tensor) -> Tensor:
    corners = scenes.vertices_m[body[:, None], scenes.faces[body, face]]
    return (shares[..., None] * corners).sum(1)
