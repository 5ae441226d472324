"""Pushes as initial velocities: what of a rollout's start one may choose, differentiable in it."""

from __future__ import annotations

import torch

VELOCITY = ("vx_m_s", "vy_m_s", "spin_rad_s")


def pushed(poses: torch.Tensor, body: int, velocity: torch.Tensor, dt_s: float) -> torch.Tensor:
    """Make the first two frames of worlds at rest in which one body is given a velocity on the table.

    Args:
        poses: [B, n, 7], where everything lies when the push ends, which is frame 1.
        body: which one is pushed.
        velocity: [B, 2] or [B, 3], of its centre along x and y in m/s and, if given, its spin about z in rad/s.

    Returns:
        [B, 2, n, 7]. The pushed body was a little behind in frame 0; frames tell velocities (Verlet).
    """
    before = poses.clone()
    before[:, body, :2] = poses[:, body, :2] - dt_s * velocity[:, :2]
    if velocity.shape[1] > 2:
        before[:, body, 3:] = _turned(poses[:, body, 3:], -dt_s * velocity[:, 2])
    return torch.stack([before, poses], dim=1)


def _turned(quaternion: torch.Tensor, yaw_rad: torch.Tensor) -> torch.Tensor:
    """Turn orientations [B, 4] wxyz about the world's z."""
    cosine, sine = torch.cos(yaw_rad / 2), torch.sin(yaw_rad / 2)
    w, x, y, z = quaternion.unbind(dim=1)
    return torch.stack(
        [cosine * w - sine * z, cosine * x - sine * y, cosine * y + sine * x, cosine * z + sine * w], dim=1
    )
