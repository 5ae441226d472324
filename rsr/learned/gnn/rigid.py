"""Rotations in torch, differentiable everywhere, also at rest: quaternions wxyz, rotation vectors, shape matching."""

from __future__ import annotations

import torch
from torch import Tensor

# Under the roots, squared rad: far below any motion, far above what float32 rounds to zero.
_TINY = 1e-24


def cross(first: Tensor, second: Tensor) -> Tensor:
    """Cross product [..., 3]; faster on small batches than torch.linalg.cross."""
    a, b, c = first.unbind(-1)
    x, y, z = second.unbind(-1)
    return torch.stack([b * z - c * y, c * x - a * z, a * y - b * x], dim=-1)


def turned(matrices: Tensor, vectors: Tensor) -> Tensor:
    """Matrices [..., 3, 3] times vectors [..., 3]."""
    return (matrices @ vectors[..., None])[..., 0]


def normalised(quaternions: Tensor) -> Tensor:
    return quaternions / quaternions.norm(dim=-1, keepdim=True)


def matrix(quaternions: Tensor) -> Tensor:
    """Rotation matrices [..., 3, 3] of unit quaternions [..., 4]."""
    w, x, y, z = quaternions.unbind(-1)
    rows = [
        *(1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        *(2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        *(2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    ]
    return torch.stack(rows, dim=-1).reshape(*quaternions.shape[:-1], 3, 3)


def quaternion(matrices: Tensor) -> Tensor:
    """Unit quaternions [..., 4] of rotations [..., 3, 3] by less than half a turn, as one frame's are."""
    trace = matrices.diagonal(dim1=-2, dim2=-1).sum(-1)
    # w = sqrt(1 + tr R) / 2; no other branch is needed, because a frame turns a body by far less than half a turn.
    real = (1 + trace).clamp_min(1e-4).sqrt() / 2
    apart = (matrices - matrices.mT)[..., [2, 0, 1], [1, 2, 0]] / (4 * real[..., None])
    return normalised(torch.cat([real[..., None], apart], dim=-1))


def product(first: Tensor, second: Tensor) -> Tensor:
    """Hamilton product of quaternions [..., 4]."""
    w, v = first[..., :1], first[..., 1:]
    s, u = second[..., :1], second[..., 1:]
    scalar = w * s - (v * u).sum(-1, keepdim=True)
    return torch.cat([scalar, w * u + s * v + cross(v, u)], dim=-1)


def conjugate(quaternions: Tensor) -> Tensor:
    return torch.cat([quaternions[..., :1], -quaternions[..., 1:]], dim=-1)


def exponential(vectors: Tensor) -> Tensor:
    """Quaternions [..., 4] of rotation vectors [..., 3], rad in the world's frame."""
    # The root's gradient is infinite at rest without the tiny number under it.
    half = ((vectors * vectors).sum(-1, keepdim=True) + _TINY).sqrt() / 2
    return torch.cat([half.cos(), vectors * (torch.sin(half) / (2 * half))], dim=-1)


def about_z(angles: Tensor) -> Tensor:
    """Quaternions [..., 4] of turns [...], rad, about the vertical."""
    zero = torch.zeros_like(angles)
    return torch.stack([torch.cos(angles / 2), zero, zero, torch.sin(angles / 2)], dim=-1)


def logarithm(quaternions: Tensor) -> Tensor:
    """Rotation vectors [..., 3], rad, of unit quaternions [..., 4]; the shorter way round."""
    quaternions = torch.where(quaternions[..., :1] < 0, -quaternions, quaternions)
    vector = quaternions[..., 1:]
    sine = ((vector * vector).sum(-1, keepdim=True) + _TINY).sqrt()
    return vector * (2 * torch.atan2(sine, quaternions[..., :1]) / sine)


class _Polar(torch.autograd.Function):
    """The rotation nearest to a matrix, by SVD, with a gradient that stays finite where singular values meet.

    With A = U diag(s) V^T and R = U V^T, the variation is dR = U X V^T, X_ij = (M_ij - M_ji) / (s_i + s_j) with
    M = U^T dA V. The general gradient of the SVD divides by s_i - s_j instead, and is infinite for a cube.
    """

    @staticmethod
    def forward(ctx, matrices: Tensor) -> Tensor:
        left, values, right = torch.linalg.svd(matrices)
        sign = torch.ones_like(values)
        sign[..., 2] = torch.linalg.det(left @ right).sign()
        left, values = left * sign[..., None, :], values * sign
        ctx.save_for_backward(left, values, right)
        return left @ right

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        left, values, right = ctx.saved_tensors
        inner = left.mT @ gradient @ right.mT
        sums = values[..., :, None] + values[..., None, :]
        scale = 1e-6 * values[..., :1, None].clamp_min(1e-12)
        return left @ ((inner - inner.mT) / torch.where(sums.abs() < scale, scale, sums)) @ right


def nearest_rotation(matrices: Tensor) -> Tensor:
    """Project matrices [..., 3, 3] on rotations, as shape matching needs it."""
    return _Polar.apply(matrices)  # pyright: ignore[reportReturnType]


def matched(reference: Tensor, points: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Rotations [N, 3, 3] and places [N, 3] that carry a reference onto points best (Muller et al. 2005).

    Args:
        reference: [N, V, 3] about any origin.
        points: [N, V, 3].
        weights: [N, V], zero for rows that are padding.
    """
    share = (weights / weights.sum(-1, keepdim=True))[..., None]
    middle, centre = (share * reference).sum(1), (share * points).sum(1)
    # Its polar factor is the rotation of least squares (Kabsch).
    covariance = ((points - centre[:, None]) * share).mT @ (reference - middle[:, None])
    rotation = nearest_rotation(covariance)
    return rotation, centre - turned(rotation, middle)
