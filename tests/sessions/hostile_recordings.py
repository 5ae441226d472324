"""Recordings that unfold without end, lead elsewhere or are none, in the formats that labs send."""

from __future__ import annotations

import io
import json
import sqlite3
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from mcap.writer import CompressionType, Writer as McapWriter

from rsr.sessions.importers import read_contactnets
from rsr.sessions.ingest.session import ingest
from rsr.sessions.intake.gate import admitted, check_stored
from rsr.sessions.intake.screening import IntakeLimits
from tests.hostile_trials import Case
from tests.sessions.foreign_files import SAMPLES, pendulum, write_csv
from tests.sessions.hostile_sessions import INFO, MB, SUMS


def ingested(name: str, put: Callable[[Path, Path], object]) -> Case:
    """A recording of somebody's, which is not taken in; a good one beside it is."""

    def make(folder: Path, outside: Path) -> Callable[[], object]:
        put(folder / name, outside)
        good = write_csv(folder.parent)

        def read() -> object:
            try:
                return ingest([folder / name], pendulum(), folder.parent / "out")
            finally:
                assert not list((folder.parent / "out").rglob("*.part")), "half a session is left"
                assert ingest([good], pendulum(), folder.parent / "good", given=SAMPLES["csv"][1]).episodes

        return read

    return make


def hdf5(build: Callable[[h5py.File, Path], object]) -> Case:
    def put(path: Path, outside: Path) -> None:
        with h5py.File(path, "w") as file:
            build(file, outside)

    return ingested("run.h5", put)


def circle(file: h5py.File, outside: Path) -> None:
    group = file.create_group("data/demo_0")
    for index in range(30):
        group[f"again{index}"] = group


def fan(file: h5py.File, outside: Path) -> None:
    """Each group is in the one above it fifty times: 50 ** 8 ways down."""
    below = file.create_group("level7")
    below["x"] = np.zeros(3)
    for level in range(6, -1, -1):
        group = file.create_group(f"level{level}")
        for index in range(50):
            group[f"g{index}"] = below
        below = group


def many(file: h5py.File, outside: Path) -> None:
    data = file.create_group("data")
    shared = file.create_dataset("shared", data=np.zeros(3))
    for part in range(20):
        group = data.create_group(f"demo_{part}")
        for index in range(4000):
            group[f"x{index}"] = shared


def chunked(file: h5py.File, outside: Path) -> None:
    shape = (3, 300 * MB)
    file.create_dataset("x", (3, 4), maxshape=(None, None), chunks=(1, shape[1]), dtype="f8", compression="gzip")


def virtual(file: h5py.File, outside: Path) -> None:
    layout = h5py.VirtualLayout((9, 2), "f8")
    layout[:] = h5py.VirtualSource(str(outside / "secret.bin"), "x", (9, 2))
    file.create_virtual_dataset("x", layout)


def mcap(
    write: Callable[[McapWriter], object], compression: CompressionType = CompressionType.ZSTD, **options: Any
) -> Case:
    def put(path: Path, outside: Path) -> None:
        with path.open("wb") as stream:
            writer = McapWriter(stream, compression=compression, **options)
            writer.start()
            write(writer)
            writer.finish()

    return ingested("run.mcap", put)


def new_channel(
    writer: McapWriter, kind: str = "", text: bytes = b"", encoding: str = "json", schema: str = "jsonschema"
) -> int:
    number = writer.register_schema(kind, schema, text) if kind else 0
    return writer.register_channel("/x", encoding, number)


def messages(writer: McapWriter, content: bytes, count: int = 3, **options: Any) -> None:
    channel = new_channel(writer, **options)
    for index in range(count):
        writer.add_message(channel, index * 10**6, content, index * 10**6)


NESTED = "\n".join(
    [
        "E[500] a",
        *(f"{'=' * 80}\nMSG: p/{name}\n{below}[500] a" for name, below in zip("EDCB", "DCBA", strict=True)),
        f"{'=' * 80}\nMSG: p/A\nuint8 NOTHING=1",
    ]
).encode()


def database(*statements: str) -> Case:
    def put(path: Path, outside: Path) -> None:
        connection = sqlite3.connect(path)
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.close()

    return ingested("run.db3", put)


TOPICS = "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT)"
TOPIC = "INSERT INTO topics VALUES(1, '/x', 'std_msgs/msg/Float64', 'cdr')"
MESSAGES = "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB)"


def view(name: str, /, **columns: str) -> str:
    """A table that is a program, which gives rows for ever."""
    chosen = ", ".join(f"{what} AS {column}" for column, what in columns.items())
    return (
        f"CREATE VIEW {name} AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT {chosen} FROM c"
    )


def npz(build: Callable[[zipfile.ZipFile], object]) -> Case:
    def put(path: Path, outside: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            build(archive)

    return ingested("run.npz", put)


def member(shape: tuple[int, ...], descr: str = "<f8", content: bytes = b"") -> bytes:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": descr, "fortran_order": False, "shape": shape})
    return header.getvalue() + content


def bytes_of_zeros(archive: zipfile.ZipFile) -> None:
    content = member((56 * MB,), "|u1", bytes(56 * MB))
    for index in range(4):
        archive.writestr(f"x{index}.npy", content)


def folder(**files: str | bytes) -> Callable[[Path, Path], None]:
    """A folder of files, `a__b` for `a.b`."""

    def put(path: Path, outside: Path) -> None:
        for name, content in files.items():
            file = path / name.replace("__", ".").replace("_in_", "/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode() if isinstance(content, str) else content)

    return put


def torch(build: Callable[[Any], object]) -> Callable[[Path, Path], None]:
    def put(path: Path, outside: Path) -> None:
        import torch

        torch.save(build(torch), path)

    return put


def pace(torch: Any, **changes: Any) -> dict[str, Any]:
    return {"time": torch.arange(9.0), "dof_pos": torch.zeros(9, 2), "des_dof_pos": torch.zeros(9, 2), **changes}


def lerobot(info: Any = None, **more: Any) -> Callable[[Path, Path], None]:
    good = {
        "codebase_version": "v3.0",
        "fps": 10,
        "features": {"action": {"dtype": "float32", "shape": [2], "names": None}},
    }

    def put(path: Path, outside: Path) -> None:
        (path / "meta").mkdir(parents=True)
        (path / "data").mkdir()
        (path / INFO).write_text(info if isinstance(info, str) else json.dumps({**good, **(info or {})}))
        rows = pa.array(np.zeros((9, 2)).tolist())
        frames = pa.array(np.arange(9))
        table = {"episode_index": pa.array([0] * 9), "timestamp": frames.cast(pa.float64()), "action": rows}
        pq.write_table(pa.table(table), path / "data" / "a.parquet")
        if "sums" in more:
            (path / SUMS).write_text(json.dumps({"files": {more["sums"](outside): "0" * 64}}))

    return put


def dropped(put: Callable[[Path, Path], object], name: str) -> Case:
    def make(folder: Path, outside: Path) -> Callable[[], object]:
        put(folder / name, outside)

        def read() -> object:
            with admitted([folder / name], IntakeLimits(64)) as (found,):
                return check_stored(found)

        return read

    return make


def tosses(put: Callable[[Path, Path], object]) -> Case:
    def make(folder: Path, outside: Path) -> Callable[[], object]:
        put(folder / "0.pt", outside)
        return lambda: read_contactnets(folder)

    return make


def lying_record(path: Path, outside: Path) -> None:
    path.write_bytes(b"\x89MCAP0\r\n" + struct.pack("<BQ", 6, 1 << 62) + b"x" * 100)


def endless_records(writer: McapWriter) -> None:
    """A megabyte-sized file of chunks that hold nothing but empty records."""
    channel = new_channel(writer)
    for index in range(40):
        writer.add_message(channel, index, bytes(20 * MB), index)


def zip_of_folders(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for index in range(100_001):
            archive.writestr(zipfile.ZipInfo(f"d{index}/"), b"")
