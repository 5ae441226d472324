"""NumPy archives: every array of one or two dimensions is a stream. No pickles: arrays of objects are refused."""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO

import numpy as np

from rsr.sessions.importers.recording import (
    HEAD_ROWS,
    MAX_COLUMNS,
    Format,
    Recording,
    Samples,
    Stream,
    Wanted,
    check_size,
    printable,
    unreadable,
)

_HEADER_MOST = 10_000


def open_npz(path: Path) -> Recording:
    """Open an archive; rows are the first axis. What is not numbers, or has more axes, is left out and said."""
    streams, skipped = [], []
    damage = []
    with zipfile.ZipFile(path) as archive:
        if len(archive.infolist()) > MAX_COLUMNS:
            raise unreadable(path, f"{len(archive.infolist())} arrays", f"at most {MAX_COLUMNS}")
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            try:
                shape = _shape(path, archive, info)
                head = _array(path, archive, info)[:HEAD_ROWS].copy() if shape is not None else None
            except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError) as error:
                damage.append(f"array {printable(name)} cannot be read: {printable(str(error), 100)}")
                continue
            if shape is None or head is None:
                skipped.append(printable(name))
                continue
            columns = tuple(str(index) for index in range(head.shape[1]))
            streams.append(Stream(name, columns, Samples.unstamped(head), named=False))
    if not streams:
        raise unreadable(
            path, f"no arrays of numbers [N] or [N, C] {'; '.join(damage[:3])}", "an archive of such arrays, rows first"
        )

    def load(part: str, wanted: Wanted, clock: str) -> dict[str, Samples]:
        found = {}
        with zipfile.ZipFile(path) as archive:
            for name, columns in wanted.items():
                values = _array(path, archive, archive.getinfo(f"{name}.npy"))
                found[name] = Samples.unstamped(values[:, [int(each) for each in columns]])
        return found

    notes = (f"Left out, not [N] or [N, C] numbers: {', '.join(skipped)}.",) if skipped else ()
    return Recording("npz", path, (path.stem,), tuple(streams), load, damage=damage, notes=notes)


def array_header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and dtype that a NumPy array claims at its beginning."""
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    try:
        shape, _, dtype = read(stream, max_header_size=_HEADER_MOST)
    except tokenize.TokenError as error:  # of a header without its closing bracket; of others NumPy makes ValueError
        raise ValueError(f"Cannot parse header: {error}") from error
    return shape, dtype


def _shape(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> tuple[int, ...] | None:
    """Shape of a member that can be a stream. Its header must agree with its size before anything is allocated."""
    with archive.open(info) as member:
        shape, dtype = array_header(member)
        header = member.tell()
    if dtype.hasobject:
        raise unreadable(
            path,
            f"array {info.filename} of Python objects",
            "plain numbers",
            "Objects are pickles and could run code when read: save the array with a numeric dtype.",
        )
    if dtype.kind not in "iufb" or len(shape) not in (1, 2) or 0 in shape:
        return None
    check_size(path, shape[0], shape[1] if len(shape) == 2 else 1)
    if info.file_size != header + int(np.prod(shape, dtype=object)) * dtype.itemsize:
        raise unreadable(path, f"array {info.filename} whose header and size disagree", "the file as it was saved")
    return tuple(int(size) for size in shape)


def _array(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    """A member as float64 [N, C]; the archive's own checksum is verified while it is read."""
    _shape(path, archive, info)
    with archive.open(info) as member:
        values = np.lib.format.read_array(member, allow_pickle=False, max_header_size=_HEADER_MOST)
        member.read()  # to the end, where zipfile compares the checksum
    return np.asarray(values, float).reshape(len(values), -1)


FORMAT = Format("npz", "a NumPy archive of arrays [N] or [N, C]", lambda path: path.suffix.lower() == ".npz", open_npz)
