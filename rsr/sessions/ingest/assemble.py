"""From raw streams and a mapping to episodes on the scenario's grid. Nothing is invented: a gap divides an episode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rsr.common import SessionError, unwrapped
from rsr.sessions import Channel, Episode, stretches
from rsr.sessions.checks import refuse_wraps
from rsr.sessions.clocks import Kind, forward_only, resample
from rsr.sessions.importers import MAX_VALUES, Recording, listed, printable
from rsr.sessions.ingest.lerobot_units import in_radians
from rsr.sessions.ingest.mapping import ChannelMap, Mapping as ChannelMapping, Target
from rsr.sessions.ingest.trials import RecordedTrial, read_trials
from rsr.sessions.ingest.units import factor

_SHORTEST_STEPS = 10
_UNUSABLE_SHARE = 0.5
"""A channel of which more than this share cannot be used is not what the mapping says it is."""
_EDGE = 1e-3
"""Share of a control step that stamps may miss the grid by and still be on it: seconds since 1970, or as float32, are
rounded, and a command that was sent on a grid point must not act one step later for it."""

Interval = tuple[float, float]


def _grid_s(piece: Interval, control_dt_s: float) -> np.ndarray:
    """The control grid in a piece, in the recording's time."""
    steps = int((piece[1] - piece[0]) / control_dt_s + _EDGE)
    return np.minimum(piece[0] + np.arange(steps + 1) * control_dt_s, piece[1])


@dataclass(frozen=True)
class _Signal:
    """One channel of one trial, in the scenario's units.

    Args:
        stamps_s: [N], increasing.
        values: [N, W], finite.
        unread, late: rows that were left out because they hold no finite number, or are stamped too early.
        blank: those of the unread with no number at all, as where devices of other rates share a table.
    """

    channel: Channel
    stamps_s: np.ndarray
    values: np.ndarray
    gap_s: float
    unread: int
    late: int
    blank: int

    @property
    def kind(self) -> Kind:
        if self.channel.is_quaternion:
            return "quaternion"
        return "hold" if self.channel.stamp == "held_until_next" else "linear"


def assemble(
    recording: Recording, mapping: ChannelMapping, target: Target, first: int = 0
) -> tuple[tuple[Episode, ...], tuple[str, ...]]:
    """Read a recording and put it on the control grid.

    Args:
        first: the index of the first episode.

    Returns:
        Episodes, and what had to be left out, in words.

    Raises:
        SessionError: a channel is not what the mapping says, or there is no time at which all were recorded.
    """
    notes: Counter[str] = Counter()
    episodes: list[Episode] = []
    lost: list[SessionError] = []
    for part in recording.parts:
        try:
            found = _part(recording, part, mapping, target, notes)
        except SessionError as error:  # damage of one part leaves the others whole
            lost.append(error)
            continue
        episodes += [replace(episode, index=first + len(episodes) + number) for number, episode in enumerate(found)]
    if not episodes and lost:
        raise lost[0]
    if not episodes:
        raise _nothing(recording, mapping, _shortest_s(mapping, target.control_dt_s))
    left_out = [f"a part was left out: got {error.got}, expected {error.expected}, in {error.where}" for error in lost]
    return tuple(episodes), (*left_out, *(f"{count} {what}" for what, count in notes.items()))


def _part(
    recording: Recording,
    part: str,
    mapping: ChannelMapping,
    target: Target,
    notes: Counter[str],
) -> list[Episode]:
    """The episodes of one part, numbered from 0."""
    episodes: list[Episode] = []
    control_dt_s = target.control_dt_s
    kept = tuple(channel for channel in target.channels if not mapping.channels[channel.name].leave_out)
    shortest_s = _shortest_s(mapping, control_dt_s)
    for trial in read_trials(recording, part, mapping):
        pieces = _pieces(recording, trial, target, notes)
        long = [piece for piece in pieces if piece[1] - piece[0] >= shortest_s - _EDGE * control_dt_s]
        if len(long) < len(pieces):
            notes[f"pieces shorter than {shortest_s:g} s between gaps, left out"] += len(pieces) - len(long)
        grids_s = [_grid_s(piece, control_dt_s) for piece in long]
        words = _tags(trial, notes)
        values = {channel.name: _values(trial, channel, target, grids_s) for channel in kept}
        for number, (piece, grid_s) in enumerate(zip(long, grids_s, strict=True)):
            tags = {"part": trial.name, **words} | ({"from_s": f"{piece[0]:.3f}"} if len(pieces) > 1 else {})
            elapsed_s = np.arange(len(grid_s)) * control_dt_s
            chosen = {name: found[number] for name, found in values.items()}
            episodes.append(Episode(len(episodes), elapsed_s, chosen, tags))
    return episodes


def _tags(trial: RecordedTrial, notes: Counter[str]) -> dict[str, str]:
    """What the mapping's tag columns say of a trial."""
    found = {}
    for column in trial.mapping.episodes.tags:
        values = trial.tag(column)
        if len(values) == 1:
            found[column] = f"{values[0]:.9g}"
        else:
            notes[f"episodes in which column {printable(column)} has more than one value, so that it is no tag"] += 1
    return found


def _shortest_s(mapping: ChannelMapping, control_dt_s: float) -> float:
    return max(mapping.episodes.shortest_s, _SHORTEST_STEPS * control_dt_s)


def _signal(trial: RecordedTrial, channel: Channel, target: Target) -> _Signal:
    """One channel of a trial, without the rows that cannot be used; an angle that wraps is unwrapped or refused."""
    entry = trial.mapping.channels[channel.name]
    time_s, table = trial.table(entry.source or "")
    read = np.stack([table[column] for column in entry.columns], axis=1)
    values = convert(channel, entry, read)
    stamps_s = time_s - (entry.delay_s or 0.0)
    finite = np.isfinite(values).all(axis=1) & np.isfinite(stamps_s)
    forward = np.zeros(len(finite), bool)
    forward[finite] = forward_only(stamps_s[finite])
    gap_s = entry.longest_gap_s or trial.mapping.longest_gap_s
    unread, late = int((~finite).sum()), int((finite & ~forward).sum())
    rows, turning = values[forward], target.turning.get(channel.name)
    if turning is not None:  # before anything is interpolated between the rows on both sides of a jump
        refuse_wraps(rows, turning, channel, f"{printable(trial.name)} of the recording")
        rows = np.where(turning, unwrapped(rows), rows)
    return _Signal(channel, stamps_s[forward], rows, gap_s, unread, late, int(np.isnan(read).all(axis=1).sum()))


def _count(recording: Recording, signal: _Signal, notes: Counter[str]) -> None:
    """Note what is left out of a channel, and refuse where that is most of it."""
    name, total = signal.channel.name, len(signal.stamps_s) + signal.unread + signal.late
    if signal.unread:
        notes[f"rows of {name} without a finite number, left out"] += signal.unread
    if signal.late:
        notes[f"rows of {name} stamped no later than the one before, left out"] += signal.late
    if signal.unread - signal.blank + signal.late > _UNUSABLE_SHARE * (total - signal.blank) or not len(signal.values):
        raise SessionError(
            got=f"{signal.unread} rows without a finite number and {signal.late} stamped no later than the one before, "
            f"of {total}",
            expected="rows of numbers with increasing stamps",
            where=f"{recording.path}, channel '{name}'",
            next_step="Correct the columns or the time in the mapping; if they are right, the file is damaged.",
        )


def _pieces(recording: Recording, trial: RecordedTrial, target: Target, notes: Counter[str]) -> list[Interval]:
    """The stretches of time in which every channel was recorded without a gap."""
    pieces: list[Interval] | None = None
    control_dt_s = target.control_dt_s
    channels = tuple(each for each in target.channels if trial.mapping.channels[each.name].source is not None)
    for channel in channels:
        signal = _signal(trial, channel, target)
        _count(recording, signal, notes)
        covered = list(_covered(signal))
        pieces = covered if pieces is None else _common(pieces, covered)
    pieces = [piece for piece in pieces or [] if piece[1] > piece[0]]
    width = sum(channel.width for channel in channels)
    rows = sum((end - start) / control_dt_s + 1 for start, end in pieces)
    if rows * width > MAX_VALUES:
        raise SessionError(
            got=f"{rows:.3g} rows of {width} columns at {control_dt_s:g} s",
            expected=f"at most {MAX_VALUES} numbers",
            where=str(recording.path),
            next_step="Check the unit of the time; if it is right, cut the recording into shorter ones.",
        )
    return pieces


def _covered(signal: _Signal) -> Iterator[Interval]:
    """Stretches without a gap; a command stays in force for as long as a gap may be."""
    if not len(signal.stamps_s):
        return
    after_s = signal.gap_s if signal.kind == "hold" else 0.0
    for rows in stretches(np.diff(signal.stamps_s) > signal.gap_s):
        yield float(signal.stamps_s[rows.start]), float(signal.stamps_s[rows.stop - 1]) + after_s


def _common(some: list[Interval], others: list[Interval]) -> list[Interval]:
    """Where both lists of ordered intervals overlap."""
    found, one, other = [], 0, 0
    while one < len(some) and other < len(others):
        start, end = max(some[one][0], others[other][0]), min(some[one][1], others[other][1])
        if end > start:
            found.append((start, end))
        if some[one][1] < others[other][1]:
            one += 1
        else:
            other += 1
    return found


def _values(trial: RecordedTrial, channel: Channel, target: Target, grids_s: list[np.ndarray]) -> list[np.ndarray]:
    """One channel on each episode's grid."""
    constant = trial.mapping.channels[channel.name].constant
    if constant is not None:
        return [np.tile(constant_row(channel, constant), (len(grid_s), 1)) for grid_s in grids_s]
    signal = _signal(trial, channel, target)
    early_s = _EDGE * (grids_s[0][1] - grids_s[0][0]) if grids_s and signal.kind == "hold" else 0.0
    found = [
        resample(signal.stamps_s - early_s, signal.values, grid_s, max_gap_s=signal.gap_s, kind=signal.kind).values
        for grid_s in grids_s
    ]
    for values in found if signal.kind == "hold" else ():
        values[-1] = values[-2]  # what the stamp convention says of the last row
    return found


def _nothing(recording: Recording, mapping: ChannelMapping, shortest_s: float) -> SessionError:
    return SessionError(
        got="no time at which every channel was recorded without a gap",
        expected=f"at least {shortest_s:g} s of it (longest_gap_s is {mapping.longest_gap_s:g})",
        where=str(recording.path),
        next_step="Check the unit of the time; give a channel that is sent rarely its own longest_gap_s, or leave it "
        "out.",
    )


# Numbers as a lab writes them, in a channel's unit, sign, zero and order.

_NORM_SLACK = 0.05
"""A quaternion's norm may be off by rounding and filters; further off it is none, and its row is left out."""


def convert(channel: Channel, entry: ChannelMap, values: np.ndarray) -> np.ndarray:
    """Numbers [N, W] of the recording in the channel's unit, sign, zero and order."""
    where = f"channel '{channel.name}'"
    recorded = _recorded(channel, entry, values.shape[1], where)
    if entry.frame is not None and entry.frame != channel.frame:
        raise SessionError(
            got=f"frame '{entry.frame}'",
            expected=f"'{channel.frame}', as in the scenario",
            where=where,
            next_step="Convert the recording first: a rotation between frames is not known here.",
        )
    for name, given in (("sign", entry.sign), ("offset", entry.offset)):
        if given is not None and len(given) != len(recorded):
            raise SessionError(
                got=f"{len(given)} numbers in `{name}:`",
                expected=f"{len(recorded)}, one a column",
                where=where,
                next_step="Correct the mapping.",
            )
    if entry.calibration is not None:
        values = in_radians(entry.calibration, entry.columns, values, where)
    scaled = values * factor(entry.unit or channel.unit, channel.unit, where)
    scaled = scaled * np.array(entry.sign or 1.0) + np.array(entry.offset or 0.0)
    if entry.unrecorded:
        whole = np.tile([entry.unrecorded.get(column, 0.0) for column in channel.columns], (len(scaled), 1))
        whole[:, recorded] = scaled
        scaled = whole
    return _unit_quaternions(channel, entry, scaled) if channel.is_quaternion else scaled


def _recorded(channel: Channel, entry: ChannelMap, width: int, where: str) -> list[int]:
    """Columns of the channel that the recording has."""
    if unknown := set(entry.unrecorded) - set(channel.columns):
        raise SessionError(
            got=f"'{min(unknown)}' in `unrecorded:`",
            expected=f"one of {', '.join(channel.columns)}",
            where=where,
            next_step="Correct the mapping.",
        )
    recorded = [index for index, column in enumerate(channel.columns) if column not in entry.unrecorded]
    if width != len(recorded):
        raise SessionError(
            got=f"{width} columns ({listed(entry.columns)})",
            expected=f"{len(recorded)} ({', '.join(channel.columns[index] for index in recorded)})",
            where=where,
            next_step="Correct `columns:` in the mapping; give them in the scenario's order. What was held and not "
            f"recorded, such as a gripper, stands beside them: `unrecorded: {{{channel.columns[-1]}: 0.0}}`.",
        )
    return recorded


def _unit_quaternions(channel: Channel, entry: ChannelMap, values: np.ndarray) -> np.ndarray:
    """Order as wxyz, norm 1; rows that are far from it become NaN."""
    ordered = values[:, [3, 0, 1, 2]] if entry.quaternion == "xyzw" else values
    norm = np.linalg.norm(ordered, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        good = np.abs(norm - 1.0) < _NORM_SLACK
        return np.where(good[:, None], ordered / norm[:, None], np.nan)


def constant_row(channel: Channel, constant: tuple[float, ...]) -> np.ndarray:
    if len(constant) != channel.width:
        raise SessionError(
            got=f"{len(constant)} numbers in `constant:`",
            expected=f"{channel.width} ({', '.join(channel.columns)})",
            where=f"channel '{channel.name}'",
            next_step="Correct the mapping.",
        )
    return np.array(constant)
