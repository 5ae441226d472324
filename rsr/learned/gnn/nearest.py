"""Nearest points of two bodies, and their gradients with respect to the bodies' poses.

A detector says which features (vertex, edge or face) are nearest, and where. Within one frame that choice is fixed, as
the paper assumes; what remains is smooth, and its gradient is given here in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rsr.learned.gnn.rigid import cross

_PARALLEL = 1e-6


class _NearestPoints(torch.autograd.Function):
    """Points p_A = x_A + R_A l_A and p_B = x_B + R_B l_B that stay the nearest ones of their features.

    The paper's surrogate, eqs. (5) to (7), keeps both points fixed to their bodies: dp = J H dq, where J is the contact
    Jacobian. That is exact for a vertex. On an edge or a face the nearest point also slides along the feature: with E_A
    and E_B the features' tangents and d = p_A - p_B, nearest means E_A^T d = 0 and E_B^T d = 0, and the variation of
    these two conditions gives the slide. Without tangents, this is eq. (7) and nothing else.
    """

    @staticmethod
    def forward(
        ctx, places_a: Tensor, turns_a: Tensor, places_b: Tensor, turns_b: Tensor, *local: Tensor
    ) -> tuple[Tensor, Tensor]:
        points_a = places_a + (turns_a @ local[0][..., None])[..., 0]
        points_b = places_b + (turns_b @ local[1][..., None])[..., 0]
        ctx.save_for_backward(turns_a, turns_b, points_a - points_b, *local)
        return points_a, points_b

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_a: Tensor, grad_b: Tensor):  # pyright: ignore[reportIncompatibleMethodOverride]
        turns_a, turns_b, apart, local_a, local_b, tangents_a, tangents_b = ctx.saved_tensors
        along_a, along_b = turns_a @ tangents_a, turns_b @ tangents_b
        # Adjoint of the slide: K q = E^T g, so that a gradient g along a feature is not carried by the body.
        asked = torch.cat([_dotted(along_a, grad_a), _dotted(along_b, grad_b)], dim=-1)
        slide_a, slide_b = _solved(along_a, along_b, asked).split([along_a.shape[-1], along_b.shape[-1]], dim=-1)
        carried = _combined(along_a, slide_a) - _combined(along_b, slide_b)
        force_a, force_b = grad_a - carried, grad_b + carried
        turning_a = _outer(force_a, local_a) - _outer(apart, _combined(tangents_a, slide_a))
        turning_b = _outer(force_b, local_b) + _outer(apart, _combined(tangents_b, slide_b))
        return force_a, turning_a, force_b, turning_b, None, None, None, None


def nearest_points(
    places_m: tuple[Tensor, Tensor],
    turns: tuple[Tensor, Tensor],
    local_m: tuple[Tensor, Tensor],
    tangents: tuple[Tensor, Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """World points [C, 3] of C contacts on both bodies, with gradients to the bodies' places and turns.

    Args:
        places_m: centres of mass of both bodies, [C, 3] each.
        turns: rotation matrices, [C, 3, 3] each.
        local_m: the nearest points in the bodies' frames, [C, 3] each, as a detector found them.
        tangents: orthonormal directions in the bodies' frames along which each point may slide on its feature,
            [C, 3, k] each: none for a vertex (zeros, or k = 0), one for an edge, two for a face. None keeps both points
            fixed to their bodies, which is the paper's eq. (7).
    """
    if tangents is None:
        tangents = (local_m[0][..., None][..., :0], local_m[1][..., None][..., :0])
    return _NearestPoints.apply(  # pyright: ignore[reportReturnType]
        places_m[0], turns[0], places_m[1], turns[1], *local_m, *tangents
    )


@dataclass(frozen=True)
class OnSurface:
    """Nearest points of convex bodies' surfaces to C points outside of them, in the bodies' frames."""

    points_m: Tensor
    """[C, 3]"""
    tangents: Tensor
    """[C, 3, 2], of the feature they lie on."""


def nearest_on_convex(points_m: Tensor, normals: Tensor, offsets_m: Tensor, segments_m: Tensor) -> OnSurface:
    """Find the nearest points of convex bodies to points outside of them.

    A convex body is what lies under all its planes. So where the nearest point is inside a face, that face's plane is
    the one the point is highest above, and the foot on it lies under all the others. Elsewhere it is on an edge.

    Args:
        points_m: [C, 3] in the frames of the C bodies.
        normals, offsets_m: [C, P, 3] and [C, P], the bodies' planes.
        segments_m: [C, E, 2, 3], the bodies' edges.
    """
    # [C, P]: heights of the points above all planes.
    heights = torch.einsum("cpi,ci->cp", normals, points_m) - offsets_m
    height, side = heights.max(1)
    normal = normals[torch.arange(len(side)), side]
    foot = points_m - height[:, None] * normal
    under = heights - height[:, None] * torch.einsum("cpi,ci->cp", normals, normal)
    in_face = (under <= 1e-9 + 1e-6 * height[:, None].abs()).all(1)
    on_edge = _nearest_on_segments(points_m, segments_m)
    return OnSurface(
        torch.where(in_face[:, None], foot, on_edge.points_m),
        torch.where(in_face[:, None, None], across(normal), on_edge.tangents),
    )


def _nearest_on_segments(points: Tensor, segments: Tensor) -> OnSurface:
    start, along = segments[:, :, 0], segments[:, :, 1] - segments[:, :, 0]
    squared = (along * along).sum(-1)
    # Foot on a line, t = (p - a) . d / d . d, kept within the segment.
    share = (((points[:, None] - start) * along).sum(-1) / squared).clamp(0, 1)
    feet = start + share[..., None] * along
    best = (feet - points[:, None]).square().sum(-1).argmin(1)
    rows = torch.arange(len(best))
    inside = (share[rows, best] > 0) & (share[rows, best] < 1)
    tangent = along[rows, best] / squared[rows, best].sqrt()[:, None] * inside[:, None]
    return OnSurface(feet[rows, best], torch.stack([tangent, torch.zeros_like(tangent)], dim=-1))


def nearest_of_segments(first_m: Tensor, second_m: Tensor) -> tuple[Tensor, Tensor]:
    """Shares (0..1) of the nearest points along segments [..., 2, 3] each; either one for parallel segments."""
    along, other = first_m[..., 1, :] - first_m[..., 0, :], second_m[..., 1, :] - second_m[..., 0, :]
    between = first_m[..., 0, :] - second_m[..., 0, :]
    a, e, b = (along * along).sum(-1), (other * other).sum(-1), (along * other).sum(-1)
    c, f = (along * between).sum(-1), (other * between).sum(-1)
    # Determinant of the normal equations; near 0 the segments are parallel and any foot does.
    independent = a * e - b * b
    share = torch.where(independent > _PARALLEL * a * e, (b * f - c * e) / independent.clamp_min(1e-30), 0.0)
    share = share.clamp(0, 1)
    partner = (b * share + f) / e
    # Where the partner leaves its segment, the nearest point is the one of the segment's end.
    share = torch.where(partner < 0, (-c / a).clamp(0, 1), torch.where(partner > 1, ((b - c) / a).clamp(0, 1), share))
    return share, partner.clamp(0, 1)


def across(normals: Tensor) -> Tensor:
    """Two orthonormal directions [..., 3, 2] across unit normals [..., 3]."""
    helper = torch.where(
        normals[..., :1].abs() < 0.7, torch.tensor([1.0, 0, 0]).to(normals), torch.tensor([0, 1.0, 0]).to(normals)
    )
    first = cross(normals, helper)
    first = first / first.norm(dim=-1, keepdim=True)
    return torch.stack([first, cross(normals, first)], dim=-1)


def _solved(along_a: Tensor, along_b: Tensor, asked: Tensor) -> Tensor:
    """Solve K q = asked, K = [E_A, -E_B]^T [E_A, -E_B]; the smallest solution where features are parallel."""
    both = torch.cat([along_a, -along_b], dim=-1)
    if along_a.shape[-1] == 0 or along_b.shape[-1] == 0:
        return asked  # one orthonormal set alone: K is the identity on it, and `asked` lies in it
    return (torch.linalg.pinv(both.mT @ both, rtol=_PARALLEL, hermitian=True) @ asked[..., None])[..., 0]


def _dotted(columns: Tensor, vectors: Tensor) -> Tensor:
    return (columns * vectors[..., None]).sum(-2)


def _combined(columns: Tensor, shares: Tensor) -> Tensor:
    return (columns * shares[..., None, :]).sum(-1)


def _outer(first: Tensor, second: Tensor) -> Tensor:
    return first[..., :, None] * second[..., None, :]
