"""Scripted pushes: candidates for the next recording, which reach more of the table than a policy that has learnt."""

from __future__ import annotations

import numpy as np

from rsr.scenarios import Channels, Drive, Probes
from rsr.scenarios.built_in.pushing import tool_plane

BESIDE_M = 0.018
"""A scripted hand pushes at most this far beside the middle of the block."""
PERIOD_STEPS = (16, 60)
BACKING_SHARE = (0.0, 0.4)
SPEEDS = (0.3, 1.0)


def draw_pushes(rng: np.random.Generator, count: int) -> tuple[Drive, list[str]]:
    """A hand that pushes beside the block's middle, backs off now and then, and pushes again."""
    beside_m = rng.uniform(-BESIDE_M, BESIDE_M, (count, 1))
    speed = rng.uniform(*SPEEDS, (count, 1))
    period = rng.integers(*PERIOD_STEPS, (count, 1))
    backing = rng.uniform(*BACKING_SHARE, (count, 1))

    def drive(channels: Channels, step: int) -> np.ndarray:
        # Aim at the block's middle, moved aside by `beside_m` along the perpendicular.
        towards = channels["block_position"][:, :2] - channels["tip_position"][:, :2]
        across = np.stack([-towards[:, 1], towards[:, 0]], axis=1)
        across /= np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-9)
        towards = towards + beside_m * across
        towards /= np.maximum(np.linalg.norm(towards, axis=1, keepdims=True), 1e-9)
        forwards = np.where(step % period < (1 - backing) * period, 1.0, -1.0)
        return tool_plane.displacements(channels["joint_position"], forwards * speed * towards)

    words = [
        f"push {1000 * float(side):.0f} mm beside the middle at {tool_plane.SPEED_M_S * float(pace):.2f} m/s, "
        f"backing off {float(share):.0%} of the time"
        for side, pace, share in zip(beside_m[:, 0], speed[:, 0], backing[:, 0], strict=True)
    ]
    return drive, words


PROBES = Probes("push", draw_pushes)
