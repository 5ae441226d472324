"""ROS messages to columns of numbers, many at a time.

A message is walked once, by its definition; the walk notes where each number lies and which bytes (lengths, names) put
it there. All messages of a topic that agree in those bytes have their numbers in the same places, so that thousands are
decoded by one reading of an array. Names of joints and frames become names of columns.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_SIZES = {
    "bool": "?", "byte": "B", "char": "B", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i",
    "uint32": "I", "int64": "q", "uint64": "Q", "float32": "f", "float64": "d",
}  # fmt: skip
_BASE, _NAME, _ARRAY, _SEQUENCE = 1, 2, 3, 4
_LONGEST = 512
"""Longer sequences are images, clouds and maps: no columns."""
_MOST_LEAVES = 4096
_DEEPEST = 16
_MOST_VISITED = 10_000
_LABELS = ("child_frame_id", "name", "joint_name", "id")
_JOINTS = "joint_names"
_AROUND = "joint_names of the message around"
_LISTS = ("name", "names", _JOINTS, "interface_names", "dof_names", _AROUND)
_HEADER = struct.Struct("<BB")
ROS_1 = b"ROS1"
"""Put before a message of ROS 1, where those of ROS 2 have their encapsulation: it is packed, strings have no end."""
_SEQUENCE_NUMBER = "header.seq"
"""Counts messages in ROS 1: no number of the robot's."""


@dataclass(frozen=True)
class Leaf:
    """One number: its column, its type and where it lies in the message."""

    name: str
    code: str
    offset: int


@dataclass(frozen=True)
class Layout:
    """Where the numbers of a message are.

    Args:
        length: of the message, bytes.
        fixed: [L] which bytes must equal `template` for this layout to hold.
        stamp: offset of the header's seconds, followed by its nanoseconds; None where there is no header.
    """

    length: int
    leaves: tuple[Leaf, ...]
    order: str
    fixed: np.ndarray
    template: np.ndarray
    stamp: int | None

    def matches(self, rows: np.ndarray) -> np.ndarray:
        """Tell which messages [N, L] have this layout: [N]."""
        return (rows[:, self.fixed] == self.template).all(axis=1)

    def numbers(self, rows: np.ndarray, columns: Sequence[str]) -> np.ndarray:
        """Read columns of messages [N, L] as float64 [N, C]; NaN for those that they do not have."""
        values = np.full((len(rows), len(columns)), np.nan)
        places = {leaf.name: leaf for leaf in self.leaves}
        for index, leaf in [(index, places[name]) for index, name in enumerate(columns) if name in places]:
            size = struct.calcsize(leaf.code)
            raw = np.ascontiguousarray(rows[:, leaf.offset : leaf.offset + size])
            values[:, index] = raw.view(np.dtype(self.order + leaf.code))[:, 0]
        return values

    def stamps_ns(self, rows: np.ndarray) -> np.ndarray:
        """The header's stamps [N] in ns; 0 where there is none."""
        if self.stamp is None:
            return np.zeros(len(rows), np.int64)
        seconds = np.ascontiguousarray(rows[:, self.stamp : self.stamp + 4]).view(self.order + "i4")[:, 0]
        nanoseconds = np.ascontiguousarray(rows[:, self.stamp + 4 : self.stamp + 8]).view(self.order + "u4")[:, 0]
        return seconds.astype(np.int64) * 1_000_000_000 + nanoseconds


def layout_of(payload: bytes, name: str, definitions: Mapping[str, Any]) -> Layout:
    """Walk one message.

    Args:
        name: of its type, such as sensor_msgs/msg/JointState.
        definitions: type -> (constants, fields), as rosbags keeps them.

    Raises:
        ValueError: the message does not fit its definition.
    """
    encapsulation = (0, 1) if payload[:4] == ROS_1 else _HEADER.unpack_from(payload)
    if len(payload) < 4 or encapsulation[0] != 0 or encapsulation[1] not in (0, 1):
        raise ValueError("no CDR message")
    walk = _Walk(payload, "<" if encapsulation[1] else ">", definitions)
    walk.message(name, "", 0)
    if walk.at + 4 + 3 < len(payload):
        raise ValueError("a message longer than its definition")
    return walk.layout()


class _Walk:
    """The state of one walk: how far it came, and what it found."""

    def __init__(self, payload: bytes, order: str, definitions: Mapping[str, Any]) -> None:
        self.payload, self.order, self.definitions = payload, order, definitions
        self.packed = payload[:4] == ROS_1
        self.at = 0  # alignment counts from behind the four bytes of encapsulation
        self.leaves: list[Leaf] = []
        self.fixed = np.zeros(len(payload), bool)
        self.fixed[:4] = True
        self.stamp: int | None = None
        self.visited = 0

    def layout(self) -> Layout:
        template = np.frombuffer(self.payload, np.uint8)[self.fixed]
        counting = [leaf for leaf in self.leaves if self.packed and leaf.name.endswith(_SEQUENCE_NUMBER)]
        leaves = tuple(leaf for leaf in self.leaves if leaf not in counting)
        return Layout(len(self.payload), leaves, self.order, self.fixed, template, self.stamp)

    def message(self, name: str, prefix: str, depth: int, joints: Sequence[str] = ()) -> dict[str, list[str]]:
        """Walk the fields of a message; returns its strings.

        Args:
            joints: named by the message around this one, which may hold a number of each.
        """
        self.visited += 1
        if self.visited > _MOST_VISITED:  # arrays of arrays of empty messages take no bytes, and for ever
            raise ValueError(f"more than {_MOST_VISITED} messages within one")
        if depth > _DEEPEST or name not in self.definitions:
            raise ValueError(f"no definition of {name}")
        if name.endswith("/Time") and name.startswith("builtin_interfaces"):
            self._time()
            return {}
        strings = {_AROUND: list(joints)}
        for field, (kind, detail) in self.definitions[name][1]:
            label = f"{prefix}{field}"
            kind = int(kind.value) if hasattr(kind, "value") else int(kind)
            if kind == _BASE:
                if detail[0] in ("string", "wstring"):
                    strings[field] = [self._string()]
                else:
                    self._number(detail[0], label)
            elif kind == _NAME:
                within = self.message(detail, f"{label}.", depth + 1, strings.get(_JOINTS, ()))
                strings |= {key: found for key, found in within.items() if key in _LABELS}
            else:
                (inner, what), count = detail
                count = self._count() if kind == _SEQUENCE else int(count)
                self._list(inner, what, count, field, label, strings, depth)
        return strings

    def _list(
        self, inner: Any, what: Any, count: int, field: str, label: str, strings: dict[str, list[str]], depth: int
    ) -> None:
        kind = int(inner.value) if hasattr(inner, "value") else int(inner)
        if kind == _NAME:
            if count > _LONGEST:
                raise ValueError(f"{count} messages in {field}")
            for index in range(count):
                self._element(what, f"{label}.", index, depth, strings.get(_JOINTS, ()), count)
        elif what[0] in ("string", "wstring"):
            if count > _LONGEST:
                raise ValueError(f"{count} strings in {field}")
            strings[field] = [self._string() for _ in range(count)]
        else:
            names = next((strings[key] for key in _LISTS if key in strings and len(strings[key]) == count), None)
            self._numbers(what[0], count, label, names)

    def _element(
        self, name: str, prefix: str, index: int, depth: int, joints: Sequence[str] = (), count: int = 0
    ) -> None:
        """One message of a sequence, named by its frame or name where it has one, or by the joint that it speaks of."""
        start = len(self.leaves)
        strings = self.message(name, prefix + "\0", depth + 1, joints)
        own = joints[index] if "interface_names" in strings and len(joints) == count else str(index)
        label = next((strings[key][0] for key in _LABELS if strings.get(key) and strings[key][0]), own)
        self.leaves[start:] = [
            Leaf(leaf.name.replace("\0", f"{label}.", 1), leaf.code, leaf.offset) for leaf in self.leaves[start:]
        ]

    def _align(self, size: int) -> None:
        self.at += 0 if self.packed else -self.at % size

    def _take(self, size: int) -> int:
        """Step over bytes; returns where they begin in the payload."""
        start = self.at + 4
        if size < 0 or start + size > len(self.payload):
            raise ValueError("a message shorter than its definition")
        self.at += size
        return start

    def _structure(self, size: int) -> int:
        start = self._take(size)
        self.fixed[start : start + size] = True
        return start

    def _count(self) -> int:
        self._align(4)
        return struct.unpack_from(self.order + "I", self.payload, self._structure(4))[0]

    def _string(self) -> str:
        length = self._count()
        start = self._structure(length)
        end = start + (length if self.packed else max(0, length - 1))
        return self.payload[start:end].decode(errors="replace")

    def _number(self, kind: str, label: str) -> None:
        self._numbers(kind, 1, label, [""])

    def _numbers(self, kind: str, count: int, label: str, names: Sequence[str] | None) -> None:
        code = _SIZES.get(kind)
        if code is None:
            raise ValueError(f"a field of type {kind}")
        size = struct.calcsize(code)
        if count:
            self._align(size)
        start = self._take(size * count)
        if count > _LONGEST or len(self.leaves) + count > _MOST_LEAVES:
            return
        for index in range(count):
            suffix = (f".{names[index]}" if names[index] else "") if names is not None else f".{index}"
            self.leaves.append(Leaf(label + suffix, code, start + size * index))

    def _time(self) -> None:
        self._align(4)
        start = self._take(8)
        if self.stamp is None:
            self.stamp = start
