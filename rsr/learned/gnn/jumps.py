"""Noise of recorded poses, frames in which a tag jumped, bodies that lie still, all from the poses themselves."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import median_filter

from rsr.common import SessionError, conjugate, product, rotation_vector
from rsr.learned.gnn.trajectories import Trajectory

# m and rad: what is smoother than this counts as this noisy.
_LEAST = np.array([2e-5, 3e-4])
_JUMP_SIGMAS = 6.0
# m and rad: what is smaller may be a body that rocks.
_SMALLEST_JUMP = (0.002, 0.03)
_AROUND = 7
_OUT_AND_BACK = np.array([1.0, -2.0, 1.0])
_MOSTLY = 0.75
_JUMPS_ALLOWED = 0.2
_TREMBLE = 0.03
_STILL_SIGMAS = 4.0


def displacements(poses: np.ndarray) -> np.ndarray:
    """Displacements [T, n, 6] of bodies from the first frame: m in the world's frame, rad in their own.

    Turns are summed from frame to frame, so that they may pass half a turn.
    """
    # q_t^-1 q_{t+1}: each frame's turn, in the body's own frame.
    turns = rotation_vector(product(conjugate(poses[:-1, :, 3:]), poses[1:, :, 3:]))
    turned = np.concatenate([np.zeros((1, *turns.shape[1:])), np.cumsum(turns, axis=0)])
    return np.concatenate([poses[..., :3] - poses[:1, :, :3], turned], axis=-1)


def noise_of(moved: np.ndarray) -> np.ndarray:
    """Standard deviations [2], m and rad, from third differences of displacements [T, n, 6].

    Even motion leaves nothing of itself in them, and a median forgets impacts.
    """
    if len(moved) < 6:
        return _LEAST
    # The third difference of white noise has 1 + 9 + 9 + 1 = 20 times its variance.
    third = np.abs(np.diff(moved, n=3, axis=0)) / np.sqrt(20)
    # 1.4826: from a median of absolute values to a standard deviation, of a normal distribution.
    return np.maximum(1.4826 * np.array([np.median(third[..., :3]), np.median(third[..., 3:])]), _LEAST)


def find_jumps(moved: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Frames [T, n] in which a body was seen beside its track: displaced, and back where it belongs in the next one.

    Of the last two frames nothing can be said, and of the first two only that others saw nothing: an impact bends the
    tracks of two bodies, a jump that of one.
    """
    jumped = np.zeros(moved.shape[:2], bool)
    if len(moved) < _AROUND:
        return jumped
    for track, sigma, least in zip((moved[..., :3], moved[..., 3:]), noise, _SMALLEST_JUMP, strict=True):
        bends = track[2:] - 2 * track[1:-1] + track[:-2]
        usual = median_filter(bends, (_AROUND, 1, 1), mode="mirror")  # friction and gravity bend all the time
        # A second difference has 1 + 4 + 1 = 6 times the variance.
        threshold = max(_JUMP_SIGMAS * np.sqrt(6) * sigma, least)
        jumped[2:-2] |= _out_and_back(bends - usual, threshold)
        jumped[:2] |= _early(bends, threshold) & _early(bends - usual, threshold)
    return jumped


def _out_and_back(bends: np.ndarray, threshold: float) -> np.ndarray:
    """Where three bends in a row are large, and mostly a jump's: 1, -2, 1 times its size. An impact's go one way."""
    rows = np.stack([bends[:-2], bends[1:-1], bends[2:]])
    # Projection on the unit vector (1, -2, 1) / sqrt(6): the part of the bends that one jump explains.
    explained = np.square(np.tensordot(_OUT_AND_BACK, rows, axes=1)).sum(axis=-1) / 6
    large = (np.linalg.norm(rows, axis=-1) > threshold).all(axis=0)
    return large & (explained > _MOSTLY * np.square(rows).sum(axis=(0, -1)))


def _early(bends: np.ndarray, threshold: float) -> np.ndarray:
    """Jumps [2, n] in the first two frames."""
    large = np.linalg.norm(bends[:2], axis=-1) > threshold
    alone = large & (large.sum(axis=1, keepdims=True) == 1) & (bends.shape[1] > 1)
    back = np.linalg.norm(bends[0] + 2 * bends[1], axis=-1) < threshold
    return np.stack([alone[0] & ~large[1], alone[0] & alone[1] & back])


def lie_still(moved: np.ndarray, noise: np.ndarray, jumped: np.ndarray) -> np.ndarray:
    """Which bodies [n] lie still throughout, as far as noise lets see."""
    sizes = np.stack([np.linalg.norm(moved[..., :3], axis=-1), np.linalg.norm(moved[..., 3:], axis=-1)], axis=-1)
    sizes[jumped] = 0.0
    return (np.median(sizes[len(sizes) // 2 :], axis=0) < _STILL_SIGMAS * np.sqrt(2) * noise).all(axis=-1)


def refuse_jumps(trajectory: Trajectory, jumped: np.ndarray, noise: np.ndarray) -> None:
    """Raise SessionError where a body's tag jumps so often, or trembles so much, that nobody knows its track."""
    if noise[0] > _TREMBLE * trajectory.sizes_m.min():
        raise SessionError(
            got=f"poses that scatter by {noise[0] * 1e3:.1f} mm from frame to frame",
            expected=f"at most {_TREMBLE:.0%} of the smallest body, {_TREMBLE * trajectory.sizes_m.min() * 1e3:.1f} mm",
            where=f"trajectory '{trajectory.name}'",
            next_step="Check how the tags are detected, or leave this trajectory out.",
        )
    share = jumped.mean(axis=0)
    if share.max() > _JUMPS_ALLOWED:
        body = int(share.argmax())
        frames = ", ".join(str(frame) for frame in np.flatnonzero(jumped[:, body])[:3])
        raise SessionError(
            got=f"a tag that jumps in {jumped[:, body].sum()} of {len(trajectory)} frames ({frames}, ...)",
            expected=f"jumps in at most {_JUMPS_ALLOWED:.0%} of them",
            where=f"trajectory '{trajectory.name}', body '{trajectory.world.bodies[body].name}'",
            next_step="Check that the tag is well lit and on the right body, or leave this trajectory out.",
        )


def refuse_rest(trajectory: Trajectory, still: np.ndarray, noise: np.ndarray) -> None:
    """Raise SessionError where no body moves."""
    if still.all():
        raise SessionError(
            got=f"bodies at rest throughout, but for noise of {noise[0] * 1e3:.2f} mm",
            expected="at least one body that moves",
            where=f"trajectory '{trajectory.name}'",
            next_step="Leave it out: it tells nothing about contacts.",
        )
