"""Nearest points of triangles, many pairs at once: what the faces of two meshes exchange messages over."""

from __future__ import annotations

import torch
from torch import Tensor

from rsr.gnn.nearest import nearest_of_segments

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
    a, b, c = (one * one).sum(-1), (one * two).sum(-1), (two * two).sum(-1)
    d, e = (away * one).sum(-1), (away * two).sum(-1)
    whole = a * c - b * b
    s, t = (c * d - b * e) / whole, (a * e - b * d) / whole
    squared = (away - s[..., None] * one - t[..., None] * two).square().sum(-1)
    inside = (s >= 0) & (t >= 0) & (s + t <= 1)
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
