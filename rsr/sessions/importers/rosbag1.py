"""ROS 1 bags (`.bag`, format 2.0) without ROS.

They are read from the beginning, so that one that was never closed, or was cut, gives what can be read of it.
"""

from __future__ import annotations

import bz2
import struct
from collections.abc import Iterator
from io import SEEK_END, BytesIO
from pathlib import Path
from typing import BinaryIO

from rsr.common import library
from rsr.sessions.importers._cdr import ROS_1
from rsr.sessions.importers._topics import Batch, Messages, Topic, open_topics
from rsr.sessions.importers.recording import HEAD_ROWS, Format, Recording, printable, unreadable

_MAGIC = b"#ROSBAG V2.0\n"
_MESSAGE, _BAG, _CHUNK, _CONNECTION = 2, 3, 5, 7
_LONGEST_HEADER = 1 << 20
_LARGEST_CHUNK = 256 << 20
_MOST_TOPICS, _SMALL = 10_000, 1 << 20
_SIZE = struct.Struct("<I")
Record = tuple[dict[str, bytes], bytes]
"""Fields of a record's header, and its data."""


def open_bag(path: Path) -> Recording:
    """Open a bag."""
    return open_topics("rosbag1", path, Messages([_Bag(path)]))


class _Bag:
    """One .bag file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def topics(self, damage: list[str]) -> list[Topic]:
        found: dict[int, Topic] = {}
        with self._path.open("rb") as stream:
            if stream.read(len(_MAGIC)) != _MAGIC:
                raise unreadable(self._path, "another beginning than #ROSBAG V2.0", "a ROS 1 bag of format 2.0")
            index = self._index_place(stream, damage)
            # A closed bag lists its connections at its end; the chunks of another have to be read for them.
            for place in (index, 0) if index else (0,):
                stream.seek(place or len(_MAGIC))
                try:
                    for fields, data in _records(stream, inside_chunks=not place):
                        if _op(fields) == _CONNECTION and len(found) < _MOST_TOPICS:
                            topic = _topic(fields, data)
                            found.setdefault(topic.number, topic)
                    break
                except _DAMAGES as error:
                    damage.append(f"{self._path.name} is damaged where it lists its topics ({_words(error)})")
        return list(found.values())

    def _index_place(self, stream: BinaryIO, damage: list[str]) -> int:
        """Where the list of connections begins; 0 where there is none."""
        try:
            fields, _ = next(_records(stream, inside_chunks=False))
            place = struct.unpack("<Q", fields["index_pos"])[0]
        except (*_DAMAGES, StopIteration) as error:
            raise unreadable(self._path, f"no header ({_words(error)})", "a ROS 1 bag of format 2.0") from error
        if place == 0:
            damage.append(f"{self._path.name} was not closed: what was written was read")
        elif place >= self._path.stat().st_size:
            damage.append(f"{self._path.name} is cut: what comes before was kept")
            return 0
        return place

    def batches(self, wanted: set[int], damage: list[str]) -> Iterator[Batch]:
        count = 0
        batch: dict[int, tuple[list[int], list[bytes]]] = {}
        held = 0
        with self._path.open("rb") as stream:
            stream.seek(len(_MAGIC))
            try:
                for fields, data in _records(stream, inside_chunks=True):
                    if _op(fields) != _MESSAGE or (number := _number(fields)) not in wanted:
                        continue
                    stamps, payloads = batch.setdefault(number, ([], []))
                    stamps.append(_time_ns(fields))
                    payloads.append(ROS_1 + data)
                    count, held = count + 1, held + len(data)
                    if count % 4096 == 0 or held > _LARGEST_CHUNK // 4:
                        yield batch
                        batch, held = {}, 0
            except _DAMAGES as error:
                words = f"is damaged or cut after {count} messages ({_words(error)}): what comes before was kept"
                damage.append(f"{self._path.name} {words}")
        yield batch

    def head(self, wanted: set[int]) -> Iterator[Batch]:
        left = dict.fromkeys(wanted, HEAD_ROWS)
        for batch in self.batches(wanted, []):
            yield batch
            for number, (stamps, _) in batch.items():
                left[number] -= len(stamps)
            if all(count <= 0 for count in left.values()):
                return


def _records(stream: BinaryIO, inside_chunks: bool) -> Iterator[Record]:
    """Records to the end of a stream, and those inside of its chunks."""
    while size := stream.read(_SIZE.size):
        fields = _fields(_exactly(stream, _length(size, _LONGEST_HEADER)))
        length = _length(stream.read(_SIZE.size), 1 << 31)
        if _op(fields) != _CHUNK:
            yield fields, _exactly(stream, length)
        elif inside_chunks:
            yield from _records(BytesIO(_decompressed(fields, _exactly(stream, length))), inside_chunks=False)
        else:
            stream.seek(length, 1)


def _decompressed(fields: dict[str, bytes], data: bytes) -> bytes:
    kind, size = fields.get("compression", b"none"), _length(fields["size"], _LARGEST_CHUNK)
    if kind == b"bz2":
        data = bz2.BZ2Decompressor().decompress(data, size + 1)
    elif kind == b"lz4":
        data = library("lz4.frame", "ros", "to read compressed bags").LZ4FrameDecompressor().decompress(data, size + 1)
    elif kind != b"none":
        raise ValueError(f"compression {printable(kind.decode(errors='replace'))}")
    if len(data) != size:
        raise ValueError(f"a chunk of {len(data)} bytes that says {size}")
    return data


def _fields(header: bytes) -> dict[str, bytes]:
    found, at = {}, 0
    while at < len(header):
        length = _length(header[at : at + 4], len(header) - at - 4)
        name, separator, value = header[at + 4 : at + 4 + length].partition(b"=")
        if not separator:
            raise ValueError("a field without a value")
        found[name.decode(errors="replace")] = value
        at += 4 + length
    return found


def _topic(fields: dict[str, bytes], data: bytes) -> Topic:
    said = _fields(data)
    package, _, kind = said["type"].decode(errors="replace").partition("/")
    text = said.get("message_definition", b"").decode(errors="replace")
    name = fields["topic"].decode(errors="replace")
    return Topic(_number(fields), name, f"{package}/msg/{kind}", "cdr", text, "ros1msg")


def _op(fields: dict[str, bytes]) -> int:
    return fields.get("op", b"\0")[0]


def _number(fields: dict[str, bytes]) -> int:
    return _SIZE.unpack(fields["conn"])[0]


def _time_ns(fields: dict[str, bytes]) -> int:
    seconds, nanoseconds = struct.unpack("<II", fields["time"])
    return seconds * 1_000_000_000 + nanoseconds


def _length(raw: bytes, most: int) -> int:
    length = _SIZE.unpack(raw)[0]
    if length > most:
        raise ValueError(f"a length of {length} bytes where {most} can be")
    return length


def _exactly(stream: BinaryIO, size: int) -> bytes:
    """Read so many bytes; a length that is damaged is not allocated before it is seen that the file is shorter."""
    data = stream.read(size) if size <= _SMALL or size <= _left(stream) else b""
    if len(data) != size:
        raise ValueError("the file ends within a record")
    return data


def _left(stream: BinaryIO) -> int:
    at = stream.tell()
    end = stream.seek(0, SEEK_END)
    stream.seek(at)
    return end - at


def _words(error: BaseException) -> str:
    return printable(str(error) or type(error).__name__, 100)


_DAMAGES = (ValueError, LookupError, struct.error, OSError, EOFError, RuntimeError)
"""What damaged bytes raise, in this file and in decompression."""


def _recognises(path: Path) -> bool:
    return path.is_file() and path.suffix == ".bag"


FORMAT = Format("rosbag1", "a ROS 1 .bag file", _recognises, open_bag)
