"""Errors of predicted trajectories, frame by frame: in mm, degrees and shares of a body's side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from rsr.common import ConfigError, angle_between
from rsr.learned.gnn.trajectories import START_FRAMES, Trajectory


@dataclass(frozen=True)
class TrajectoryErrors:
    """Errors of one simulator on some trajectories.

    Args:
        position_m, rotation_rad: one array [T - 2, n] a trajectory; row k is the error after k + 1 predicted frames.
        sizes_m: one array [n] a trajectory, the longest side of each body.
    """

    position_m: tuple[np.ndarray, ...] = field(repr=False)
    rotation_rad: tuple[np.ndarray, ...] = field(repr=False)
    sizes_m: tuple[np.ndarray, ...] = field(repr=False)

    def position_mm(self, frames: int | None = None) -> float:
        """Mean over bodies, then trajectories, after `frames` predicted ones; by default after the last."""
        return 1e3 * self._after(self.position_m, frames)

    def rotation_deg(self, frames: int | None = None) -> float:
        """See `position_mm`."""
        return float(np.rad2deg(self._after(self.rotation_rad, frames)))

    def median_fraction(self, frames: int | None = None) -> float:
        """Median over all bodies of the position error, as a share of the body's side."""
        shares = [row / size for row, size in zip(self._rows(self.position_m, frames), self.sizes_m, strict=True)]
        return float(np.median(np.concatenate(shares)))

    def position_percent(self) -> float:
        """Mean over frames and bodies, then trajectories, in % of the body's side: how published tosses are judged."""
        parts = zip(self.position_m, self.sizes_m, strict=True)
        # As ContactNets and its successors report tosses, so that figures can be laid side by side.
        return 100 * float(np.mean([np.mean(error / sizes) for error, sizes in parts]))

    def mean_rotation_deg(self) -> float:
        """Mean over frames and bodies, then trajectories."""
        return float(np.rad2deg(np.mean([error.mean() for error in self.rotation_rad])))

    def per_frame(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean position error in mm and rotation error in degrees after each predicted frame.

        Both reach as far as the shortest trajectory, so that every frame is a mean over all.
        """
        # Beyond the shortest trajectory a mean would be over fewer and fewer of them.
        frames = min(len(error) for error in self.position_m)
        positions = np.mean([error[:frames].mean(axis=1) for error in self.position_m], axis=0)
        rotations = np.mean([error[:frames].mean(axis=1) for error in self.rotation_rad], axis=0)
        return 1e3 * positions, np.rad2deg(rotations)

    def _after(self, errors: Sequence[np.ndarray], frames: int | None) -> float:
        return float(np.mean([row.mean() for row in self._rows(errors, frames)]))

    def _rows(self, errors: Sequence[np.ndarray], frames: int | None) -> list[np.ndarray]:
        shortest = min(len(error) for error in errors)
        if frames is not None and not 1 <= frames <= shortest:
            raise ConfigError(
                got=f"{frames} frames",
                expected=f"1 to {shortest}: the shortest trajectory has so many after its two given ones",
                where="errors of trajectories",
                next_step="Ask for fewer frames, or judge by longer trajectories.",
            )
        return [error[-1 if frames is None else frames - 1] for error in errors]


def errors_of(trajectories: Sequence[Trajectory], predicted: Sequence[np.ndarray]) -> TrajectoryErrors:
    """Compare predicted poses, [T, n, 7] each, with trajectories. What is not finite counts as infinitely wrong."""
    positions, rotations = [], []
    for trajectory, poses in zip(trajectories, predicted, strict=True):
        if np.shape(poses) != trajectory.poses.shape:
            raise ConfigError(
                got=f"predicted poses of shape {list(np.shape(poses))}",
                expected=str(list(trajectory.poses.shape)),
                where=f"trajectory '{trajectory.name}'",
                next_step="Predict as many frames and bodies as the trajectory has.",
            )
        truth, guess = trajectory.poses[START_FRAMES:], np.asarray(poses, float)[START_FRAMES:]
        positions.append(_finite(np.linalg.norm(guess[..., :3] - truth[..., :3], axis=2)))
        rotations.append(_finite(angle_between(guess[..., 3:], truth[..., 3:])))
    return TrajectoryErrors(tuple(positions), tuple(rotations), tuple(each.sizes_m for each in trajectories))


def _finite(errors: np.ndarray) -> np.ndarray:
    # NaN would make a mean NaN, which compares as neither better nor worse.
    return np.where(np.isfinite(errors), errors, np.inf)
