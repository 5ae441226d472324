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


def turning_speed(time_s: np.ndarray, quaternion: np.ndarray, frame: Frame) -> np.ndarray:
    """Angular velocity [T - 1, 3] between rows of quaternions wxyz [T, 4], in the body's or the world's frame."""
    unit = quaternion / np.linalg.norm(quaternion, axis=1, keepdims=True)
    first, second = unit[:-1], unit[1:]
    turn = product(conjugate(first), second) if frame == "body" else product(second, conjugate(first))
    return rotation_vector(turn) / np.diff(time_s)[:, None]


def turning_signal(time_s: np.ndarray, quaternion: np.ndarray, frame: Frame) -> Signal:
    """Angular velocity that orientations wxyz [T, 4] show, each stamped in the middle between its two rows."""
    forward = np.flatnonzero(np.isfinite(quaternion).all(axis=1) & forward_only(time_s))
    time_s, quaternion = time_s[forward], quaternion[forward]
    return Signal((time_s[1:] + time_s[:-1]) / 2, turning_speed(time_s, quaternion, frame))


def rank_conventions(
    episodes: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]],
) -> list[Convention]:
    """Try every convention on (times [T], quaternions [T, 4] as stored, angular velocities [T, 3]); best first.

    Empty where nothing turns. A velocity may be a mean over the step before or after its row, so the mean of both rows'
    is compared.
    """
    usable = [each for each in episodes if len(each[0]) >= _LEAST_ROWS and _sound(*each)]
    ranked = []
    for order, frame, unit in itertools.product(("wxyz", "xyzw"), ("body", "world"), ("rad/s", "deg/s")):
        errors, speeds = [], []
        for time_s, stored, recorded in usable:
            quaternion = stored if order == "wxyz" else stored[:, [3, 0, 1, 2]]
            middle = (recorded[1:] + recorded[:-1]) / 2 / (_DEGREES if unit == "deg/s" else 1.0)
            derived = turning_speed(time_s, quaternion, frame)
            errors.append(np.linalg.norm(derived - middle, axis=1))
            speeds.append(np.linalg.norm(derived, axis=1))
        if not errors or np.median(np.concatenate(speeds)) < _LEAST_SPEED_RAD_S:
            return []
        ranked.append(
            Convention(order, frame, unit, float(np.median(np.concatenate(errors)) / np.median(np.concatenate(speeds))))
        )
    # About a fixed axis both frames fit to rounding errors: then the usual one comes first, on every machine.
    return sorted(ranked, key=lambda each: round(each.misfit, 6))


def judge_rotation(session: Session) -> Iterator[Finding]:
    """Compare orientations with the angular velocities recorded beside them."""
    speeds = [each for each in session.channels if each.unit == "rad/s" and each.width == 3 and each.frame != "joint"]
    for quaternion in (each for each in session.channels if each.is_quaternion):
        for speed in speeds:
            ranked = rank_conventions(
                (episode.time_s, episode[quaternion.name], episode[speed.name]) for episode in session.episodes
            )
            yield from _judge(session, quaternion, speed, ranked)


def _sound(time_s: np.ndarray, quaternion: np.ndarray, recorded: np.ndarray) -> bool:
    norms = np.linalg.norm(quaternion, axis=1)
    return bool(
        np.isfinite(recorded).all() and np.isfinite(norms).all() and (norms > 0).all() and (np.diff(time_s) > 0).all()
    )


def _judge(session: Session, quaternion: Channel, speed: Channel, ranked: list[Convention]) -> Iterator[Finding]:
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
        yield Finding(
            "care", "physics", where,
            got=f"an angular velocity that is not the orientation's change (misfit {100 * declared.misfit:.0f} %)",
            expected=f"at most {100 * _EXPLAINED:.0f} %",
            next_step="Do not start simulations from this velocity; check which frame and filter it came from.",
        )  # fmt: skip
