"""Start velocities from noisy poses.

A backward difference of two frames carries 1.4 times their noise: at 60 Hz, 0.3 mm becomes 25 mm/s, and that up to a
centimetre at the end of a push. So the first frames of each body, until it is hit, are fitted by the simplest
polynomial that their noise allows, a frame that jumped left out, and the difference is taken of its values. How fast
sliding bodies slow down is a property of the table: estimated from all trajectories together, it leaves a line to fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import chdtri

from rsr.gnn.bodies import GRAVITY_M_S2
from rsr.gnn.jumps import displacements, find_jumps, lie_still, noise_of, refuse_jumps, refuse_rest
from rsr.gnn.rotations import from_rotation_vector, product
from rsr.gnn.trajectories import Trajectory

_LONGEST = 8
"""Frames that are fitted; fewer where a body is hit, which no polynomial follows."""
_REJECTED = 0.01
"""A polynomial is refused where noise alone would leave its misfit less often than this (chi-square test)."""
_STRETCH = 6
"""Frames over which a deceleration is seen."""
_SLIDING_M_S = 0.15
"""What gets slower than this tells no deceleration: it may stop within the frames."""


@dataclass(frozen=True, eq=False)
class Steady:
    """A recorded trajectory that can be simulated from its first two frames.

    Args:
        trajectory: as recorded, but for these two frames.
        jumped: [T, n], True where a tag was seen elsewhere than before and after; leave these frames out of errors.
        still: [n], bodies that lie still throughout.
        noise_m, noise_rad: of the poses, estimated from the trajectory itself.
    """

    trajectory: Trajectory
    jumped: np.ndarray = field(repr=False)
    still: np.ndarray
    noise_m: float
    noise_rad: float


@dataclass(frozen=True)
class _Way:
    """Where one body went: its place in m, or its turn in rad.

    Args:
        values: [T, 3]. sigma: their noise.
        usable: frames that did not jump.
    """

    values: np.ndarray
    sigma: float
    usable: np.ndarray

    def bent(self, by: np.ndarray) -> _Way:
        return _Way(self.values - by, self.sigma, self.usable)

    def since(self, frame: int) -> _Way:
        return _Way(self.values[frame:], self.sigma, self.usable[self.usable >= frame] - frame)


@dataclass(frozen=True)
class _Fit:
    """Polynomials through some frames of a way: coefficients [3, 3] by power of the frame's number."""

    rows: np.ndarray
    coefficients: np.ndarray

    @property
    def start(self) -> np.ndarray:
        """Values [2, 3] in frames 0 and 1."""
        return _powers(np.arange(2), 2) @ self.coefficients

    @property
    def is_level(self) -> bool:
        """Whether a body's place goes neither up nor down."""
        return self.coefficients[1, 2] == 0.0 == self.coefficients[2, 2]

    @property
    def speed(self) -> float:
        """On the level, at frame 0, m per frame."""
        return float(np.linalg.norm(self.coefficients[1, :2]))


def steady(trajectory: Trajectory, deceleration_m_s2: float | None = None) -> Steady:
    """Estimate where the bodies were in the first two frames, so that their difference is the velocity.

    Args:
        deceleration_m_s2: of sliding bodies, see `sliding_deceleration`.

    Raises:
        SessionError: nothing moves, or tags jump or tremble too much to know their bodies' ways.
    """
    moved = displacements(trajectory.poses)
    noise = noise_of(moved)
    jumped = find_jumps(moved, noise)
    refuse_jumps(trajectory, jumped, noise)
    still = lie_still(moved, noise, jumped)
    refuse_rest(trajectory, still, noise)
    places, turns = _ways(moved, noise, jumped)
    count = _frames_until_hit([*places, *turns])
    slowing = 0.0 if deceleration_m_s2 is None else deceleration_m_s2 * trajectory.dt_s**2
    place = np.stack([_slowed(way, count, slowing) for way in places], axis=1)
    turn = np.stack([_started(way, _fitted(way, count)) for way in turns], axis=1)
    poses = trajectory.poses.copy()
    poses[:2, :, :3] = trajectory.poses[0, :, :3] + place
    poses[:2, :, 3:] = product(trajectory.poses[[0, 0], :, 3:], from_rotation_vector(turn))
    return Steady(trajectory.with_poses(poses), jumped, still, float(noise[0]), float(noise[1]))


def steady_all(trajectories: Sequence[Trajectory]) -> list[Steady]:
    """Estimate the starts of trajectories that were recorded on the same table."""
    slowing = sliding_deceleration(trajectories)
    return [steady(trajectory, slowing) for trajectory in trajectories]


def sliding_deceleration(trajectories: Sequence[Trajectory]) -> float | None:
    """How fast sliding bodies slow down, m/s2: the median of all stretches of even sliding; None if there are none."""
    found = []
    for trajectory in trajectories:
        moved = displacements(trajectory.poses)
        noise = noise_of(moved)
        places, turns = _ways(moved, noise, find_jumps(moved, noise))
        for place, turn in zip(places, turns, strict=True):
            for first in range(len(trajectory) - _STRETCH + 1):
                bend = _slide(place.since(first), turn.since(first), _SLIDING_M_S * trajectory.dt_s)
                if bend is not None:
                    found.append(bend / trajectory.dt_s**2)
    return float(np.clip(np.median(found), 0.0, GRAVITY_M_S2)) if found else None


def _slide(place: _Way, turn: _Way, slowest: float) -> float | None:
    """Deceleration over a stretch, m per frame squared; None where the body is hit, jumps, lifts off or is too slow."""
    fit = _fitted(place, _STRETCH)
    if fit is None or len(fit.rows) < _STRETCH or not fit.is_level or _fitted(turn, _STRETCH) is None:
        return None
    _, velocity, bend = _through(fit.rows, place)[:, :2]
    if np.linalg.norm(velocity + 2 * bend * (_STRETCH - 1)) < slowest:
        return None
    return float(-2 * bend @ velocity / np.linalg.norm(velocity))


def _ways(moved: np.ndarray, noise: np.ndarray, jumped: np.ndarray) -> tuple[list[_Way], list[_Way]]:
    """Places and turns of all bodies, from displacements [T, n, 6]."""
    usable = [np.flatnonzero(~jumped[:, body]) for body in range(moved.shape[1])]
    places = [_Way(moved[:, body, :3], noise[0], rows) for body, rows in enumerate(usable)]
    return places, [_Way(moved[:, body, 3:], noise[1], rows) for body, rows in enumerate(usable)]


def _frames_until_hit(ways: Sequence[_Way]) -> int:
    """How many first frames all bodies move evenly in: what hits one shows best in another that was at rest."""
    longest = min(_LONGEST, len(ways[0].values))
    return next((count for count in range(longest, 2, -1) if all(_fitted(way, count) for way in ways)), 2)


def _started(way: _Way, fit: _Fit | None) -> np.ndarray:
    """Values [2, 3] in the first two frames; as recorded where no polynomial fits."""
    return way.values[:2] if fit is None else fit.start


def _slowed(way: _Way, count: int, slowing: float) -> np.ndarray:
    """Places [2, 3] in the first two frames; of what slides, by a line that bends as friction bends it.

    Args:
        slowing: deceleration of a sliding body, m per frame squared.
    """
    fit = _fitted(way, count)
    if fit is None or slowing == 0.0 or not fit.is_level or fit.speed < slowing * count:
        return _started(way, fit)
    bent = -0.5 * slowing / fit.speed * fit.coefficients[1] * [1, 1, 0]
    frames = np.arange(len(way.values))[:, None] ** 2.0
    straight = _fitted(way.bent(frames * bent), count, highest=1)
    return fit.start if straight is None else straight.start + frames[:2] * bent


def _fitted(way: _Way, count: int, highest: int = 2) -> _Fit | None:
    """Fit the first frames; each column by the lowest power that noise allows. None where even the highest does not."""
    rows = way.usable[way.usable < count]
    most = min(highest, len(rows) - 2)
    if most < 0:
        return None
    fits = np.array([_through(rows, way, order) for order in range(most + 1)])
    misfits = np.square(_powers(rows, 2) @ fits - way.values[rows]).sum(axis=1) / way.sigma**2
    freedom = len(rows) - np.arange(most + 1.0) - 1
    if misfits[most].sum() > chdtri(3 * freedom[most], _REJECTED):
        return None
    allowed = misfits <= chdtri(freedom, _REJECTED)[:, None]
    simplest = np.where(allowed.any(axis=0), allowed.argmax(axis=0), most)
    return _Fit(rows, np.take_along_axis(fits, simplest[None, None], axis=0)[0])


def _through(rows: np.ndarray, way: _Way, order: int = 2) -> np.ndarray:
    """Coefficients [3, 3] of polynomials of an order through some frames of a way."""
    coefficients = np.zeros((3, 3))
    coefficients[: order + 1] = np.linalg.pinv(_powers(rows, order)) @ way.values[rows]
    return coefficients


def _powers(rows: np.ndarray, order: int) -> np.ndarray:
    return rows[:, None] ** np.arange(order + 1.0)
