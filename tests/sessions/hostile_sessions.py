"""Stored sessions that were tampered with, by what was changed in them."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rsr.sessions import read_session, write_session
from tests.hostile_trials import Case
from tests.sessions.sample_sessions import list_sessions, make_session

Change = Callable[[Path, Path], object]
MB = 1 << 20
CARD, INFO, SUMS, DATA = (
    "meta/rsr_card.json",
    "meta/info.json",
    "meta/rsr_checksums.json",
    "data/chunk-000/file-000.parquet",
)
DEEP = "[" * 200_000


def session(change: Change) -> Case:
    """A stored session that was changed; it is refused by whoever reads it, and its neighbour is not."""

    def make(folder: Path, outside: Path) -> Callable[[], object]:
        good = make_session()
        session = write_session(folder, good)
        write_session(folder, replace(good, card=replace(good.card, session="neighbour")))
        change(session, outside)

        def read() -> object:
            listed = list_sessions(folder)
            assert [path.name for path in listed.readable] == ["neighbour"], "the neighbour suffers"
            return read_session(session)

        return read

    return make


def listing(name: str | Change, content: Any = "0" * 64) -> Case:
    """A session whose list of checksums names something else as well."""

    def change(session: Path, outside: Path) -> None:
        named = name(session, outside) if callable(name) else name
        sums = json.loads((session / SUMS).read_text())
        sums["files"][named] = content
        (session / SUMS).write_text(json.dumps(sums))

    return session(change)


def placed(name: str, place: Callable[[Path, Path], object]) -> Change:
    """Put something at a place in the session, and return its name for the list."""

    def change(session: Path, outside: Path) -> str:
        place(session / name, outside)
        return name

    return change


def replaced(name: str, put: Callable[[Path, Path], object]) -> Case:
    """A session in which a file was replaced by something else."""

    def change(session: Path, outside: Path) -> None:
        (session / name).unlink()
        put(session / name, outside)

    return session(change)


def bound_socket(path: Path, outside: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def sparse(size: int) -> Callable[[Path, Path], None]:
    def put(path: Path, outside: Path) -> None:
        with path.open("wb") as file:
            file.truncate(size)

    return put


def text(content: str | bytes) -> Callable[[Path, Path], object]:
    return lambda path, outside: path.write_bytes(content.encode() if isinstance(content, str) else content)


def card(change: Callable[[dict], object]) -> Case:
    """A session whose card lies, its checksum with it."""

    def retell(session: Path, outside: Path) -> None:
        document = json.loads((session / CARD).read_text())
        change(document)
        (session / CARD).write_text(json.dumps(document))
        sums = json.loads((session / SUMS).read_text())
        sums["files"][CARD] = hashlib.sha256((session / CARD).read_bytes()).hexdigest()
        (session / SUMS).write_text(json.dumps(sums))

    return session(retell)


def summed(name: str, put: Callable[[Path, Path], object]) -> Case:
    """A session in which a file was replaced, its checksum with it."""

    def change(session: Path, outside: Path) -> None:
        put(session / name, outside)
        sums = json.loads((session / SUMS).read_text())
        sums["files"][name] = hashlib.sha256((session / name).read_bytes()).hexdigest()
        (session / SUMS).write_text(json.dumps(sums))

    return session(change)


def zeros(path: Path, rows: int, columns: int, names: str = "c{}") -> None:
    block = pa.table({names.format(index): np.zeros(MB, np.int8) for index in range(columns)})
    with pq.ParquetWriter(path, block.schema, compression="zstd") as writer:
        for _ in range(rows // MB):
            writer.write_table(block)
