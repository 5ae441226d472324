"""Which bodies touch, or nearly: contacts of all scenes of a batch at once, in torch.

More contacts are found than carry load, as the paper asks for: every vertex within a margin of another body or of the
floor, and every crossing of two edges. So the set stays right while the bodies move a little, and is taken as fixed
within a frame when gradients flow.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rsr.learned.gnn.graph import Scenes
from rsr.learned.gnn.nearest import nearest_of_segments, nearest_on_convex, nearest_points
from rsr.learned.gnn.rigid import cross, turned

# Vertices nearer than this to a body take their normal from the plane that separates the two bodies: the direction to
# the nearest point means little at no distance (two cubes of one height have their top corners in one plane).
_SKIN_M = 0.002
# Edges cross where the nearest points are this share of an edge away from its ends; nearer, a vertex touches.
_CROSSING = 0.001
_SUPPORT_M = 1e-4


@dataclass(frozen=True)
class Contacts:
    """C places where two bodies of a scene touch or nearly touch."""

    first: Tensor
    """[C], row of a body."""
    second: Tensor
    """[C], row of the other one; N for the floor."""
    arms_first_m: Tensor
    """[C, 3], from the centre of mass to the nearest point, in the world's frame."""
    arms_second_m: Tensor
    """[C, 3]"""
    normals: Tensor
    """[C, 3], unit, from the second body to the first."""
    gaps_m: Tensor
    """[C], along the normal; negative where the bodies overlap."""


def detect(scenes: Scenes, positions_m: Tensor, turns: Tensor, margin_m: float) -> Contacts:
    """Find the contacts of all bodies [N, 3], [N, 3, 3] within a margin; differentiable in both."""
    parts = [_on_floor(scenes, positions_m, turns, margin_m)]
    if len(scenes.pairs):
        with torch.no_grad():
            near = _near_pairs(scenes, positions_m, turns, margin_m)
        parts += [*_of_vertices(scenes, positions_m, turns, margin_m, near)]
        parts += [_of_edges(scenes, positions_m, turns, margin_m, near)]
    return Contacts(*(torch.cat([getattr(part, name) for part in parts]) for name in Contacts.__annotations__))


def _on_floor(scenes: Scenes, positions: Tensor, turns: Tensor, margin: float) -> Contacts:
    with torch.no_grad():
        heights = positions[:, 2:] + (scenes.vertices_m @ turns[:, 2, :, None])[..., 0]
        body, vertex = (scenes.real & scenes.floor[:, None] & (heights < margin)).nonzero(as_tuple=True)
    arms = turned(turns[body], scenes.vertices_m[body, vertex])
    up = torch.zeros_like(arms)
    up[:, 2] = 1
    floor = torch.full_like(body, len(positions))
    return Contacts(body, floor, arms, torch.zeros_like(arms), up, positions[body, 2] + arms[:, 2])


@dataclass(frozen=True)
class _Near:
    """Q ordered pairs whose bodies are within the margin: the first one's vertices against the second one's sides."""

    pairs: Tensor
    """[Q / 2, 2]"""
    first: Tensor
    second: Tensor
    local_m: Tensor
    """[Q, V, 3], the first one's vertices in the second one's frame."""
    depth_m: Tensor
    """[Q, V], their heights above the second body: the greatest above any of its planes."""
    own: Tensor
    """[Q], whether the separating plane is a side of the second body (or else of the first)."""
    side: Tensor
    """[Q], which side it is."""
    reference: Tensor
    """[Q], the vertex of the body without the separating plane that is nearest to it."""
    apart_m: Tensor
    """[Q], how far the plane separates the bodies; negative where they overlap."""


def _near_pairs(scenes: Scenes, positions: Tensor, turns: Tensor, margin: float) -> _Near:
    one, two = scenes.pairs.unbind(1)
    # Bounding spheres first: most pairs of a large scene are far apart.
    reach = scenes.radii_m[one] + scenes.radii_m[two] + margin
    close = (positions[one] - positions[two]).square().sum(1) < reach.square()
    one, two = one[close], two[close]
    first, second = torch.cat([one, two]), torch.cat([two, one])
    relative = turns[second].mT @ turns[first]
    offset = turned(turns[second].mT, positions[first] - positions[second])
    local = scenes.vertices_m[first] @ relative.mT + offset[:, None]
    heights = local @ scenes.normals[second].mT - scenes.offsets_m[second][:, None]
    # Separating planes: per side of the second body, how high the first one's lowest vertex is above it.
    lowest, vertex = heights.masked_fill(~scenes.real[first][..., None], torch.inf).min(1)
    apart, side = lowest.max(1)
    forward, backward = apart.chunk(2)
    best = torch.maximum(forward, backward)
    kept = best < margin
    # The body whose side separates best owns the plane; in overlap that is the one of least depth.
    owns = forward >= backward
    nearest = vertex[torch.arange(len(side)), side]
    # The plane found from the other order of the pair is a side of this order's first body.
    own = torch.cat([owns, ~owns])
    chosen, reference = (torch.where(own, values, values.roll(len(one))) for values in (side, nearest))
    rows = kept.repeat(2)
    return _Near(
        torch.stack([one, two], dim=1)[kept],
        *(values[rows] for values in (first, second, local, heights.amax(2), own, chosen, reference, best.repeat(2))),
    )


def _of_vertices(
    scenes: Scenes, positions: Tensor, turns: Tensor, margin: float, near: _Near
) -> tuple[Contacts, Contacts]:
    real = scenes.real[near.first] & (near.depth_m < margin)
    row, vertex = (real & (near.depth_m <= _SKIN_M)).nonzero(as_tuple=True)
    touching = _at_plane(scenes, positions, turns, near, row, vertex)
    row, vertex = (real & (near.depth_m > _SKIN_M)).nonzero(as_tuple=True)
    return touching, _at_distance(scenes, positions, turns, margin, near, row, vertex)


def _at_plane(scenes: Scenes, positions: Tensor, turns: Tensor, near: _Near, row: Tensor, vertex: Tensor) -> Contacts:
    """Vertices that touch: normals and gaps from the plane that separates the two bodies."""
    first, second, own, side = near.first[row], near.second[row], near.own[row], near.side[row]
    arms = turned(turns[first], scenes.vertices_m[first, vertex])
    owner = torch.where(own, second, first)
    # Sides point outward, and a contact's normal points at the first body.
    normals = turned(turns[owner], scenes.normals[owner, side]) * torch.where(own, 1.0, -1.0).to(arms)[:, None]
    points = positions[first] + arms
    # The second body's own plane passes through its side; else through its vertex nearest to the first one's plane.
    offset = scenes.offsets_m[second, torch.where(own, side, 0)]
    corner = turned(turns[second], scenes.vertices_m[second, torch.where(own, 0, near.reference[row])])
    height = ((points - positions[second]) * normals).sum(1)
    gaps = height - torch.where(own, offset, (corner * normals).sum(1))
    arms_second = points - gaps[:, None] * normals - positions[second]
    return Contacts(first, second, arms, arms_second, normals, gaps)


def _at_distance(
    scenes: Scenes, positions: Tensor, turns: Tensor, margin: float, near: _Near, row: Tensor, vertex: Tensor
) -> Contacts:
    """Vertices that are near: the second body's nearest point, which slides on its feature when the bodies move."""
    first, second = near.first[row], near.second[row]
    # [C, E, 2, 3]
    segments = scenes.vertices_m[second[:, None, None], scenes.edges[second]]
    with torch.no_grad():
        local = near.local_m[row, vertex]
        found = nearest_on_convex(local, scenes.normals[second], scenes.offsets_m[second], segments)
        kept = (found.points_m - local).norm(dim=1) < margin
    first, second, corner = first[kept], second[kept], scenes.vertices_m[first, vertex][kept]
    tangents = (corner[..., None][..., :0], found.tangents[kept])
    on_first, on_second = nearest_points(
        (positions[first], positions[second]),
        (turns[first], turns[second]),
        (corner, found.points_m[kept]),
        tangents,
    )
    between = on_first - on_second
    gaps = between.norm(dim=1)
    arms = (on_first - positions[first], on_second - positions[second])
    return Contacts(first, second, *arms, between / gaps[:, None], gaps)


def _of_edges(scenes: Scenes, positions: Tensor, turns: Tensor, margin: float, near: _Near) -> Contacts:
    """Edges that cross: nearest points inside both, along a direction that separates the two bodies."""
    one, two = near.pairs.unbind(1)
    with torch.no_grad():
        row, edge_one, edge_two, shares = _crossings(scenes, positions, turns, margin, near)
    first, second = one[row], two[row]
    ends = [
        scenes.vertices_m[body[:, None], scenes.edges[body, edge]]
        for body, edge in ((first, edge_one), (second, edge_two))
    ]
    along = [end[:, 1] - end[:, 0] for end in ends]
    local = [end[:, 0] + share[:, None] * edge for end, share, edge in zip(ends, shares, along, strict=True)]
    tangents = [(edge / edge.norm(dim=1, keepdim=True))[..., None] for edge in along]
    on_first, on_second = nearest_points(
        (positions[first], positions[second]),
        (turns[first], turns[second]),
        (local[0], local[1]),
        (tangents[0], tangents[1]),
    )
    # Two edges are nearest along their common perpendicular.
    normals = cross(turned(turns[first], along[0]), turned(turns[second], along[1]))
    normals = normals / normals.norm(dim=1, keepdim=True)
    normals = normals * ((positions[first] - positions[second]) * normals).sum(1, keepdim=True).sign().detach()
    gaps = ((on_first - on_second) * normals).sum(1)
    return Contacts(first, second, on_first - positions[first], on_second - positions[second], normals, gaps)


def _crossings(
    scenes: Scenes, positions: Tensor, turns: Tensor, margin: float, near: _Near
) -> tuple[Tensor, Tensor, Tensor, tuple[Tensor, Tensor]]:
    """Rows of the pairs, edges of both bodies, and where along the edges they cross."""
    pairs = near.pairs
    corners = [scenes.vertices_m[body] @ turns[body].mT + positions[body][:, None] for body in pairs.unbind(1)]
    ends = [
        points[torch.arange(len(points))[:, None, None], scenes.edges[body]]
        for points, body in zip(corners, pairs.unbind(1), strict=True)
    ]
    # All pairs of edges at once, [Q / 2, E, E]; few enough for bodies of a dozen edges.
    share, partner = nearest_of_segments(ends[0][:, :, None], ends[1][:, None])
    inside = ((share - 0.5).abs() < 0.5 - _CROSSING) & ((partner - 0.5).abs() < 0.5 - _CROSSING)
    inside &= scenes.real_edges[pairs[:, 0]][:, :, None] & scenes.real_edges[pairs[:, 1]][:, None]
    row, edge_one, edge_two = inside.nonzero(as_tuple=True)
    shares = share[row, edge_one, edge_two], partner[row, edge_one, edge_two]
    found = [end[row, edge] for end, edge in zip(ends, (edge_one, edge_two), strict=True)]
    points = [end[:, 0] + at[:, None] * (end[:, 1] - end[:, 0]) for end, at in zip(found, shares, strict=True)]
    normals = cross(found[0][:, 1] - found[0][:, 0], found[1][:, 1] - found[1][:, 0])
    length = normals.norm(dim=1)
    normals = normals / length.clamp_min(1e-12)[:, None]
    towards = ((positions[pairs[row, 0]] - positions[pairs[row, 1]]) * normals).sum(1, keepdim=True).sign()
    normals = normals * towards
    # Nothing of the first body may lie under its point, and nothing of the second above its own.
    lowest = (corners[0][row] @ normals[..., None])[..., 0].amin(1) - (points[0] * normals).sum(1)
    highest = (corners[1][row] @ normals[..., None])[..., 0].amax(1) - (points[1] * normals).sum(1)
    gaps = ((points[0] - points[1]) * normals).sum(1)
    kept = (lowest > -_SUPPORT_M) & (highest < _SUPPORT_M) & (gaps < margin) & (length > 1e-8)
    # A direction along which they overlap more than along a side's normal is not the one that holds them apart.
    kept &= gaps > near.apart_m[row] - _SUPPORT_M
    return row[kept], edge_one[kept], edge_two[kept], (shares[0][kept], shares[1][kept])
