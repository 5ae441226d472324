"""Positions against velocities: one is the other's change, in the same unit and at the same time. Is it?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rsr.common import SessionError
from rsr.sessions import Channel, Episode, Session
from rsr.sessions.checks.findings import Finding
from rsr.sessions.checks.rotation import turning_signal
from rsr.sessions.clocks import ClockEstimate, Relation, Signal, estimate_clock

_CHANGE = {"m": "m/s", "rad": "rad/s"}
_FACTORS = {
    "rad/s": {180 / np.pi: "deg/s", np.pi / 180: "rad/s, and the position in degrees", 60 / (2 * np.pi): "rpm"},
    "m/s": {1e3: "mm/s", 1e2: "cm/s", 1e-3: "m/s, and the position in mm"},
}
_NEAR = 0.2
_RIGHT = 0.1
"""Gains within a tenth of 1 are right: noise and filters take a few percent."""
_SAME_JOINT = 0.8
"""Correlation of a position's change with the velocity of the same joint, in spite of noise."""
_LATE_STEPS = 0.1
"""Lags below this share of a control step are as good as none (see `rsr.sessions.checks.problems.GRID_TOLERANCE`)."""
_LONGEST_S = {"derivative": 0.3, "same": 1.0}
"""Offsets beyond these are not looked for: of velocities, and of responses to commands, which drives delay."""
_MOST_ROWS = 20_000
"""Rows are plentiful; this many say all that is to be said about a clock."""


@dataclass(frozen=True)
class MotionClock:
    """One channel's clock against another's that saw the same motion: `clock.offset_s` is the delay of `other`.

    Args:
        relation: what the other is of the reference; a velocity is its position's derivative.
    """

    reference: Channel
    other: Channel
    relation: Relation
    clock: ClockEstimate


def find_motion_clocks(session: Session) -> list[MotionClock]:
    """Pair every velocity with the position whose change it is, and compare their clocks."""
    found = []
    for velocity in session.channels:
        if velocity.unit not in _CHANGE.values() or velocity.frame == "body":
            continue
        tried = [
            MotionClock(position, velocity, "derivative", clock)
            for position in session.channels
            if _fits(position, velocity)
            and (clock := _clock(session, position.name, velocity.name, "derivative")) is not None
        ]
        found += sorted(tried, key=lambda each: -each.clock.correlation)[:1]
    return found + _turning_clocks(session)


def _turning_clocks(session: Session) -> list[MotionClock]:
    """Compare the clock of every angular velocity of a body with that of the orientation whose change it is."""
    return [
        MotionClock(quaternion, speed, "derivative", clock)
        for speed in session.channels
        for quaternion in session.channels
        if quaternion.is_quaternion
        and (speed.unit, speed.width) == ("rad/s", 3)
        and speed.frame in ("body", "world")
        and speed.stamp == quaternion.stamp == "at_sample"
        and (clock := _turning_clock(session, quaternion.name, speed)) is not None
        and clock.status == "found"
    ]


def _turning_clock(session: Session, quaternion: str, speed: Channel) -> ClockEstimate | None:
    frame = "body" if speed.frame == "body" else "world"
    return _estimated(
        [turning_signal(each.time_s, each[quaternion], frame) for each in _enough(session)],
        [Signal(each.time_s, each[speed.name]) for each in _enough(session)],
        "same",
        _LONGEST_S["derivative"],
    )


def find_responses(session: Session) -> list[MotionClock]:
    """Say how long after its command each measured channel moves. That is the drive's delay, not a clock's fault."""
    return [
        MotionClock(command, measured, "same", clock)
        for command in session.channels
        for measured in session.channels
        if command.stamp == "held_until_next"
        and measured.stamp == "at_sample"
        and (command.columns, command.unit, command.frame) == (measured.columns, measured.unit, measured.frame)
        and (clock := _clock(session, command.name, measured.name, "same")) is not None
        and clock.status == "found"
    ]


def judge_motion(session: Session, clocks: list[MotionClock]) -> Iterator[Finding]:
    """Find velocities in another unit, of another sign, or delayed."""
    for each in clocks:
        where = f"session '{session.card.session}', channels '{each.reference.name}' and '{each.other.name}'"
        if each.clock.status == "no common motion":
            if each.reference.frame == "joint":
                yield _reordered(session, where, each) or _unrelated(where, each.clock)
            continue
        wrong = None if each.reference.is_quaternion else _unit(where, each)  # `judge_rotation` knows the conventions
        if wrong is not None:
            yield wrong
        if each.clock.status == "found":
            yield from _lag(where, each, session.card.control_dt_s)


def _fits(position: Channel, velocity: Channel) -> bool:
    return (
        _CHANGE.get(position.unit) == velocity.unit
        and position.width == velocity.width
        and position.frame == velocity.frame
        and position.stamp == velocity.stamp == "at_sample"
    )


def _clock(session: Session, reference: str, other: str, relation: Relation) -> ClockEstimate | None:
    episodes = _enough(session)
    return _estimated(
        [Signal(episode.time_s, episode[reference]) for episode in episodes],
        [Signal(episode.time_s, episode[other]) for episode in episodes],
        relation,
        _LONGEST_S[relation],
    )


def _enough(session: Session) -> list[Episode]:
    """The first episodes, as many as say all that is to be said about a clock."""
    before = np.cumsum([0, *(len(episode) for episode in session.episodes)])[:-1]
    return [episode for episode, rows in zip(session.episodes, before, strict=True) if rows < _MOST_ROWS]


def _estimated(
    reference: list[Signal], other: list[Signal], relation: Relation, longest_s: float
) -> ClockEstimate | None:
    try:
        return estimate_clock(reference, other, relation=relation, drift=False, max_offset_s=longest_s)
    except SessionError:  # too short to compare
        return None


def _reordered(session: Session, where: str, each: MotionClock) -> Finding | None:
    """Look for an order of the joints in which one channel is the other's change after all."""
    changes, velocities = [], []
    for episode in session.episodes:
        velocity = episode[each.other.name]
        changes.append(np.diff(episode[each.reference.name], axis=0) / np.diff(episode.time_s)[:, None])
        velocities.append((velocity[1:] + velocity[:-1]) / 2)
    width = each.other.width
    with np.errstate(invalid="ignore", divide="ignore"):
        both = np.corrcoef(np.concatenate(changes).T, np.concatenate(velocities).T)
    likeness = np.abs(np.nan_to_num(both[:width, width:]))
    order = likeness.argmax(axis=1)
    if len(set(order.tolist())) < width or likeness.max(axis=1).min() < _SAME_JOINT:
        return None
    names = ", ".join(each.other.columns[place] for place in order)
    return Finding(
        "reject", "physics", where,
        got=f"velocities in another order: {', '.join(each.reference.columns)} change as {names} say",
        expected="one order of the joints in both",
        next_step="Reorder the columns of one of them as the robot's own description has them, and store it again.",
    )  # fmt: skip


def _unrelated(where: str, clock: ClockEstimate) -> Finding:
    return Finding(
        "care", "physics", where,
        got=f"a velocity that does not follow the position (correlation {clock.correlation:.2f})",
        expected="the position's change",
        next_step="Check that both list the joints in one order, or record a motion that exceeds the noise.",
    )  # fmt: skip


def _unit(where: str, each: MotionClock) -> Finding | None:
    gain = float(np.median(each.clock.gains))
    if abs(gain - 1.0) < _RIGHT:
        return None
    names = _FACTORS[each.other.unit]
    unit = next((name for factor, name in names.items() if abs(gain / factor - 1.0) < _NEAR), None)
    if unit is not None:
        next_step = f"The velocity seems to be in {unit}: convert and store the session again."
    elif abs(gain + 1.0) < _RIGHT:
        next_step = "The signs of the two are opposite: turn one of them round and store the session again."
    else:
        next_step = "Check the units, and which filter the velocity went through."
    return Finding(
        "reject" if unit is not None or gain < 0 else "care", "units", where,
        got=f"a velocity {gain:.3g} times the position's change", expected="1 times",
        next_step=next_step,
    )  # fmt: skip


def _lag(where: str, each: MotionClock, step_s: float) -> Iterator[Finding]:
    lower_s, upper_s = each.clock.offset_interval_s
    if lower_s <= 0.0 <= upper_s or abs(each.clock.offset_s) < _LATE_STEPS * step_s:
        return
    rows = each.clock.offset_s / step_s
    cause = "half a frame late, as backward differences are" if abs(rows - 0.5) < 0.1 else "late as stamped"
    place = f"behind its position: {cause}" if rows > 0 else "ahead of its position"
    yield Finding(
        "care", "clock", where,
        got=f"a velocity {1e3 * abs(each.clock.offset_s):.2f} ms ({abs(rows):.2f} rows; {1e3 * lower_s:.2f} to "
        f"{1e3 * upper_s:.2f} ms) {place}",
        expected="both at one time",
        next_step="Take velocities from the positions (`mode: recorded` in the scenario, its default), and state "
        "the delay: `delay_s` in the mapping, or a parameter with `sensor_delay`. One step of it biases a fitted "
        "damping.",
    )  # fmt: skip
