"""The rows of a recording that a mapping asks for, one trial after the other, read stream by stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from rsr.common import SessionError
from rsr.sessions import stretches
from rsr.sessions.importers import Recording, Samples, Wanted, listed, printable
from rsr.sessions.ingest.mapping import Mapping as ChannelMapping
from rsr.sessions.ingest.units import factor


@dataclass(frozen=True)
class RecordedTrial:
    """The rows of one episode as the source or a column divides them; read stream by stream, when asked for.

    Args:
        base: stamp that counts as 0, in the source's own unit: large stamps lose digits when they are scaled.
        rows: of every stream.
    """

    name: str
    mapping: ChannelMapping
    wanted: Wanted
    loaded: Mapping[str, Samples]
    base: float = 0.0
    rows: slice = field(default_factory=lambda: slice(None))

    def table(self, stream: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Stamps [N] in s, and column -> values [N]."""
        samples = self.loaded[stream]
        stamps = _stamps(samples, self.wanted[stream], self.mapping, self.loaded)[self.rows]
        time = self.mapping.time
        scale = 1.0 / time.rate_hz if time.rate_hz is not None else factor(time.unit, "s", "time")
        values = samples.values[self.rows]
        return (stamps - self.base) * scale, dict(zip(self.wanted[stream], values.T, strict=True))

    def tag(self, column: str) -> np.ndarray:
        """The different numbers that a column has in these rows; one, if it can be a tag."""
        holder = next(name for name, columns in self.wanted.items() if column in columns or name == column)
        table = self.table(holder)[1]
        found = np.unique(next(iter(table.values())) if column not in table else table[column])
        return found[np.isfinite(found)]


def read_trials(recording: Recording, part: str, mapping: ChannelMapping) -> Iterator[RecordedTrial]:
    """Yield each trial of a part."""
    wanted = _wanted(recording, mapping)
    loaded = recording.load(part, wanted, mapping.time.stamps or "")
    for name in wanted:
        if name not in loaded:
            raise SessionError(
                got=f"no {printable(name)} in part '{printable(part)}'",
                expected="every stream that the mapping names, in every part",
                where=str(recording.path),
                next_step="Leave this part out, or correct `from:` in the mapping.",
            )
    starts = []
    for name, columns in wanted.items():
        stamps = _stamps(loaded[name], columns, mapping, loaded)
        starts += stamps[np.isfinite(stamps)][:1].tolist()
    whole = RecordedTrial(printable(part), mapping, wanted, loaded, min(starts, default=0.0))
    if mapping.episodes.column is None:
        yield whole
    else:
        yield from _split(recording, whole, mapping.episodes.column)


def _stamps(
    samples: Samples, columns: tuple[str, ...], mapping: ChannelMapping, loaded: Mapping[str, Samples]
) -> np.ndarray:
    """Stamps [N] of a stream's rows, as the source gives them: row numbers where there is only a rate."""
    name = mapping.time.column
    if name is None:
        return samples.time_s
    stamps = samples.values[:, columns.index(name)] if name in columns else loaded[name].values[:, 0]
    if len(stamps) != len(samples):
        raise SessionError(
            got=f"{len(stamps)} stamps and {len(samples)} rows",
            expected="one stamp a row",
            where=f"time column {printable(name)}",
            next_step="Name the column that belongs to these rows, or give rate_hz.",
        )
    return stamps


def _split(recording: Recording, whole: RecordedTrial, column: str) -> Iterator[RecordedTrial]:
    """Divide the rows where the number of the episode changes."""
    lengths = {len(whole.loaded[name]) for name in whole.wanted}
    if len(lengths) > 1:
        raise SessionError(
            got=f"streams of {listed(sorted(lengths))} rows",
            expected="as many rows in each, where a column numbers the episodes",
            where=str(recording.path),
            next_step="Take `episodes: column:` out of the mapping: gaps divide episodes.",
        )
    holder = next((name for name, columns in whole.wanted.items() if column in columns), None)
    numbers = whole.table(holder)[1][column] if holder is not None else whole.loaded[column].values[:, 0]
    prefix = f"{whole.name} " if len(recording.parts) > 1 else ""
    for rows in stretches(np.diff(numbers) != 0):
        yield replace(whole, name=f"{prefix}{numbers[rows.start]:g}", rows=rows)


def _wanted(recording: Recording, mapping: ChannelMapping) -> dict[str, tuple[str, ...]]:
    """Every stream that is needed, with its columns: those of channels, and those of time and episode numbers."""
    wanted: dict[str, list[str]] = {}
    for entry in mapping.channels.values():
        if entry.source is not None:
            stream = recording.stream(entry.source)
            wanted.setdefault(stream.name, []).extend(entry.columns)
    named = (mapping.time.column, mapping.episodes.column, *mapping.episodes.tags)
    extra = [column for column in named if column is not None]
    for column in extra:
        holders = [name for name in wanted if column in recording.stream(name).columns]
        for name in holders:
            wanted[name].append(column)
        if not holders:  # an array of its own, as in npz and HDF5
            streams = [stream.name for stream in recording.streams]
            if column not in streams:
                known = dict.fromkeys(each for name in wanted for each in recording.stream(name).columns)
                raise SessionError(
                    got=recording.stream(next(iter(wanted))).lacks([column]),
                    expected=f"one of {listed(tuple(known), 40)}",
                    where=str(recording.path),
                    next_step="Correct `time:` or `episodes:` in the mapping, or add the column to the recording.",
                )
            wanted.setdefault(recording.stream(column).name, []).append(recording.stream(column).columns[0])
    for name, columns in wanted.items():
        missing = [column for column in columns if column not in recording.stream(name).columns]
        if missing:
            raise SessionError(
                got=f"{recording.stream(name).lacks(missing)} in {printable(name)}",
                expected=f"one of {listed(recording.stream(name).columns, 40)}",
                where=str(recording.path),
                next_step="Correct `columns:` in the mapping, or leave --map away to have a new one made.",
            )
    return {name: tuple(dict.fromkeys(columns)) for name, columns in wanted.items()}
