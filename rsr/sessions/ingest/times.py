"""Where a recording's stamps are and what unit they are in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rsr.sessions.importers import Recording, Stream, listed, printable
from rsr.sessions.ingest.units import factor, unit_in_name

_NAMES = (
    "time", "t", "timestamp", "stamp", "clock", "time_stamp", "elapsed", "epoch", "sec", "secs", "seconds", "timestep",
)  # fmt: skip
_PER_S = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_EPOCH_S = 1e9
"""Seconds since 1970 passed this in 2001."""
_SLOWEST_S, _FASTEST_S = 0.5, 5e-5
"""Steps that a robot's log may have: 2 Hz to 20 kHz."""


@dataclass(frozen=True)
class TimeGuess:
    """Lines for `time:`; with a question where they are not sure, and the key that is asked for."""

    lines: dict[str, Any]
    why: str = ""
    question: str = ""
    ask: str = ""


def guess_time(recording: Recording, used: Sequence[Stream], control_dt_s: float) -> TimeGuess:
    """Find the stamps: the format's own, a column called like time, or an even rate."""
    clocks = [stream.clocks for stream in used or recording.streams]
    if clocks and all(clocks):
        clock = "header" if all("header" in names for names in clocks) else clocks[0][0]
        return TimeGuess({"stamps": clock}, f"the stamps of the format ({clock})")
    if recording.rate_hz is not None:
        return TimeGuess({"rate_hz": recording.rate_hz}, f"{recording.rate_hz:g} rows a second, as the file says")
    column = _time_column(recording)
    if column is None:
        rate_hz = float(f"{1 / control_dt_s:.10g}")
        columns = listed(recording.streams[0].columns, 40)
        text = (
            f"No column is called like time in {columns}. "
            "How many rows a second are there (rate_hz), or which column holds the time?"
        )
        return TimeGuess({"rate_hz": rate_hz}, question=text, ask="rate_hz")
    name, values = column
    declared = next((stream.units[name] for stream in recording.streams if name in stream.units), None)
    unit, certain = (declared, True) if declared in _PER_S else _unit(name, values)
    if certain:
        return TimeGuess({"column": name, "unit": unit}, f"column {printable(name)}, in {unit}")
    text = f"Column '{printable(name)}' holds the time in steps of {_step(values):g}: of which unit?"
    return TimeGuess({"column": name, "unit": unit}, question=text, ask="unit")


def row_times_s(recording: Recording, stream: Stream, lines: Mapping[str, Any], control_dt_s: float) -> np.ndarray:
    """Times of the first rows of a stream under a mapping's `time:` lines; NaN where they do not fit."""
    head = stream.head
    if lines.get("column") is not None:
        values = _column(recording, stream, str(lines["column"]))
        unit = str(lines.get("unit", "s"))
        return (
            np.full(len(head), np.nan) if values is None or unit not in _PER_S else values * factor(unit, "s", "time")
        )
    rate_hz = lines.get("rate_hz")
    if isinstance(rate_hz, (int, float)) and rate_hz > 0:
        return np.arange(len(head)) / rate_hz
    return head.time_s if stream.clocks else np.arange(len(head)) * control_dt_s


def _column(recording: Recording, stream: Stream, name: str) -> np.ndarray | None:
    if name in stream.columns:
        return stream.head.values[:, stream.columns.index(name)]
    for other in recording.streams:  # an array of its own, as in npz and HDF5
        if other.name == name and len(other.columns) == 1 and len(other.head) == len(stream.head):
            return other.head.values[:, 0]
    return None


def _time_column(recording: Recording) -> tuple[str, np.ndarray] | None:
    """The first column that the file declares to be stamps, or else that or the array that is called like time."""
    for stream in recording.streams:
        for index, column in enumerate(stream.columns):
            if stream.named and stream.units.get(column) in _PER_S:
                return column, stream.head.values[:, index]
    for stream in recording.streams:
        if len(stream.columns) == 1 and not stream.named and _is_time(stream.name):
            return stream.name, stream.head.values[:, 0]
        for index, column in enumerate(stream.columns):
            if stream.named and _is_time(column):
                return column, stream.head.values[:, index]
    return None


def _is_time(name: str) -> bool:
    words = name.replace("/", "_").lower().strip()
    unit = unit_in_name(words)
    first = words.split("[")[0].split("(")[0].strip(" _.")
    return first in _NAMES or (unit in _PER_S and any(first.startswith(f"{name}_") for name in _NAMES))


def _unit(name: str, values: np.ndarray) -> tuple[str, bool]:
    """The unit of stamps: by the name, by the size of an epoch, or because only one gives a rate that robots have."""
    unit = unit_in_name(name.lower())
    if unit in _PER_S:
        return unit, True
    start, step = float(np.nanmedian(values)) if values.size else 0.0, _step(values)
    epochs = [unit for unit, size in _PER_S.items() if _EPOCH_S < start * size < 5 * _EPOCH_S]
    if epochs:
        return epochs[0], True
    fitting = [unit for unit, size in _PER_S.items() if _FASTEST_S <= step * size <= _SLOWEST_S]
    return (fitting or ["s"])[0], len(fitting) == 1


def _step(values: np.ndarray) -> float:
    steps = np.diff(values[np.isfinite(values)])
    forward = steps[steps > 0]
    return float(np.median(forward)) if forward.size else 0.0
