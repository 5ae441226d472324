"""MCAP: ROS 2 messages (CDR) and JSON, read in a stream, chunk by chunk. Damage costs only itself."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from rsr.common import library
from rsr.sessions.importers._topics import Batch, Messages, Topic, open_topics
from rsr.sessions.importers.recording import Format, Recording, is_marked, printable, unreadable

MAGIC = b"\x89MCAP0\r\n"
_HEAD_BYTES = 8 << 20
_LOOSE_MESSAGES = 4096
_UNFOLDED_BYTES, _UNFOLDED_TIMES = 64 << 20, 30
"""A file may unfold to so many bytes, and so many times its size; recordings of robots unfold to three times."""
_RECORD = struct.Struct("<BQ")
_IN_CHUNK = struct.Struct("<BQHIQQ")
"""A record's opcode and length, and a message's channel, number and two stamps behind them."""
_LATEST_NS = 1 << 63
_SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _DATA_END = 3, 4, 5, 6, 15


def open_mcap(path: Path) -> Recording:
    return open_topics("mcap", path, Messages([McapFile(path)]))


@dataclass
class _Known:
    """Schemas and channels by number, as far as they have come up."""

    schemas: dict[int, Any] = field(default_factory=dict)
    channels: dict[int, Any] = field(default_factory=dict)

    def remember(self, record: Any, records: Any) -> None:
        if isinstance(record, records.Schema):
            self.schemas[record.id] = record
        elif isinstance(record, records.Channel):
            self.channels[record.id] = record


class McapFile:
    """One MCAP file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._data = _mcap("data_stream")
        self._records = _mcap("records")
        self._errors = _mcap("exceptions")

    def topics(self, damage: list[str]) -> list[Topic]:
        """Find them in the summary at the end where it is whole, otherwise by reading the file's beginning."""
        summary, topics = self._summary(), []
        if summary is not None and summary.channels:
            topics = [_topic(each, summary.schemas.get(each.schema_id)) for each in summary.channels.values()]
        else:
            damage.append(f"{self._path.name} has no readable summary at its end: it was cut or not closed")
            known = _Known()
            for _ in self._batches(set(), [], known):
                pass
            topics = [_topic(each, known.schemas.get(each.schema_id)) for each in known.channels.values()]
        if not topics:
            raise unreadable(self._path, "no topic", "an MCAP file with messages")
        return topics

    def _summary(self) -> Any:
        """What stands at the end of a file that was closed; None where it cannot be read."""
        try:
            with self._path.open("rb") as stream:
                return _mcap("reader").SeekingReader(stream, record_size_limit=LARGEST_RECORD).get_summary()
        except self._damage:
            return None

    @property
    def _damage(self) -> tuple[type[Exception], ...]:
        """Errors that the library raises over a damaged file."""
        others = (struct.error, ValueError, KeyError, OSError, EOFError, MemoryError, OverflowError)
        return (self._errors.McapError, *others)

    def head(self, wanted: set[int]) -> Iterator[Batch]:
        """The beginning of the file, and of each topic that begins later the chunk where it does."""
        seen: set[int] = set()
        with closing(self._batches(wanted, [], most_bytes=_HEAD_BYTES)) as batches:
            for batch in batches:
                seen |= set(batch)
                yield batch
        for offset in self._first_chunks(wanted - seen):
            with closing(self._batches(wanted - seen, [], most_bytes=1, offset=offset)) as batches:
                yield from batches

    def _first_chunks(self, wanted: set[int]) -> list[int]:
        """Where in the file the first chunk with each of these topics begins, by the index."""
        found = self._summary() if wanted else None
        chunks = found.chunk_indexes if found is not None else []
        starts = ([c.chunk_start_offset for c in chunks if topic in c.message_index_offsets] for topic in wanted)
        return sorted({offsets[0] for offsets in starts if offsets})

    def batches(self, wanted: set[int], damage: list[str]) -> Iterator[Batch]:
        yield from self._batches(wanted, damage)

    def _batches(
        self,
        wanted: set[int],
        damage: list[str],
        known: _Known | None = None,
        most_bytes: int | None = None,
        offset: int | None = None,
    ) -> Generator[Batch, None, None]:
        """Yield the messages of each chunk; loose ones in bundles. Stops at the first record that cannot be read."""
        known, loose = known or _Known(), {}
        count, size = 0, self._path.stat().st_size
        room = _UNFOLDED_BYTES + _UNFOLDED_TIMES * size
        with self._path.open("rb") as stream:
            try:
                for record in self._stream(stream, offset):
                    if isinstance(record, self._records.Chunk):
                        room -= record.uncompressed_size
                        if room < 0:
                            raise ValueError("chunks that unfold to more than recordings do")
                        yield from self._opened(record, wanted, damage, known)
                    elif (
                        isinstance(record, self._records.Message)
                        and record.channel_id in wanted
                        and record.log_time < _LATEST_NS
                    ):
                        _add(loose, record.channel_id, record.log_time, record.data)
                        count += 1
                    else:
                        known.remember(record, self._records)
                    if count >= _LOOSE_MESSAGES:
                        yield loose
                        loose, count = {}, 0
                    if most_bytes is not None and stream.tell() - (offset or 0) > most_bytes:
                        break
            except self._damage as error:
                reached = stream.tell()
                damage.append(
                    f"{self._path.name} is damaged or cut near byte {min(reached, size)} of {size} "
                    f"({type(error).__name__}): what comes before was kept, what comes after was not read"
                )
        if loose:
            yield loose

    def _stream(self, stream: BinaryIO, offset: int | None) -> Iterator[Any]:
        """Yield schemas, channels, chunks and loose messages; everything else is stepped over."""
        if offset is not None:
            stream.seek(offset)
        elif stream.read(len(MAGIC)) != MAGIC:
            raise ValueError("it does not begin as MCAP files do")
        kinds = {
            _SCHEMA: self._records.Schema,
            _CHANNEL: self._records.Channel,
            _CHUNK: self._records.Chunk,
        }
        while True:
            opcode, length = _RECORD.unpack(_exactly(stream, _RECORD.size))
            if opcode == _DATA_END:
                return
            if length > LARGEST_RECORD:
                raise ValueError(f"a record of {length} bytes")
            if opcode == _MESSAGE:
                yield self._records.Message.read(
                    self._data.ReadDataStream(io.BytesIO(_exactly(stream, length))), length
                )
            elif opcode in kinds:
                yield kinds[opcode].read(self._data.ReadDataStream(io.BytesIO(_exactly(stream, length))))
            else:
                _exactly(stream, length)

    def _opened(self, chunk: Any, wanted: set[int], damage: list[str], known: _Known) -> Iterator[Batch]:
        """The messages of one chunk, if it is whole."""
        try:
            yield _unpacked(decompressed(chunk), wanted, known, self._records)
        except self._damage as error:
            words = printable(" ".join(str(error).split()), 100)
            damage.append(f"{self._path.name}: a damaged chunk was left out ({words})")


def _exactly(stream: BinaryIO, size: int) -> bytes:
    found = stream.read(size)
    if len(found) < size:
        raise EOFError(f"{len(found)} of {size} bytes")
    return found


def _unpacked(content: bytes, wanted: set[int], known: _Known, records: Any) -> Batch:
    """Messages of the wanted topics out of a chunk's records. A long recording spends its time here."""
    found: dict[int, tuple[list[int], list[bytes]]] = {channel: ([], []) for channel in wanted}
    at, end, unpack = 0, len(content), _IN_CHUNK.unpack_from
    padded = content + bytes(_IN_CHUNK.size)  # so that a short last record can be unpacked like the others
    while at < end:
        opcode, length, channel, _, log_time, _ = unpack(padded, at)
        start, at = at + _RECORD.size, at + _RECORD.size + length
        if at > end:
            raise ValueError("a record longer than its chunk")
        if opcode == _MESSAGE:
            messages = found.get(channel)
            if messages is not None and log_time < _LATEST_NS:
                messages[0].append(log_time)
                messages[1].append(content[start + 22 : at])
        elif opcode in (_SCHEMA, _CHANNEL):
            stream = _mcap("data_stream").ReadDataStream(io.BytesIO(content[start:at]))
            kind = records.Schema if opcode == _SCHEMA else records.Channel
            known.remember(kind.read(stream), records)
    return {channel: messages for channel, messages in found.items() if messages[0]}


def _add(found: dict[int, tuple[list[int], list[bytes]]], channel: int, stamp_ns: int, payload: bytes) -> None:
    stamps, payloads = found.setdefault(channel, ([], []))
    stamps.append(stamp_ns)
    payloads.append(payload)


def _topic(channel: Any, schema: Any) -> Topic:
    text = schema.data.decode(errors="replace") if schema is not None and schema.encoding == "ros2msg" else ""
    kind = schema.name if schema is not None else ""
    dialect = schema.encoding if schema is not None else ""
    return Topic(channel.id, channel.topic, kind, channel.message_encoding, text, dialect)


def _mcap(module: str) -> Any:
    return library(f"mcap.{module}", "ros", "to read MCAP files")


FORMAT = Format(
    "mcap", "an MCAP file of ROS 2 or JSON messages", lambda path: is_marked(path, (".mcap",), MAGIC), open_mcap
)


# The chunks of MCAP files: decompressed within bounds, and compared with what they promise.

LARGEST_RECORD = 256 << 20
"""Bytes of one record or chunk; recorders write chunks of about a megabyte."""


def decompressed(chunk: Any) -> bytes:
    """A chunk's records. Its sizes are compared before and after, and its checksum where it has one."""
    if chunk.uncompressed_size > LARGEST_RECORD:
        raise ValueError(f"a chunk of {chunk.uncompressed_size} bytes")
    openers: dict[str, Callable[[], bytes]] = {
        "": lambda: chunk.data,
        "zstd": lambda: _limited(
            library("zstandard", "ros", "to read compressed MCAP files").ZstdDecompressor().stream_reader(chunk.data),
            chunk,
        ),
        "lz4": lambda: _limited(
            library("lz4.frame", "ros", "to read compressed MCAP files").LZ4FrameFile(io.BytesIO(chunk.data)), chunk
        ),
    }
    if chunk.compression not in openers:
        raise ValueError(f"compression {chunk.compression!r}")
    try:
        content = openers[chunk.compression]()
    except (RuntimeError, OSError, EOFError) as error:
        raise ValueError(str(error)) from error
    except Exception as error:  # zstandard has an error class of its own, which is loaded only here
        raise ValueError(f"{type(error).__name__}: {error}") from error
    if len(content) != chunk.uncompressed_size:
        raise ValueError(f"{len(content)} bytes where {chunk.uncompressed_size} are promised")
    if chunk.uncompressed_crc and zlib.crc32(content) != chunk.uncompressed_crc:
        raise ValueError("its checksum does not match")
    return content


def _limited(stream: Any, chunk: Any) -> bytes:
    """Decompress no more than was promised: a small file can unfold to terabytes."""
    return stream.read(chunk.uncompressed_size + 1)
