"""Shape matching in torch, for `fignet`: the rigid motion that carries a body's vertices to predicted places."""

from __future__ import annotations

import torch
from torch import Tensor

from rsr.learned.gnn import normalised, turned


def quaternion(matrices: Tensor) -> Tensor:
    """Unit quaternions [..., 4] of rotations [..., 3, 3] by less than half a turn, as one frame's are."""
    trace = matrices.diagonal(dim1=-2, dim2=-1).sum(-1)
    # w = sqrt(1 + tr R) / 2; no other branch is needed, because a frame turns a body by far less than half a turn.
    real = (1 + trace).clamp_min(1e-4).sqrt() / 2
    apart = (matrices - matrices.mT)[..., [2, 0, 1], [1, 2, 0]] / (4 * real[..., None])
    return normalised(torch.cat([real[..., None], apart], dim=-1))


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
