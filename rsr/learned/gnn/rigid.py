"""Rotations in torch, differentiable everywhere, also at rest: quaternions wxyz and rotation vectors."""

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
