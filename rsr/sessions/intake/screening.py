"""Recordings from outside are data, never code: what could run, fill the disk or lead elsewhere is refused unread.

Sizes are those that files claim, so that a sparse file, a packed nothing or an array's header with a large number in
it is found before anything is allocated. What is inside an archive is screened again once it is unpacked.
"""

from __future__ import annotations

import os
import pickle
import stat
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rsr.common import Refused
from rsr.sessions.importers import array_header, printable

LARGEST_MB = 1024
"""Megabytes (2**20 bytes) that a recording may have, packed or unpacked, unless the settings say otherwise."""
MOST_FILES = 100_000

_DATA = "numbers: recordings are data, and are never allowed to run"
_PLAIN = "Save the numbers as CSV, parquet, npz or HDF5; arrays with a numeric dtype, torch files with tensors alone."
_SPLIT = "Cut the recording into several, or allow more with `--largest-mb` (in a campaign: reality.largest_mb)."


@dataclass(frozen=True)
class IntakeLimits:
    """How much may come in at once.

    Args:
        largest_mb: of all files of a recording together, unpacked, in 2**20 bytes.
    """

    largest_mb: int = LARGEST_MB
    most_files: int = MOST_FILES

    @property
    def largest_bytes(self) -> int:
        return self.largest_mb << 20


def screen(path: Path, limits: IntakeLimits) -> None:
    """Refuse a file or a folder that is not safe to be read.

    Raises:
        Refused: it is too large, could run code when read, leads elsewhere, or is no file at all.
    """
    total = 0
    for number, file in enumerate(_files(path), 1):
        if number > limits.most_files:
            raise refused(path, f"more than {limits.most_files} files", f"at most {limits.most_files}", _SPLIT)
        total += file.stat().st_size
        if total <= limits.largest_bytes:
            total += max(0, unfolded_bytes(file) - file.stat().st_size)
        if total > limits.largest_bytes:
            raise too_large(path, file.name, total, limits)
        if (code := code_in(file)) is not None:
            raise refused(path, f"'{file.name}': {code}, which may run code when it is read", _DATA, _PLAIN)


def refused(path: Path, got: str, expected: str, next_step: str) -> Refused:
    where = printable(str(path), 300)
    return Refused(got=printable(" ".join(got.split()), 300), expected=expected, where=where, next_step=next_step)


def too_large(path: Path, last: str, size: int, limits: IntakeLimits) -> Refused:
    """Refuse where so many bytes have been counted up to a file, the last of them."""
    got = f"{size / 2**20:,.0f} MB or more when read, up to '{last}'"
    return refused(path, got, f"at most {limits.largest_mb:,} MB", _SPLIT)


def _files(path: Path) -> Iterator[Path]:
    """Every file, sorted; links that lead out, devices and pipes are refused."""
    root = path.resolve()
    if not root.is_dir():
        _check_kind(root, root)
        yield root
        return
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted([*names, *folders]):
            entry = Path(folder) / name
            _check_kind(root, entry)
            if name in names:
                yield entry


def _check_kind(root: Path, entry: Path) -> None:
    if entry.is_symlink() and not entry.resolve().is_relative_to(root):
        got = f"a link '{printable(entry.name)}' that leads out, to {printable(str(entry.readlink()))}"
        raise refused(root, got, "files", "Copy what it leads to in its place, e.g. with `cp -rL`.")
    mode = entry.stat().st_mode if entry.exists() else 0
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise refused(root, f"'{printable(entry.name)}', which is no file", "files and folders", "Leave it out.")


# What a single file would become when it is read: how large, and whether it could run code. Nothing is unpacked.

_PICKLES = {".pkl", ".pickle", ".p", ".pck", ".joblib", ".dill", ".cloudpickle"}
_TORCH = {".pt", ".pth", ".ckpt"}
_DAMAGED = (
    OSError,
    ValueError,
    EOFError,
    RuntimeError,
    NotImplementedError,
    zipfile.BadZipFile,
    pa.ArrowException,
)
"""Errors of a damaged file: whoever reads it says so, and says it better."""


def unfolded_bytes(file: Path) -> int:
    """Bytes that a small file becomes when it is read, as far as its format says so."""
    readers = {".npz": _in_zip, ".pt": _in_zip, ".pth": _in_zip, ".npy": _in_npy, ".parquet": _in_parquet}
    read = readers.get(file.suffix.lower())
    try:
        return read(file) if read is not None else 0
    except _DAMAGED:
        return 0


def code_in(file: Path) -> str | None:
    """Say what in a file could run code when it is read; None where nothing could."""
    suffix = file.suffix.lower()
    if suffix in _TORCH:
        return _code_in_tensors(file)
    if suffix in _PICKLES or _looks_pickled(file):
        return "a pickle"
    if suffix in (".npy", ".npz"):
        objects = [name for name, dtype in _dtypes(file) if dtype.hasobject]
        return f"array '{objects[0]}' of Python objects, which is a pickle" if objects else None
    return None


def _in_zip(file: Path) -> int:
    """Sizes that the members claim, by the archive's list or by the headers of their arrays."""
    if not zipfile.is_zipfile(file):
        return 0
    with zipfile.ZipFile(file) as archive:
        return sum(max(member.file_size, _claim_of(archive, member)) for member in archive.infolist())


def _claim_of(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    if not member.filename.endswith(".npy"):
        return 0
    with archive.open(member) as stream:
        return _size(*array_header(stream))


def _in_npy(file: Path) -> int:
    with file.open("rb") as stream:
        return _size(*array_header(stream))


def _size(shape: tuple[int, ...], dtype: np.dtype) -> int:
    return int(np.prod([int(size) for size in shape], dtype=object)) * dtype.itemsize


def _in_parquet(file: Path) -> int:
    """Eight bytes a number: runs of equal ones take next to nothing on disk."""
    with pq.ParquetFile(file) as opened:
        groups = [opened.metadata.row_group(index) for index in range(opened.metadata.num_row_groups)]
        return 8 * sum(group.column(index).num_values for group in groups for index in range(group.num_columns))


def _looks_pickled(file: Path) -> bool:
    """By the first and the last byte of every protocol since 2003."""
    with file.open("rb") as stream:
        head = stream.read(3)
        if len(head) < 3 or head[0] != 0x80 or not 2 <= head[1] <= 5:
            return False
        stream.seek(-1, os.SEEK_END)
        return stream.read(1) == pickle.STOP


def _dtypes(file: Path) -> Iterator[tuple[str, np.dtype]]:
    try:
        if file.suffix.lower() == ".npy":
            with file.open("rb") as stream:
                yield file.stem, array_header(stream)[1]
        elif zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                for member in archive.infolist():
                    if member.filename.endswith(".npy"):
                        with archive.open(member) as stream:
                            yield member.filename[: -len(".npy")], array_header(stream)[1]
    except _DAMAGED:
        return


def _code_in_tensors(file: Path) -> str | None:
    """A torch file is a pickle as well: torch's restricted reader makes tensors of it and nothing else."""
    import torch  # here: it takes seconds to load, and few recordings are torch files

    try:
        torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        return f"a torch file that holds more than tensors ({_reason(str(error))})"
    except Exception:  # damaged, which torch says with errors of many kinds
        return None
    return None


def _reason(words: str) -> str:
    found = [line.strip() for line in words.splitlines() if "GLOBAL" in line or "WeightsUnpickler error" in line]
    return found[0] if found else "a pickle"
