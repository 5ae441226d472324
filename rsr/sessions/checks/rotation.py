"""Quaternions against angular velocities: which order of columns and which frame make the one the other's change?"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rsr.common import conjugate, product, rotation_vector
from rsr.sessions import Channel, Session
from rsr.sessions.checks.findings import Finding
from rsr.sessions.clocks import Signal, forward_only

Order = Literal["wxyz", "xyzw"]
Frame = Literal["body", "world"]

_CLEARLY = 0.5
"""Another convention must leave less than this share of the declared one's misfit to count as the true one."""
_EXPLAINED = 0.35
"""... and less than this share of the angular velocity itself."""
_STRETCH_S = 0.15
"""A camera's orientations, 0.2 degrees off at 60 Hz, change from row to row by noise mostly; over this they do not."""
_LEAST_SPEED_RAD_S = 0.05
_LEAST_ROWS = 10
_DEGREES = 180.0 / np.pi


@dataclass(frozen=True)
class Convention:
    """How a quaternion and an angular velocity are written.

    Args:
        misfit: of the angular velocity, as a share of its own size.
        unit: of the angular velocity.
    """

    order: Order
    frame: Frame
    unit: Literal["rad/s", "deg/s"]
    misfit: float


def turning_speed(time_s: np.ndarray, quaternion: np.ndarray, frame: Frame, rows: int = 1) -> np.ndarray:
    """Angular velocity [T - rows, 3] between quaternions wxyz [T, 4] so many rows apart, in one of the frames."""
    unit = quaternion / np.linalg.norm(quaternion, axis=1, keepdims=True)
    first, second = unit[:-rows], unit[rows:]
    turn = product(conjugate(first), second) if frame == "body" else product(second, conjugate(first))
    return rotation_vector(turn) / (time_s[rows:] - time_s[:-rows])[:, None]


def turning_signal(time_s: np.ndarray, quaternion: np.ndarray, frame: Frame) -> Signal:
    """Angular velocity that orientations wxyz [T, 4] show, each stamped in the middle between its two rows."""
    forward = np.flatnonzero(np.isfinite(quaternion).all(axis=1) & forward_only(time_s))
    time_s, quaternion = time_s[forward], quaternion[forward]
    return Signal((time_s[1:] + time_s[:-1]) / 2, turning_speed(time_s, quaternion, frame))


def rank_conventions(
    episodes: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]],
) -> list[Convention]:
    """Try every convention on (times [T], quaternions [T, 4] as stored, angular velocities [T, 3]); best first.

    Empty where nothing turns. Compared are turns from row to row, which a fast spin needs, and turns over a longer
    stretch, which a noisy orientation needs; those count that fit the best convention better.
    """
    usable = [each for each in episodes if len(each[0]) >= _LEAST_ROWS and _sound(*each)]
    rankings = [ranked for stretch_s in (0.0, _STRETCH_S) if (ranked := _ranked(usable, stretch_s))]
    return min(rankings, key=lambda ranked: ranked[0].misfit, default=[])


def _ranked(usable: list[tuple[np.ndarray, np.ndarray, np.ndarray]], stretch_s: float) -> list[Convention]:
    """All conventions by how far the turns over so many seconds (at least one row) miss the mean velocities."""
    ranked = []
    for order, frame in itertools.product(("wxyz", "xyzw"), ("body", "world")):
        derived, recorded = _turns(usable, stretch_s, order, frame)
        speed = np.median(np.linalg.norm(derived, axis=1)) if len(derived) else 0.0
        if speed < _LEAST_SPEED_RAD_S:
            return []
        for unit in ("rad/s", "deg/s"):
            in_rad = recorded / (_DEGREES if unit == "deg/s" else 1.0)
            misfit = np.median(np.linalg.norm(derived - in_rad, axis=1)) / speed
            ranked.append(Convention(order, frame, unit, float(misfit)))
    # About a fixed axis both frames fit to rounding errors: then the usual one comes first, on every machine.
    return sorted(ranked, key=lambda each: round(each.misfit, 6))


def _turns(
    usable: list[tuple[np.ndarray, np.ndarray, np.ndarray]], stretch_s: float, order: Order, frame: Frame
) -> tuple[np.ndarray, np.ndarray]:
    """Angular velocities [N, 3] that orientations show over such stretches, and the mean of those recorded there."""
    derived, means = [np.empty((0, 3))], [np.empty((0, 3))]
    for time_s, stored, recorded in usable:
        rows = max(1, round(stretch_s / float(np.median(np.diff(time_s)))))
        quaternion = stored if order == "wxyz" else stored[:, [3, 0, 1, 2]]
        derived.append(turning_speed(time_s, quaternion, frame, rows))
        means.append(_mean_velocity(time_s, recorded, rows))
    return np.concatenate(derived), np.concatenate(means)


def fitting_axes(episodes: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]], frame: Frame) -> tuple[str, float]:
    """Find the axes of the angular velocity that are the orientation's x, y, z, such as `x, -z, y`, and the misfit."""
    usable = [each for each in episodes if len(each[0]) >= _LEAST_ROWS and _sound(*each)]
    fits = []
    for stretch_s in (0.0, _STRETCH_S):
        derived, recorded = _turns(usable, stretch_s, "wxyz", frame)
        speed = np.median(np.linalg.norm(derived, axis=1))
        for order, signs in itertools.product(itertools.permutations(range(3)), itertools.product((1, -1), repeat=3)):
            misfit = np.median(np.linalg.norm(derived - recorded[:, order] * signs, axis=1)) / speed
            words = ", ".join("-" * (sign < 0) + "xyz"[axis] for axis, sign in zip(order, signs, strict=True))
            fits.append((float(misfit), words))
    misfit, words = min(fits)
    return words, misfit


def _mean_velocity(time_s: np.ndarray, recorded: np.ndarray, rows: int) -> np.ndarray:
    """Mean velocity [T - rows, 3] over so many rows, by trapezoids: one may be a mean over the step beside its row."""
    steps_s = np.diff(time_s)[:, None]
    travelled = np.concatenate([np.zeros((1, 3)), np.cumsum((recorded[1:] + recorded[:-1]) / 2 * steps_s, axis=0)])
    return (travelled[rows:] - travelled[:-rows]) / (time_s[rows:] - time_s[:-rows])[:, None]


def judge_rotation(session: Session) -> Iterator[Finding]:
    """Compare orientations with the angular velocities recorded beside them."""
    speeds = [each for each in session.channels if each.unit == "rad/s" and each.width == 3 and each.frame != "joint"]
    for quaternion in (each for each in session.channels if each.is_quaternion):
        for speed in speeds:
            turning = [(episode.time_s, episode[quaternion.name], episode[speed.name]) for episode in session.episodes]
            yield from _judge(session, quaternion, speed, turning)


def _sound(time_s: np.ndarray, quaternion: np.ndarray, recorded: np.ndarray) -> bool:
    norms = np.linalg.norm(quaternion, axis=1)
    return bool(
        np.isfinite(recorded).all() and np.isfinite(norms).all() and (norms > 0).all() and (np.diff(time_s) > 0).all()
    )


def _judge(
    session: Session, quaternion: Channel, speed: Channel, turning: list[tuple[np.ndarray, np.ndarray, np.ndarray]]
) -> Iterator[Finding]:
    ranked = rank_conventions(turning)
    if not ranked:
        return
    # A body that turns about one fixed axis has the same velocity in both frames: a tie goes to the declared one.
    best = min(ranked, key=lambda each: (round(each.misfit, 6), each.frame != speed.frame))
    declared = next(
        each for each in ranked if (each.order, each.unit) == ("wxyz", "rad/s") and each.frame in (speed.frame, "body")
    )
    where = f"session '{session.card.session}', channels '{quaternion.name}' and '{speed.name}'"
    if best.misfit < min(_EXPLAINED, _CLEARLY * declared.misfit):
        yield Finding(
            "reject", "physics", where,
            got=f"orientations that turn as if written {best.order}, with an angular velocity in {best.unit} in the "
            f"{best.frame} frame (misfit {100 * best.misfit:.0f} %; as declared {100 * declared.misfit:.0f} %)",
            expected=f"wxyz, rad/s, frame {speed.frame}",
            next_step="Reorder or convert the columns, or correct the channel's frame, and store the session again.",
        )  # fmt: skip
    elif declared.misfit > _EXPLAINED:
        axes, misfit = fitting_axes(turning, declared.frame)
        mounted = misfit < min(_EXPLAINED, _CLEARLY * declared.misfit)
        so = f"; with the axes {axes} of '{speed.name}' as x, y, z it is (misfit {100 * misfit:.0f} %)"
        yield Finding(
            "care", "physics", where,
            got=f"an angular velocity that is not the orientation's change (misfit {100 * declared.misfit:.0f} %)"
            + (so if mounted else ""),
            expected=f"at most {100 * _EXPLAINED:.0f} %",
            next_step="If the sensor is mounted so, its site in the MJCF must say it, and nothing else is needed; "
            "else put `columns` or `sign` right in the mapping and store the session again."
            if mounted
            else "Do not start simulations from this velocity; check which frame and filter it came from.",
        )  # fmt: skip
