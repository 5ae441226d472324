"""Opened recordings: streams of numbers as the lab recorded them, before anything is renamed or converted.

A `Format` recognises its files and opens one source as a `Recording`. Opening reads the beginning of every stream, so
that a mapping can be guessed; `Recording.load` reads the rest, and only the columns that are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from rsr.common import SessionError

HEAD_ROWS = 2000
"""Rows of each stream that guesses are made from."""
MAX_VALUES = 60_000_000
"""Numbers held in memory at once (480 MB as float64): a file that declares more is damaged, or must be cut."""
MAX_COLUMNS = 4096

Wanted = Mapping[str, tuple[str, ...]]
"""Stream name -> the columns to read of it."""


@dataclass(frozen=True)
class Samples:
    """Rows of one stream.

    Args:
        time_s: [N] seconds on the recording's clock; row numbers where the recording has no clock.
        values: [N, C] float64, not yet in our units.
    """

    time_s: np.ndarray
    values: np.ndarray

    def __len__(self) -> int:
        return len(self.time_s)

    @classmethod
    def unstamped(cls, values: np.ndarray) -> Samples:
        return cls(np.arange(len(values), dtype=float), values)

    def head(self) -> Samples:
        """The first rows, of which guesses are made."""
        return Samples(self.time_s[:HEAD_ROWS], self.values[:HEAD_ROWS])

    def taken(self, there: Sequence[str], columns: Sequence[str]) -> Samples:
        """Some of the columns that are there."""
        return Samples(self.time_s, self.values[:, [there.index(column) for column in columns]])


@dataclass(frozen=True)
class Stream:
    """One table, topic or array.

    Args:
        head: the first rows of all its columns (of the first part that has it).
        named: whether the source names the columns; otherwise they are numbered "0", "1", ...
        units: column -> the unit that the format itself fixes, such as rad in a ROS JointState.
        clocks: what its rows are stamped by, such as ("log", "header"); empty: not stamped.
        blank: further columns, left out because the first rows hold no number in them.
    """

    name: str
    columns: tuple[str, ...]
    head: Samples
    named: bool = True
    units: Mapping[str, str] = field(default_factory=dict)
    clocks: tuple[str, ...] = ()
    blank: tuple[str, ...] = ()

    def lacks(self, missing: Sequence[str]) -> str:
        """Say what is wrong with columns: one that is there and empty is not missing."""
        blank = [column for column in missing if column in self.blank]
        absent = [column for column in missing if column not in self.blank]
        said = f"no number in the first rows of column {listed(blank)}" if blank else ""
        return ", ".join(each for each in (said, f"no column {listed(absent)}" if absent else "") if each)


Load = Callable[[str, Wanted, str], Mapping[str, Samples]]
"""(part, wanted, clock) -> stream name -> its rows."""


@dataclass(frozen=True)
class Recording:
    """One opened source.

    Args:
        parts: the episodes that the source itself tells apart, in order.
        rate_hz: of sources without stamps, where the source says so.
        quaternion: order that the format prescribes, "wxyz" or "xyzw"; None where it does not say.
        damage: what could not be read, in words; what was whole is in the streams. May grow while it is loaded.
        close: removes what was spooled to disk.
    """

    format: str
    path: Path
    parts: tuple[str, ...]
    streams: tuple[Stream, ...]
    load: Load
    rate_hz: float | None = None
    quaternion: str | None = None
    damage: Sequence[str] = ()
    notes: tuple[str, ...] = ()
    close: Callable[[], None] = lambda: None

    def stream(self, name: str) -> Stream:
        """Look a stream up; the error lists what there is."""
        for stream in self.streams:
            if stream.name == name:
                return stream
        raise SessionError(
            got=f"'{name}'",
            expected=f"one of {listed(stream.name for stream in self.streams)}",
            where=str(self.path),
            next_step="Correct `from:` in the mapping.",
        )


def held_recording(
    form: str, path: Path, part: str, streams: Sequence[Stream], damage: Sequence[str] = (), notes: tuple[str, ...] = ()
) -> Recording:
    """Make a recording of one part that is in memory: the head of each stream is all that there is of it."""
    whole = {stream.name: stream for stream in streams}

    def load(part: str, wanted: Wanted, clock: str) -> dict[str, Samples]:
        return {name: whole[name].head.taken(whole[name].columns, columns) for name, columns in wanted.items()}

    begun = tuple(replace(stream, head=stream.head.head()) for stream in streams)
    return Recording(form, path, (part,), begun, load, damage=damage, notes=notes)


def is_marked(path: Path, suffixes: Collection[str], magic: bytes) -> bool:
    """Tell a file by its name, or by its first bytes."""
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return path.suffix.lower() in suffixes or stream.read(len(magic)) == magic


@dataclass(frozen=True)
class Format:
    """One importer.

    Args:
        recognises: tells by name and first bytes, reading little.
    """

    name: str
    title: str
    recognises: Callable[[Path], bool]
    open: Callable[[Path], Recording]


def listed(names: Iterable[object], most: int = 12) -> str:
    """Join names for a message, not endlessly, and without characters that would disturb a terminal."""
    words = [printable(str(name)) for name in names]
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more if words else "nothing"


def printable(text: str, most: int = 80) -> str:
    """A name from a file, as it may be shown: no control characters, not endless."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text)
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."


def unreadable(path: Path, got: str, expected: str, next_step: str | None = None) -> SessionError:
    return SessionError(
        got=printable(" ".join(got.split()), 300),
        expected=expected,
        where=printable(str(path), 300),
        next_step=next_step or "Record or copy the file again, or name its format with --format.",
    )


def check_size(path: Path, rows: int, columns: int) -> None:
    """Refuse what would not fit into memory before any of it is allocated."""
    if columns > MAX_COLUMNS or rows < 0 or rows * max(columns, 1) > MAX_VALUES:
        raise unreadable(
            path,
            f"{rows} rows of {columns} columns",
            f"at most {MAX_VALUES} numbers a part and {MAX_COLUMNS} columns",
            "If the file is whole, cut it into shorter recordings and name them all; it may also be damaged.",
        )


# What the importers share: columns out of parquet and CSV files, and errors that name the file.


def read_columns(path: Path, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Read columns [N] of a parquet or CSV file as float64."""
    wanted = list(names)
    try:
        table = (
            pq.ParquetFile(path).read(use_threads=False) if path.suffix == ".parquet" else pyarrow.csv.read_csv(path)
        )
        missing = [name for name in wanted if name not in table.column_names]
        if missing:
            raise unreadable_table(path, f"no column {', '.join(missing)}", f"columns {', '.join(wanted)}")
        return {name: table[name].to_numpy().astype(float) for name in wanted}
    except (OSError, ValueError, pa.ArrowException) as error:
        raise unreadable_table(
            path, f"content that cannot be read ({error})", "the file as its authors publish it"
        ) from error


def columns(table: dict[str, np.ndarray], names: Iterable[str], rows: np.ndarray | slice) -> np.ndarray:
    """Stack columns of some rows: [T, C]."""
    return np.stack([table[name][rows] for name in names], axis=1)


def unreadable_table(path: Path, got: str, expected: str) -> SessionError:
    return SessionError(
        got=got,
        expected=expected,
        where=str(path),
        next_step="Get the file again (`rsr data get`), or point to the folder or file that holds the recordings.",
    )
