"""rosbag2 without ROS: folders of `.db3` or `.mcap` files, or one `.db3`. `metadata.yaml` is not needed.

The file's own tables are read, so that a bag whose recorder crashed before it wrote its metadata, or that was cut,
gives what can be read of it.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from rsr.sessions.importers._topics import Batch, Messages, Topic, open_topics
from rsr.sessions.importers.mcap_files import McapFile
from rsr.sessions.importers.recording import HEAD_ROWS, Format, Recording, printable, unreadable

_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100
_AT_ONCE = 4096
_LARGEST_MESSAGE = 256 << 20
_HELD_BYTES = 64 << 20
_MOST_TOPICS = 10_000


def open_bag(path: Path) -> Recording:
    """Open a bag's folder, or its one database."""
    files = _files(path)
    if files[0].suffix == ".mcap":
        return open_topics("rosbag2", path, Messages([McapFile(file) for file in files]))
    return open_topics("rosbag2", path, Messages([_Database(file) for file in files]))


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    for suffix in (".db3", ".mcap"):
        files = sorted(path.glob(f"*{suffix}"), key=_number)
        if files:
            return files
    raise unreadable(
        path,
        "no .db3 and no .mcap in the folder",
        "a bag's files",
        "Decompress it first if they end with .zstd: `zstd -d *.zstd`.",
    )


def _number(path: Path) -> tuple[int, str]:
    number = re.search(r"_(\d+)$", path.stem)
    return int(number.group(1)) if number else 0, path.name


class _Database:
    """One .db3 file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def topics(self, damage: list[str]) -> list[Topic]:
        with closing(self._open()) as connection:
            try:
                _check_tables(self._path, connection)
                found = connection.execute("SELECT id, name, type, serialization_format FROM topics")
                rows = found.fetchmany(_MOST_TOPICS)
            except sqlite3.Error as error:
                got = f"a table of topics that cannot be read ({error})"
                raise unreadable(self._path, got, "a bag's .db3 file") from error
            try:
                texts = {
                    str(name): (str(dialect), str(text))
                    for name, dialect, text in connection.execute(
                        "SELECT topic_type, encoding, encoded_message_definition FROM message_definitions"
                    ).fetchmany(_MOST_TOPICS)
                }
            except sqlite3.Error:  # bags before ROS 2 Iron have no such table
                texts = {}
        found = []
        for number, name, kind, encoding in rows:
            if isinstance(number, int):
                dialect, text = texts.get(str(kind), ("", ""))
                found.append(Topic(number, str(name), str(kind), str(encoding), text, dialect))
        return found

    def head(self, wanted: set[int]) -> Iterator[Batch]:
        for topic in wanted:
            yield from self.batches({topic}, [], HEAD_ROWS)

    def batches(self, wanted: set[int], damage: list[str], most: int | None = None) -> Iterator[Batch]:
        """Yield messages of these topics until the end, or until damage."""
        if not wanted:
            return
        only = ",".join(str(topic) for topic in wanted)
        query = f"SELECT topic_id, timestamp, data FROM messages WHERE topic_id IN ({only})"
        count = held = total = 0
        size = self._path.stat().st_size
        batch: dict[int, tuple[list[int], list[bytes]]] = {}
        with closing(self._open()) as connection:
            try:
                _check_tables(self._path, connection)
                for topic, stamp, data in connection.execute(query if most is None else f"{query} LIMIT {most}"):
                    if topic in wanted and isinstance(stamp, int) and isinstance(data, bytes):
                        stamps, payloads = batch.setdefault(topic, ([], []))
                        stamps.append(stamp)
                        payloads.append(data)
                        held, total = held + len(data), total + len(data)
                    count += 1
                    if total > size or count > size:  # pages that lead in a circle
                        raise sqlite3.DatabaseError("more messages than the file has room for")
                    if count % _AT_ONCE == 0 or held > _HELD_BYTES:
                        yield batch
                        batch, held = {}, 0
            except (sqlite3.Error, OverflowError) as error:
                words = f"{self._path.name} is damaged or cut after {count} messages ({printable(str(error), 100)})"
                damage.append(f"{words}: what comes before was kept")
        yield batch

    def _open(self) -> sqlite3.Connection:
        """Open read-only, without a journal: `immutable` also reads what a crashed recorder left."""
        path = self._path
        with path.open("rb") as stream:
            header = stream.read(_HEADER_BYTES)
        if not header.startswith(_MAGIC) or len(header) < _HEADER_BYTES:
            raise unreadable(path, "no SQLite database", "a bag's .db3 file")
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(1000, min(_LARGEST_MESSAGE, path.stat().st_size)))
        connection.text_factory = lambda content: content.decode(errors="replace")
        connection.execute("PRAGMA trusted_schema = OFF")
        page = int.from_bytes(header[16:18], "big")
        if int.from_bytes(header[28:32], "big") * (page if page > 1 else 65536) > path.stat().st_size:
            # SQLite opens no file that is shorter than its header says, unless it is asked to mend it.
            connection.execute("PRAGMA writable_schema = ON")
        return connection


def _check_tables(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse what only looks like a bag's tables: a view is a program, and may give rows for ever."""
    names = ("topics", "messages", "message_definitions")
    query = "SELECT name, type, sql FROM sqlite_master WHERE lower(name) IN (?, ?, ?)"
    for name, kind, sql in connection.execute(query, names):
        words = str(sql).upper()
        if kind != "table" or words.startswith("CREATE VIRTUAL") or "GENERATED" in words or " AS " in words:
            raise unreadable(path, f"'{name}', which is computed ({kind})", "a bag's plain tables")


def _recognises(path: Path) -> bool:
    if path.is_dir():
        return (
            any(path.glob("*.db3"))
            or any(path.glob("*.mcap"))
            or ((path / "metadata.yaml").is_file() and any(path.glob("*.zstd")))
        )
    return path.suffix == ".db3"


FORMAT = Format("rosbag2", "a rosbag2 folder or .db3 file", _recognises, open_bag)
