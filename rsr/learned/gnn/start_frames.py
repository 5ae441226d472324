"""First frames of noisy recordings, mended so that their differences are velocities.

A backward difference of two frames carries 1.4 times their noise: at 60 Hz, 0.3 mm becomes 25 mm/s, and that up to a
centimetre at the end of a push. So the first frames of each body, until it is hit, are fitted by the simplest
polynomial that their noise allows, a frame that jumped left out, and the difference is taken of its values. How fast
sliding bodies slow down is a property of the table: estimated from all trajectories together, it leaves a line to fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from rsr.common import from_rotation_vector, product
from rsr.learned.gnn.bodies import GRAVITY_M_S2
from rsr.learned.gnn.jumps import displacements, find_jumps, lie_still, noise_of, refuse_jumps, refuse_rest
from rsr.learned.gnn.trajectories import Trajectory

# Frames that are fitted; fewer where a body is hit, which no polynomial follows.
_LONGEST = 8
# A polynomial is refused where noise alone would leave its misfit less often than this (chi-square test).
_REJECTED = 0.01
# Frames over which a deceleration is seen.
_STRETCH = 6
# What gets slower than this tells no deceleration: it may stop within the frames.
_SLIDING_M_S = 0.15


@dataclass(frozen=True)
class _Track:
    """Where one body went: its place in m, or its turn in rad.

    Args:
        values: [T, 3]. sigma: their noise.
        usable: frames that did not jump.
    """

    values: np.ndarray
    sigma: float
    usable: np.ndarray

    def bent(self, by: np.ndarray) -> _Track:
        return _Track(self.values - by, self.sigma, self.usable)

    def since(self, frame: int) -> _Track:
        return _Track(self.values[frame:], self.sigma, self.usable[self.usable >= frame] - frame)


@dataclass(frozen=True)
class _Fit:
    """Polynomials through some frames of a track: coefficients [3, 3] by power of the frame's number."""

    rows: np.ndarray
    coefficients: np.ndarray

    def values(self, count: int) -> np.ndarray:
        """Values [count, 3] in the first frames."""
        return _powers(np.arange(count), 2) @ self.coefficients

    @property
    def is_level(self) -> bool:
        """Whether a body's place goes neither up nor down."""
        return self.coefficients[1, 2] == 0.0 == self.coefficients[2, 2]

    @property
    def speed(self) -> float:
        """On the level, at frame 0, m per frame."""
        return float(np.linalg.norm(self.coefficients[1, :2]))


def fit_all_first_frames(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """Mend trajectories that were recorded on the same table, see `fit_first_frames`."""
    slowing = sliding_deceleration(trajectories)
    return [fit_first_frames(trajectory, slowing) for trajectory in trajectories]


def fit_first_frames(trajectory: Trajectory, deceleration_m_s2: float | None = None) -> Trajectory:
    """Fit the first frames until a body is hit, so that their differences are velocities; fill jumped frames in.

    Args:
        deceleration_m_s2: of sliding bodies, see `sliding_deceleration`.

    Raises:
        SessionError: nothing moves, or tags jump or tremble too much to know their bodies' tracks.
    """
    moved = displacements(trajectory.poses)
    noise = noise_of(moved)
    jumped = find_jumps(moved, noise)
    refuse_jumps(trajectory, jumped, noise)
    refuse_rest(trajectory, lie_still(moved, noise, jumped), noise)
    places, turns = _tracks(moved, noise, jumped)
    count = _frames_until_hit([*places, *turns])
    slowing = 0.0 if deceleration_m_s2 is None else deceleration_m_s2 * trajectory.dt_s**2
    place = np.stack([_slowed(track, count, slowing) for track in places], axis=1)
    turn = np.stack([_started(track, _fitted(track, count), count) for track in turns], axis=1)
    poses = _filled_in(trajectory.poses, jumped)
    poses[:count, :, :3] = trajectory.poses[0, :, :3] + place
    poses[:count, :, 3:] = product(trajectory.poses[:1, :, 3:], from_rotation_vector(turn))
    return trajectory.with_poses(poses)


def _filled_in(poses: np.ndarray, jumped: np.ndarray) -> np.ndarray:
    """Poses [T, n, 7] where a jumped frame lies halfway between its neighbours."""
    filled = poses.copy()
    for frame, body in np.argwhere(jumped[:-1]).tolist():
        before, after = poses[max(frame - 1, 0), body], poses[frame + 1, body]
        # q and -q are the same orientation, and only like signs have their mean in between.
        sign = 1.0 if before[3:] @ after[3:] >= 0 else -1.0
        middle = (before + after * np.array([1, 1, 1, *(sign,) * 4])) / 2
        filled[frame, body] = [*middle[:3], *(middle[3:] / np.linalg.norm(middle[3:]))]
    return filled


def sliding_deceleration(trajectories: Sequence[Trajectory]) -> float | None:
    """Deceleration of sliding bodies, m/s2: the median of all stretches of even sliding; None if there are none."""
    found = []
    for trajectory in trajectories:
        moved = displacements(trajectory.poses)
        noise = noise_of(moved)
        places, turns = _tracks(moved, noise, find_jumps(moved, noise))
        for place, turn in zip(places, turns, strict=True):
            for first in range(len(trajectory) - _STRETCH + 1):
                # Only stretches without an impact or a jump tell how fast friction slows a body.
                bend = _slide(place.since(first), turn.since(first), _SLIDING_M_S * trajectory.dt_s)
                if bend is not None:
                    found.append(bend / trajectory.dt_s**2)
    return float(np.clip(np.median(found), 0.0, GRAVITY_M_S2)) if found else None


def _slide(place: _Track, turn: _Track, slowest: float) -> float | None:
    """Deceleration over a stretch, m per frame squared; None where the body is hit, jumps, lifts off or is too slow."""
    fit = _fitted(place, _STRETCH)
    if fit is None or len(fit.rows) < _STRETCH or not fit.is_level or _fitted(turn, _STRETCH) is None:
        return None
    _, velocity, bend = _through(fit.rows, place)[:, :2]
    if np.linalg.norm(velocity + 2 * bend * (_STRETCH - 1)) < slowest:
        return None
    # x(k) = x + v k + b k^2: the deceleration along the way is -2 b . v / |v|, m per frame squared.
    return float(-2 * bend @ velocity / np.linalg.norm(velocity))


def _tracks(moved: np.ndarray, noise: np.ndarray, jumped: np.ndarray) -> tuple[list[_Track], list[_Track]]:
    """Places and turns of all bodies, from displacements [T, n, 6]."""
    usable = [np.flatnonzero(~jumped[:, body]) for body in range(moved.shape[1])]
    places = [_Track(moved[:, body, :3], noise[0], rows) for body, rows in enumerate(usable)]
    return places, [_Track(moved[:, body, 3:], noise[1], rows) for body, rows in enumerate(usable)]


def _frames_until_hit(tracks: Sequence[_Track]) -> int:
    """Count the first frames in which all bodies move evenly: a hit shows best in the body that was at rest."""
    longest = min(_LONGEST, len(tracks[0].values))
    return next((count for count in range(longest, 2, -1) if all(_fitted(track, count) for track in tracks)), 2)


def _started(track: _Track, fit: _Fit | None, count: int) -> np.ndarray:
    """Values [count, 3] in the first frames; as recorded where no polynomial fits."""
    return track.values[:count] if fit is None else fit.values(count)


def _slowed(track: _Track, count: int, slowing: float) -> np.ndarray:
    """Places [count, 3] in the first frames; of what slides, by a line that bends as friction bends it.

    Args:
        slowing: deceleration of a sliding body, m per frame squared.
    """
    fit = _fitted(track, count)
    if fit is None or slowing == 0.0 or not fit.is_level or fit.speed < slowing * count:
        return _started(track, fit, count)
    # Friction acts against the velocity: subtract its parabola, fit a line, and add it again.
    bent = -0.5 * slowing / fit.speed * fit.coefficients[1] * [1, 1, 0]
    frames = np.arange(len(track.values))[:, None] ** 2.0
    straight = _fitted(track.bent(frames * bent), count, highest=1)
    return fit.values(count) if straight is None else straight.values(count) + frames[:count] * bent


def _fitted(track: _Track, count: int, highest: int = 2) -> _Fit | None:
    """Fit the first frames; each column by the lowest power that noise allows. None where even the highest does not."""
    rows = track.usable[track.usable < count]
    most = min(highest, len(rows) - 2)
    if most < 0:
        return None
    fits = np.array([_through(rows, track, order) for order in range(most + 1)])
    # Chi-square of each power, [3 powers, 3 columns]; below its quantile noise alone explains the misfit.
    misfits = np.square(_powers(rows, 2) @ fits - track.values[rows]).sum(axis=1) / track.sigma**2
    freedom = len(rows) - np.arange(most + 1.0) - 1
    if misfits[most].sum() > chdtri(3 * freedom[most], _REJECTED):
        return None
    allowed = misfits <= chdtri(freedom, _REJECTED)[:, None]
    # A higher power than needed would fit the noise, and noise in a slope is an error in velocity.
    simplest = np.where(allowed.any(axis=0), allowed.argmax(axis=0), most)
    return _Fit(rows, np.take_along_axis(fits, simplest[None, None], axis=0)[0])


def _through(rows: np.ndarray, track: _Track, order: int = 2) -> np.ndarray:
    """Coefficients [3, 3] of polynomials of an order through some frames of a track."""
    coefficients = np.zeros((3, 3))
    coefficients[: order + 1] = np.linalg.pinv(_powers(rows, order)) @ track.values[rows]
    return coefficients


def _powers(rows: np.ndarray, order: int) -> np.ndarray:
    return rows[:, None] ** np.arange(order + 1.0)
