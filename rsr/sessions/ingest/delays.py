"""Velocities that are stamped later than the positions whose change they are: each such channel is asked about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping as Map
from typing import Any

import numpy as np

from rsr.common import unwrapped
from rsr.sessions import Channel
from rsr.sessions.importers import Recording
from rsr.sessions.ingest import evidence
from rsr.sessions.ingest.mapping import Question, Target
from rsr.sessions.ingest.naming import quantity
from rsr.sessions.ingest.times import row_times_s
from rsr.sessions.ingest.units import factor


def late_velocities(recording: Recording, target: Target, document: Map[str, Any]) -> Iterator[Question]:
    """Ask about velocities and positions that do not show the same motion at the same time.

    Args:
        document: the mapping so far.
    """
    for channel in target.channels:
        entry = document["channels"][channel.name]
        position = _reference_of(target, document, channel) if quantity(channel) == "velocity" else None
        if position is None or "from" not in entry or "delay_s" in entry or "delay_s" in position[1]:
            continue
        signals = [_signal(recording, target, document, each) for each in (position[1], entry)]
        if position[0].name in target.turning:
            unit = factor(position[1].get("unit", position[0].unit), position[0].unit, position[0].name)
            signals[0] = signals[0][0], unwrapped(unit * signals[0][1])  # across a jump there is no velocity
        late = _offset(position, channel, signals)
        if late is None or abs(late.offset_s) < max(0.2 * target.control_dt_s, 3 * late.error_s):
            continue
        name, other = (channel.name, position[0].name) if late.offset_s > 0 else (position[0].name, channel.name)
        between = f"95 % between {1e3 * late.lower_s:.1f} and {1e3 * late.upper_s:.1f} ms"
        text = (
            f"'{name}' is stamped {1e3 * abs(late.offset_s):.1f} ms later than '{other}' shows the same motion "
            f"({between}). If its clock or filter is late, delay_s takes that off; if '{other}' is early, "
            "give that one a negative delay_s; 0 leaves it."
        )
        yield Question(("channels", name, "delay_s"), round(abs(late.offset_s), 5), text)


def position_of(target: Target, document: Map[str, Any], channel: Channel) -> tuple[Channel, dict[str, Any]] | None:
    """Find the channel of positions that a channel of velocities is the change of, with its part of the mapping."""
    for other in target.channels:
        entry = document["channels"][other.name]
        if other.name == target.rates_of.get(channel.name) and not other.is_quaternion and "from" in entry:
            return other, entry
        spelt = other.columns, tuple(f"v{column}" for column in other.columns)
        same = channel.columns in spelt and other.frame == channel.frame and other.stamp == "at_sample"
        if same and quantity(other) == "position" and other.unit + "/s" == channel.unit and "from" in entry:
            return other, entry
    return None


def values_of(recording: Recording, entry: Map[str, Any]) -> np.ndarray:
    """The first rows of a mapped channel's columns [N, W]."""
    stream = recording.stream(entry["from"])
    places = [stream.columns.index(str(column)) for column in entry["columns"] if str(column) in stream.columns]
    return stream.head.values[:, places]


def _reference_of(target: Target, document: Map[str, Any], channel: Channel) -> tuple[Channel, dict[str, Any]] | None:
    """Find the channel of positions or orientations that a channel of velocities is compared with."""
    for other in target.channels:
        entry = document["channels"][other.name]
        if other.is_quaternion and other.name == target.rates_of.get(channel.name) and "from" in entry:
            return other, entry
    return position_of(target, document, channel)


def _signal(
    recording: Recording, target: Target, document: Map[str, Any], entry: Map[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    stream = recording.stream(entry["from"])
    time_s = row_times_s(recording, stream, document.get("time", {}), target.control_dt_s)
    return time_s, values_of(recording, entry)


def _offset(
    position: tuple[Channel, dict[str, Any]], channel: Channel, signals: list[tuple[np.ndarray, np.ndarray]]
) -> evidence.ClockOffset | None:
    (time_s, values), speed = signals
    if not position[0].is_quaternion:
        return evidence.velocity_delay((time_s, values), speed)
    if values.shape[1] != position[0].width:
        return None
    wxyz = values[:, [3, 0, 1, 2]] if position[1].get("quaternion") == "xyzw" else values
    return evidence.turning_delay((time_s, wxyz), speed, "body" if channel.frame == "body" else "world")
