"""From an opened recording to a mapping: guesses with their reasons; what cannot be guessed is a question.

A guess is made by names and by what the format fixes, and checked by physics where that is cheap (`evidence`).
"""

from __future__ import annotations

from collections.abc import Mapping as Map
from dataclasses import dataclass
from typing import Any

import numpy as np

from rsr.sessions import Channel
from rsr.sessions.importers import Recording, Stream, listed, printable
from rsr.sessions.ingest import evidence
from rsr.sessions.ingest.delays import late_velocities, position_of, values_of
from rsr.sessions.ingest.mapping import Question, Target
from rsr.sessions.ingest.naming import matches, quantity
from rsr.sessions.ingest.times import guess_time, row_times_s
from rsr.sessions.ingest.units import convertible, factor, unit_in_name

_EPISODE_COLUMNS = ("episode", "episode_index", "episode_id", "trial", "trial_id", "demo", "toss_id", "run_id")
_GAP_STEPS = 5.0
"""A gap is this many usual steps wide: below, rows may be delayed; above, some are missing."""


@dataclass(frozen=True)
class Proposal:
    """A mapping as plain values, what was said while making it, and what has to be asked."""

    document: dict[str, Any]
    said: tuple[str, ...]
    questions: tuple[Question, ...]


def propose(recording: Recording, target: Target, given: Map[str, Any]) -> Proposal:
    """Complete a mapping.

    Args:
        given: lines that are settled, such as a mapping file holds them; never overruled.
    """
    guess = _Guess(recording, target, given)
    guess.channels()
    guess.time()
    guess.episodes()
    guess.tags()
    guess.units()
    late = late_velocities(recording, target, guess.document)
    return Proposal(guess.document, tuple(guess.said), (*guess.questions, *late))


class _Guess:
    """A mapping in the making: each method fills one part of `document`."""

    def __init__(self, recording: Recording, target: Target, given: Map[str, Any]) -> None:
        self.recording, self.target = recording, target
        channels = given.get("channels") or {}
        self.given = {name: dict(entry or {}) for name, entry in channels.items()} if isinstance(channels, dict) else {}
        self.document: dict[str, Any] = {"format": recording.format, "scenario": target.scenario}
        self.document |= {key: value for key, value in given.items() if key != "channels"}
        self.document["channels"] = {}
        self.said: list[str] = []
        self.questions: list[Question] = []

    def channels(self) -> None:
        """Find the columns of every channel."""
        for channel in self.target.channels:
            entry = self.given.get(channel.name, {})
            if not {"from", "constant", "leave_out"} & set(entry):
                entry = self._columns(channel) | entry
            self.document["channels"][channel.name] = entry
        for name in set(self.given) - {channel.name for channel in self.target.channels}:
            self.document["channels"][name] = self.given[name]  # refused later, by its name
        self._shared()

    def _columns(self, channel: Channel) -> dict[str, Any]:
        found = matches(channel, self.recording.streams, self.target.channels)
        place = ("channels", channel.name)
        if not found:
            return self._not_found(channel, place)
        best = found[0]
        entry = {"from": best.stream, "columns": list(best.columns)}
        if best.sure:
            self.said.append(f"{channel.name}: {printable(best.stream)} {listed(best.columns)} (by name)")
        else:
            wanted = f"Channel '{channel.name}' ({', '.join(channel.columns)})"
            text = f"{wanted}: are these its columns, in this order? {best.why}."
            self.questions.append(Question((*place, "from"), best.stream, text))
            self.questions.append(Question((*place, "columns"), list(best.columns), text))
        return entry

    def _not_found(self, channel: Channel, place: tuple[str, str]) -> dict[str, Any]:
        """Ask for the columns; the gap channel cannot be left out."""
        needed = channel.name == self.target.gap_channel
        choice = (
            "; it cannot be left out, because calibrations are judged by it (gap_channel of the scenario)"
            if needed
            else ", give a constant (constant: [...]), or leave it out, and out of the scenario's file as well: "
            "rsr check and rsr calibrate refuse a session that lacks one of its channels"
        )
        text = (
            f"Nothing in the recording is called like channel '{channel.name}' ({', '.join(channel.columns)}; "
            f"{channel.unit}). Name its columns (from: ..., columns: [...]){choice}. There is: {self._columns_there()}"
        )
        if not needed:
            self.questions.append(Question((*place, "leave_out"), True, text))
            return {"leave_out": True}
        # No column's name: whoever leaves it as it is gets an error that lists the names there are.
        source = max(self.recording.streams, key=lambda stream: len(stream.columns)).name
        columns = [f"column of {column}" for column in channel.columns]
        self.questions.append(Question((*place, "from"), source, text))
        self.questions.append(Question((*place, "columns"), columns, text))
        return {"from": source, "columns": columns}

    def _shared(self) -> None:
        """Ask where two channels were given the same columns by names."""
        owners: dict[tuple[str, ...], str] = {}
        for name, entry in self.document["channels"].items():
            key = (entry.get("from", ""), *entry.get("columns", ()))
            other = owners.setdefault(key, name)
            if other != name and entry.get("from") and "columns" not in self.given.get(name, {}):
                text = (
                    f"Channel '{name}' has the same columns as '{other}'. Is that so? Else name others or leave it out."
                )
                self.questions.append(Question(("channels", name, "from"), entry["from"], text))
                self.questions.append(Question(("channels", name, "columns"), entry["columns"], text))

    def _columns_there(self) -> str:
        if len(self.recording.streams) == 1:
            blank = self.recording.streams[0].blank
            empty = f"; without a number in its first rows: {listed(blank, 40)}" if blank else ""
            return listed(self.recording.streams[0].columns, 40) + empty
        return listed((f"{stream.name} ({listed(stream.columns, 8)})" for stream in self.recording.streams), 30)

    def time(self) -> None:
        """Find the stamps, and how wide a gap is."""
        if "time" not in self.document:
            used = [self.recording.stream(entry["from"]) for entry in self._entries().values()]
            guess = guess_time(self.recording, used, self.target.control_dt_s)
            self.document["time"] = guess.lines
            if guess.question:
                key, suggestion = (
                    next(iter(guess.lines.items())) if not guess.ask else (guess.ask, guess.lines[guess.ask])
                )
                self.questions.append(Question(("time", key), suggestion, guess.question))
                if guess.ask and "column" in guess.lines:
                    self.questions.append(Question(("time", "column"), guess.lines["column"], guess.question))
            else:
                self.said.append(f"time: {guess.why}")
        if "longest_gap_s" not in self.document:
            self.document["longest_gap_s"] = self._longest_gap_s()

    def _longest_gap_s(self) -> float:
        steps = [2.0 * self.target.control_dt_s]
        for entry in self._entries().values():
            values = self._values(entry)  # blank where other devices' rows stand between this one's
            read = np.isfinite(values).any(axis=1) | np.isnan(values).all()
            time_s = self._times_s(self.recording.stream(entry["from"]))[read]
            forward = np.diff(time_s)[np.diff(time_s) > 0]
            if forward.size:
                steps.append(_GAP_STEPS * float(np.median(forward)))
        return float(f"{max(steps):.3g}")

    def episodes(self) -> None:
        """Find a column that numbers the episodes."""
        if "episodes" in self.document or len(self.recording.streams) != 1:
            return
        stream = self.recording.streams[0]
        for column in stream.columns:
            if column.strip().lower() in _EPISODE_COLUMNS:
                self.document["episodes"] = {"column": column}
                self.said.append(f"episodes: one for each value of column {printable(column)}")
                return

    def tags(self) -> None:
        """Keep the columns that have one value an episode, such as a gain or a payload, as words about it."""
        if len(self.recording.streams) != 1 or "tags" in (self.document.get("episodes") or {}):
            return
        stream, divided = self.recording.streams[0], self.document.get("episodes", {}).get("column")
        used = {divided, self.document.get("time", {}).get("column")}
        used |= {str(column) for entry in self._entries().values() for column in entry["columns"]}
        free = [column for column in stream.columns if column not in used]
        numbers = self._values({"from": stream.name, "columns": [divided]})[:, 0] if divided else None
        # Of a single episode any constant column would pass; what the scenario asks for is kept in any case.
        several = divided is not None or len(self.recording.parts) > 1
        kept = [
            column
            for column in free
            if column in self.target.tags
            or (
                several
                and evidence.one_an_episode(self._values({"from": stream.name, "columns": [column]})[:, 0], numbers)
            )
        ]
        if kept:
            self.document["episodes"] = {**self.document.get("episodes", {}), "tags": kept}
            self.said.append(f"tags of each episode: {listed(kept)} (one value an episode)")

    def units(self) -> None:
        """Find the unit of every channel, and the order of quaternions."""
        for channel in self.target.channels:
            entry = self.document["channels"][channel.name]
            if "from" not in entry:
                continue
            if channel.is_quaternion:
                self._quaternion(channel, entry)
            elif "calibration" in entry:
                entry["unit"] = "rad"
            elif "unit" not in entry and channel.unit != "1":
                entry["unit"] = self._unit(channel, entry)

    def _unit(self, channel: Channel, entry: Map[str, Any]) -> str:
        stream = self.recording.stream(entry["from"])
        if not set(entry["columns"]) <= set(stream.columns):  # they are asked for themselves
            return channel.unit
        named = {stream.units.get(column) or unit_in_name(column) for column in entry["columns"]} | {
            unit_in_name(stream.name)
        }
        named = {unit for unit in named if unit is not None and convertible(unit, channel.unit)}
        if len(named) == 1:
            unit = named.pop()
            self.said.append(
                f"{channel.name}: in {unit}" + ("" if unit == channel.unit else f", converted to {channel.unit}")
            )
            self._doubt(channel, entry, unit)
            return unit
        unit, why = evidence.unit_by_limits(channel, self._values(entry), self._limits(channel, entry))
        if why is None and quantity(channel) == "velocity":
            unit, why = self._unit_by_motion(channel, entry)
        if why is None and quantity(channel) in ("torque", "force"):
            unit, why = channel.unit, "assumed: forces and torques are logged in SI"
        if why is not None:
            self.said.append(f"{channel.name}: in {unit} ({why})")
        else:
            columns = ("" if stream.named else f"{printable(stream.name)} ") + listed(entry["columns"])
            values = self._values(entry)
            seen = f"{np.nanmin(values):.3g} to {np.nanmax(values):.3g}" if np.isfinite(values).any() else "nothing"
            text = f"Channel '{channel.name}': in which unit are {columns}? Names do not tell; they read {seen}."
            self.questions.append(Question(("channels", channel.name, "unit"), unit, text))
        return unit

    def _doubt(self, channel: Channel, entry: Map[str, Any], unit: str) -> None:
        """Say where the numbers contradict the unit that a name states."""
        limits = self._limits(channel, entry)
        values = self._values(entry) * factor(unit, channel.unit, channel.name)
        outside = evidence.beyond(values, limits)
        if outside is not None:
            text = f"Channel '{channel.name}' says it is in {unit}, but then {outside}. Which unit, or which columns?"
            self.questions.append(Question(("channels", channel.name, "unit"), unit, text))

    def _limits(self, channel: Channel, entry: Map[str, Any]) -> np.ndarray | None:
        """What the recorded columns can be at all [W, 2]."""
        limits = self.target.limits.get(channel.name)
        recorded = [column not in entry.get("unrecorded", {}) for column in channel.columns]
        return limits if limits is None or all(recorded) else limits[recorded]

    def _unit_by_motion(self, channel: Channel, entry: Map[str, Any]) -> tuple[str, str | None]:
        """The unit in which a velocity agrees with the position of the same columns."""
        position = position_of(self.target, self.document, channel)
        if position is None or position[1].get("from") != entry["from"]:
            return channel.unit, None
        if len(position[1]["columns"]) != len(entry["columns"]):
            return channel.unit, None
        named = position[1].get("unit", position[0].unit)
        time_s = self._times_s(self.recording.stream(entry["from"]))
        scaled = self._values(position[1]) * factor(named, position[0].unit, position[0].name)
        return evidence.unit_by_motion(channel.unit, time_s, scaled, self._values(entry))

    def _quaternion(self, channel: Channel, entry: dict[str, Any]) -> None:
        """The order stands in the columns' names or in the format; else it is a question, unless motion shows it."""
        if "quaternion" in entry:
            return
        stream = self.recording.stream(entry["from"])
        order, why = evidence.order_in_names(entry["columns"]), "by name"
        if order is None:
            order, why = self.recording.quaternion, f"{self.recording.format} files have it so"
        if order is None:
            order, why = evidence.quaternion_order(self._times_s(stream), self._values(entry), self._turning())
        hint = "" if why is not None else evidence.near_reference(self._values(entry))
        order = "xyzw" if hint.startswith("the last") else order
        entry["quaternion"] = order
        if why is not None:
            self.said.append(f"{channel.name}: quaternions are {order} ({why})")
        else:
            text = (
                f"Channel '{channel.name}': in which order are the quaternions in {listed(entry['columns'])}, wxyz or "
                f"xyzw? Nothing says it{f'; {hint}' if hint else ''}."
            )
            self.questions.append(Question(("channels", channel.name, "quaternion"), order, text))

    def _turning(self) -> np.ndarray | None:
        """The first rows of a channel of angular velocities of a body, if there is one."""
        for channel in self.target.channels:
            entry = self.document["channels"][channel.name]
            if (channel.unit, channel.width) == ("rad/s", 3) and channel.frame != "joint" and "from" in entry:
                return self._values(entry)
        return None

    def _entries(self) -> dict[str, dict[str, Any]]:
        return {name: entry for name, entry in self.document["channels"].items() if "from" in entry}

    def _values(self, entry: Map[str, Any]) -> np.ndarray:
        return values_of(self.recording, entry)

    def _times_s(self, stream: Stream) -> np.ndarray:
        return row_times_s(self.recording, stream, self.document.get("time", {}), self.target.control_dt_s)
