"""From motion capture to strikes: velocities before and after, impact point, friction; what is unusable, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import least_squares

from rsr.common import rotated
from rsr.scenarios.built_in.strike import GRAVITY_M_S2, Definition, RecordedStrikes, Shape, Strikes, distances

_BEFORE_FRAMES, _AFTER_FRAMES, _FEWEST_AFTER = 10, 15, 6
_FEWEST_BEFORE = 5
_MOVED_M, _PARTED_M, _AGAIN_M = 0.001, 0.001, 0.0
_STILL_M_S, _TILTED_M_S = 0.02, 0.05
_SUPPORT = 0.8
_PLACES = 400
_FEWEST_ALIGNED, _TOUCHING_FRAMES = 3, 3
_GAP_STD_M, _OFFSET_STD_M, _OFFSET_MOST_M, _OFFSET_LEAST_M = 0.0005, 0.005, 0.015, 0.001


@dataclass(frozen=True)
class StrikeTrajectory:
    """One strike as motion capture recorded it.

    Args:
        time_s: [T]. block: [T, 3], centre of mass (x, y in m) and turn (rad), world. nose: [T, 2], centre of the
            striking block's round nose, m, world.
    """

    time_s: np.ndarray
    block: np.ndarray
    nose: np.ndarray


@dataclass(frozen=True)
class Extracted:
    """Strikes that can be used, and why the others cannot.

    Args:
        kept: [N], places of the strikes among the trajectories.
        rejected: (place, reason).
        ground_friction: by regression of decelerations on speeds; None without any strike.
    """

    recorded: RecordedStrikes | None
    kept: tuple[int, ...]
    rejected: tuple[tuple[int, str], ...]
    ground_friction: float | None


class _UnusableError(Exception):
    """Why a trajectory is no strike."""


def extract_strikes(
    shape: Shape, trajectories: Sequence[StrikeTrajectory], nose_radius_m: float = Definition.nose_radius_m
) -> Extracted:
    """Turn trajectories into strikes; each is kept or rejected with a reason.

    Robot and cameras may differ by some millimetres: that offset, the same in all, is estimated and taken off.
    """
    found, kept, rejected = [], [], []
    offset_m = _nose_offset(shape, trajectories, nose_radius_m)
    for place, recorded in enumerate(trajectories):
        trajectory = replace(recorded, nose=recorded.nose - offset_m)
        try:
            found.append(_extract(shape, trajectory, nose_radius_m))
            kept.append(place)
        except _UnusableError as reason:
            rejected.append((place, str(reason)))
    if not found:
        return Extracted(None, (), tuple(rejected), None)
    strikes = Strikes(*(np.array([each[0][index] for each in found]) for index in range(4)))
    after, rest, slowing = (np.array([each[index] for each in found]) for index in (1, 2, 3))
    friction = _friction(shape, after, slowing)
    return Extracted(RecordedStrikes(strikes, after, rest), tuple(kept), tuple(rejected), friction)


def _nose_offset(shape: Shape, trajectories: Sequence[StrikeTrajectory], nose_radius_m: float) -> np.ndarray:
    """Offset [2] of the nose from where the cameras see the block, m, in the world: with it off, noses just touch.

    Along the strikes it is told within a fraction of a millimetre; across them, on flat faces, not at all: there it
    stays zero.
    """
    parts = []
    for trajectory in trajectories:
        try:
            onset = _onset(trajectory)
        except _UnusableError:
            continue
        frames = slice(onset - 2, onset + _TOUCHING_FRAMES)
        part = StrikeTrajectory(trajectory.time_s[frames], trajectory.block[frames], trajectory.nose[frames])
        if abs(_gaps(shape, part, nose_radius_m).min()) < _OFFSET_MOST_M:  # else it is another block, or a miss
            parts.append(part)
    if len(parts) < _FEWEST_ALIGNED:
        return np.zeros(2)

    def residuals(offset_m: np.ndarray) -> np.ndarray:
        near = [_gaps(shape, replace(part, nose=part.nose - offset_m), nose_radius_m).min() for part in parts]
        return np.concatenate([np.array(near) / _GAP_STD_M, offset_m / _OFFSET_STD_M])

    # cauchy: one recording in which the two overlap must not move all the others.
    found = least_squares(residuals, np.zeros(2), loss="cauchy", x_scale=_OFFSET_STD_M, diff_step=1e-3).x
    # Frames a few milliseconds apart tell no less than that.
    return found if np.linalg.norm(found) > _OFFSET_LEAST_M else np.zeros(2)


def _extract(shape: Shape, recording: StrikeTrajectory, radius_m: float) -> tuple[tuple, np.ndarray, np.ndarray, float]:
    """Strike (speed, angle, point, normal), velocity after, displacement at rest, and deceleration."""
    if not all(np.isfinite(part).all() for part in (recording.time_s, recording.block, recording.nose)):
        raise _UnusableError("markers were lost: it has empty frames")
    onset = _onset(recording)
    # The end of the contact, by geometry: motion capture has no force, so "first step without force" is a gap here.
    gaps = _gaps(shape, recording, radius_m)
    parted = onset + int(np.argmax(gaps[onset:] > _PARTED_M))
    if gaps[parted] <= _PARTED_M:
        raise _UnusableError("the blocks never parted: let the striking one brake")
    if (gaps[parted:] < _AGAIN_M).any():
        raise _UnusableError("the block was struck twice")
    # Medians over frames at rest: the noise of one frame, 0.2 degrees, would be a turn of the impact point by 0.1 mm.
    before = np.median(recording.block[: onset - 1], axis=0)
    frames = slice(max(0, onset - 1 - _BEFORE_FRAMES), onset - 1)
    motion = np.polyfit(recording.time_s[frames], recording.nose[frames], 1)[0]
    # Two frames back: in the frame of the onset the nose may already push.
    strike = _strike(shape, before, recording.nose[onset - 2], motion, radius_m)
    after, slowing = _after(recording, parted)
    if _last_speed(recording) > _STILL_M_S:
        raise _UnusableError("the recording ends before the block rests")
    rest = np.median(recording.block[-5:], axis=0) - before
    back = -before[2]
    turned = np.append(rotated(after[:2], back), after[2])
    return strike, turned, np.append(rotated(rest[:2], back), rest[2]), slowing


def _last_speed(recording: StrikeTrajectory) -> float:
    """Speed of the block at the end, m/s; means over some frames, so that noise does not pass for motion."""
    late, last = (recording.block[part, :2].mean(axis=0) for part in (slice(-20, -10), slice(-10, None)))
    return float(np.linalg.norm(last - late) / (recording.time_s[-10:].mean() - recording.time_s[-20:-10].mean()))


def _onset(recording: StrikeTrajectory) -> int:
    """First frame in which the block has moved."""
    moved = np.linalg.norm(recording.block[:, :2] - np.median(recording.block[:_FEWEST_BEFORE, :2], axis=0), axis=1)
    onset = int(np.argmax(moved > _MOVED_M))
    if moved[onset] <= _MOVED_M:
        raise _UnusableError("the block did not move")
    if onset < _FEWEST_BEFORE + 2:
        raise _UnusableError(f"the recording begins less than {_FEWEST_BEFORE + 2} frames before the impact")
    return onset


def _gaps(shape: Shape, recording: StrikeTrajectory, radius_m: float) -> np.ndarray:
    """Distance between nose and block in every frame."""
    nose = rotated(recording.nose - recording.block[:, :2], -recording.block[:, 2])
    return distances(nose, shape.outline) - radius_m


def _strike(shape: Shape, block: np.ndarray, nose: np.ndarray, motion: np.ndarray, radius_m: float) -> tuple:
    """Follow the nose along its line until it touches the block at rest."""
    speed = float(np.linalg.norm(motion))
    if speed < _TILTED_M_S:
        raise _UnusableError("the striking block hardly moved before the impact")
    course = rotated(motion / speed, -block[2])
    line = rotated(nose - block[:2], -block[2]) + np.linspace(-0.01, 0.03, 2001)[:, None] * course
    # Frames are 1 to 3 mm apart, so the place of contact is found on the line between them, in steps of 0.02 mm.
    touching = np.flatnonzero(distances(line, shape.outline) < radius_m)
    if len(touching) == 0:
        raise _UnusableError(f"the striking block's path misses '{shape.name}': is it the right shape and frame?")
    places = np.linspace(-1, 1, _PLACES)
    points, normals = (np.concatenate(part) for part in zip(*(f.at(places) for f in shape.struck_faces), strict=True))
    nearest = int(np.linalg.norm(points - line[touching[0]], axis=1).argmin())
    normal = normals[nearest]
    angle = float(np.arctan2(course @ np.array([-normal[1], normal[0]]), course @ normal))
    if abs(angle) > np.pi / 3:
        raise _UnusableError("the block was struck at a face, or under an angle, that is not modelled")
    return speed, angle, points[nearest], normal


def _after(recording: StrikeTrajectory, parted: int) -> tuple[np.ndarray, float]:
    """Velocity when the blocks part, and deceleration, by a quadratic through the frames in which the block moves."""
    steps = np.linalg.norm(np.diff(recording.block[parted:, :2], axis=0), axis=1) / np.diff(recording.time_s[parted:])
    moving = int(np.argmax(steps < _STILL_M_S)) if (steps < _STILL_M_S).any() else len(steps)
    if moving < _FEWEST_AFTER:
        raise _UnusableError(f"the block moved for {moving} frames after the impact; {_FEWEST_AFTER} are needed")
    # A quadratic: friction decelerates the block evenly while it slides, and the first derivative at zero is wanted.
    frames = slice(parted, parted + min(moving, _AFTER_FRAMES))
    time_s = recording.time_s[frames] - recording.time_s[parted]
    pose = np.column_stack([recording.block[frames, :2], np.unwrap(recording.block[frames, 2])])
    bend, velocity, _ = np.polyfit(time_s, pose, 2)
    return velocity, float(np.linalg.norm(2 * bend[:2]))


def _friction(shape: Shape, after: np.ndarray, slowing: np.ndarray) -> float:
    """Regression of decelerations; a block that turns is slowed down less along its path."""
    speed = np.linalg.norm(after[:, :2], axis=1)
    # Limit surface: of mu g, the share v / s acts along the path, with s^2 = v^2 + (k rho w)^2 (see `sliding`).
    share = speed / np.hypot(speed, _SUPPORT * shape.gyration_m * after[:, 2])
    expected = GRAVITY_M_S2 * share
    return float(expected @ slowing / (expected @ expected))
