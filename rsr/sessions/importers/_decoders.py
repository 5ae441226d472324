"""Messages of one topic to rows of numbers: CDR by ROS definitions, JSON by its keys."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from struct import error as StructError
from typing import Any, Protocol

import numpy as np

from rsr.common import library
from rsr.sessions.importers._cdr import Layout, layout_of
from rsr.sessions.importers._control_msgs import VERSIONS
from rsr.sessions.importers.recording import Samples, check_size

_MOST_LAYOUTS = 64
"""Messages of one topic that differ in more ways than this are not decoded further: their names change with time."""
_DEEPEST = 8
_LONGEST = 512
_LONGEST_DEFINITION = 1 << 20


@dataclass(frozen=True)
class Rows:
    """Decoded messages.

    Args:
        values: [N, C].
        stamps_ns: [N] of the headers; 0 where there is none.
        good: [N] which messages could be read.
    """

    values: np.ndarray
    stamps_ns: np.ndarray
    good: np.ndarray


class Decoder(Protocol):
    """Knows the messages of one topic."""

    def columns(self, payloads: Sequence[bytes]) -> tuple[str, ...]:
        """The numbers that these messages have."""
        ...

    def rows(self, payloads: Sequence[bytes], columns: Sequence[str]) -> Rows:
        """Read these columns."""
        ...


class CdrDecoder:
    """Messages of ROS 2, and of ROS 1; remembers the layouts that it met.

    Args:
        versions: definitions of the type, of which the first that a message fits is taken.
    """

    def __init__(self, name: str, *versions: Mapping[str, Any]) -> None:
        self._name, self._versions = name, versions
        self._layouts: dict[int, list[Layout]] = {}

    def columns(self, payloads: Sequence[bytes]) -> tuple[str, ...]:
        names: dict[str, None] = {}
        for _, _, layout in self._sorted(payloads):
            names |= dict.fromkeys(leaf.name for leaf in layout.leaves)
        return tuple(names)

    def rows(self, payloads: Sequence[bytes], columns: Sequence[str]) -> Rows:
        values = np.full((len(payloads), len(columns)), np.nan)
        stamps_ns, good = np.zeros(len(payloads), np.int64), np.zeros(len(payloads), bool)
        for places, messages, layout in self._sorted(payloads):
            values[places] = layout.numbers(messages, columns)
            stamps_ns[places] = layout.stamps_ns(messages)
            good[places] = True
        return Rows(values, stamps_ns, good)

    def _sorted(self, payloads: Sequence[bytes]) -> Iterator[tuple[np.ndarray, np.ndarray, Layout]]:
        """Yield messages by layout: which they are, their bytes [N, L], the layout."""
        lengths = np.fromiter(map(len, payloads), int, len(payloads))
        for length in np.unique(lengths):
            places = np.flatnonzero(lengths == length)
            chosen = payloads if len(places) == len(payloads) else [payloads[place] for place in places.tolist()]
            messages = np.frombuffer(b"".join(chosen), np.uint8).reshape(len(places), int(length))
            known = self._layouts.setdefault(int(length), [])
            for layout in known:
                fitting = layout.matches(messages)
                if fitting.any():
                    yield places[fitting], messages[fitting], layout
                    places, messages = places[~fitting], messages[~fitting]
            while len(places) and len(known) < _MOST_LAYOUTS:
                layout = self._layout(messages[0].tobytes())
                if layout is None:
                    places, messages = places[1:], messages[1:]
                    continue
                known.append(layout)
                fitting = layout.matches(messages)
                yield places[fitting], messages[fitting], layout
                places, messages = places[~fitting], messages[~fitting]

    def _layout(self, message: bytes) -> Layout | None:
        for definitions in self._versions:
            with suppress(ValueError, IndexError, OverflowError, RecursionError, StructError):
                return layout_of(message, self._name, definitions)
        return None


class JsonDecoder:
    """Objects of JSON: numbers are columns, named by their keys; `header.stamp` or `timestamp` with sec and nsec."""

    def columns(self, payloads: Sequence[bytes]) -> tuple[str, ...]:
        names: dict[str, None] = {}
        for payload in payloads:
            names |= dict.fromkeys(_flat(_parsed(payload)))
        return tuple(name for name in names if not name.endswith((".sec", ".nsec", ".nanosec")))

    def rows(self, payloads: Sequence[bytes], columns: Sequence[str]) -> Rows:
        found = [_flat(_parsed(payload)) for payload in payloads]
        values = np.array([[row.get(column, np.nan) for column in columns] for row in found], float)
        stamps_ns = np.array([_stamp_ns(row) for row in found], np.int64)
        good = np.array([bool(row) for row in found], bool)
        return Rows(values.reshape(len(found), len(columns)), stamps_ns, good)


def _parsed(payload: bytes) -> Any:
    try:
        return json.loads(payload)
    except (ValueError, RecursionError):
        return None


def _flat(found: Any, prefix: str = "", depth: int = 0) -> dict[str, float]:
    """Numbers of a document by their paths; names of joints take the place of numbers in lists."""
    if isinstance(found, bool) or (isinstance(found, (int, float)) and prefix):
        try:
            return {prefix: float(found)}
        except OverflowError:
            return {}
    if depth > _DEEPEST:
        return {}
    if isinstance(found, dict):
        names = found.get("name") if isinstance(found.get("name"), list) else None
        parts = [(f"{prefix}.{key}" if prefix else str(key), value) for key, value in list(found.items())[:_LONGEST]]
        flat: dict[str, float] = {}
        for label, value in parts:
            if isinstance(value, list) and names and len(names) == len(value):
                value = dict(zip(map(str, names), value, strict=True))
            flat |= _flat(value, label, depth + 1)
        return flat
    if isinstance(found, list) and len(found) <= _LONGEST and prefix:
        flat = {}
        for index, value in enumerate(found):
            flat |= _flat(value, f"{prefix}.{index}", depth + 1)
        return flat
    return {}


def _stamp_ns(row: dict[str, float]) -> int:
    for prefix in ("header.stamp", "timestamp", "stamp"):
        for key in (f"{prefix}.nsec", f"{prefix}.nanosec"):
            if f"{prefix}.sec" in row and key in row:
                stamp = row[f"{prefix}.sec"] * 1e9 + row[key]
                return int(stamp) if 0 <= stamp < 2**62 else 0
    return 0


def definitions_of(dialect: str, text: str, name: str) -> list[dict[str, Any]]:
    """Types a CDR message is made of: by the file's own definition, or, where it has none, ROS's common ones.

    More than one where the type has changed, and nothing says which version the file has.

    Raises:
        ValueError: the file's definition cannot be read.
    """
    typesys = library("rosbags.typesys", "ros", "to read ROS messages")
    known = dict(typesys.get_typestore(typesys.Stores.ROS2_HUMBLE).fielddefs)
    if dialect in ("ros1msg", "ros2msg") and text.strip():
        if len(text) > _LONGEST_DEFINITION:
            raise ValueError(f"a definition of {len(text)} letters")
        try:
            return [known | dict(typesys.get_types_from_msg(text, name))]
        except Exception as error:  # the parser raises errors of many kinds over a damaged text
            raise ValueError(f"the definition of {name} cannot be read") from error
    if name not in known | _of_controllers():
        raise ValueError(f"no definition of {name} in the file, and it is none of ROS's common messages")
    parts = {each: found[0] for each, found in _of_controllers().items()}
    return [known | parts | {name: found} for found in _of_controllers().get(name, [known.get(name)])]


@cache
def _of_controllers() -> dict[str, list[Any]]:
    """Definitions of the messages of ros2_control: type -> its versions, newest first."""
    typesys = library("rosbags.typesys", "ros", "to read ROS messages")
    found = {}
    for name, versions in VERSIONS.items():
        kind = f"control_msgs/msg/{name}"
        found[kind] = [typesys.get_types_from_msg(text, kind)[kind] for text in versions]
    return found


# Rows of many streams, written to temporary files while a long recording is read, so that memory holds one stream.

_BLOCK_ROWS = 8192


class Spool(Mapping[str, Samples]):
    """Stream name -> its rows, read back when asked for. The directory goes away with `close`."""

    def __init__(self, widths: Mapping[str, int]) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="rsr-ingest-")
        self._widths = dict(widths)
        self._files = {name: Path(self._directory.name) / str(index) for index, name in enumerate(self._widths)}
        self._blocks: dict[str, list[np.ndarray]] = {name: [] for name in self._widths}
        self._waiting = dict.fromkeys(self._widths, 0)
        self._rows = dict.fromkeys(self._widths, 0)

    def append(self, name: str, time_s: np.ndarray, values: np.ndarray) -> None:
        """Add rows [N] and [N, C] of a stream."""
        self._blocks[name].append(np.column_stack([time_s, values]))
        self._waiting[name] += len(time_s)
        if self._waiting[name] >= _BLOCK_ROWS:
            self._flush(name)

    def _flush(self, name: str) -> None:
        if self._blocks[name]:
            self._rows[name] += self._waiting[name]
            check_size(self._files[name], self._rows[name], 1 + self._widths[name])  # before it fills the disk
            with self._files[name].open("ab") as stream:
                np.concatenate(self._blocks[name]).tofile(stream)
        self._blocks[name], self._waiting[name] = [], 0

    def __getitem__(self, name: str) -> Samples:
        self._flush(name)
        if not self._files[name].exists():
            return Samples(np.empty(0), np.empty((0, self._widths[name])))
        width = 1 + self._widths[name]
        rows = np.fromfile(self._files[name]).reshape(-1, width)
        if (np.diff(rows[:, 0]) < 0).any():  # recorders store in the order of arrival
            rows = rows[np.argsort(rows[:, 0], kind="stable")]
        return Samples(rows[:, 0], rows[:, 1:])

    def __iter__(self) -> Iterator[str]:
        return iter(self._widths)

    def __len__(self) -> int:
        return len(self._widths)

    def close(self) -> None:
        self._directory.cleanup()
