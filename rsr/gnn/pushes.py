"""Pushes as initial velocities: what of a rollout's start one may choose, differentiable in it."""

from __future__ import annotations

import torch

from rsr.gnn.rigid import about_z, product


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
        before[:, body, 3:] = product(about_z(-dt_s * velocity[:, 2]), poses[:, body, 3:])
    return torch.stack([before, poses], dim=1)
