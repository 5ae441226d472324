"""Recordings from outside are data, never code: what could run, fill the disk or lead elsewhere is refused unread.

Sizes are those that files claim, so that a sparse file, a packed nothing or an array's header with a large number in
it is found before anything is allocated. What is inside an archive is screened again once it is unpacked.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rsr.errors import Refused
from rsr.sessions._contents import code_in, unfolded_bytes
from rsr.sessions.importers.contract import printable

LARGEST_MB = 1024
"""Megabytes (2**20 bytes) that a recording may have, packed or unpacked, unless the settings say otherwise."""
MOST_FILES = 100_000

_DATA = "numbers: recordings are data, and are never allowed to run"
_PLAIN = "Save the numbers as CSV, parquet, npz or HDF5; arrays with a numeric dtype, torch files with tensors alone."
_SPLIT = "Cut the recording into several, or allow more with `--largest-mb` (in a campaign: reality.largest_mb)."


@dataclass(frozen=True)
class Limits:
    """How much may come in at once.

    Args:
        largest_mb: of all files of a recording together, unpacked, in 2**20 bytes.
    """

    largest_mb: int = LARGEST_MB
    most_files: int = MOST_FILES

    @property
    def largest_bytes(self) -> int:
        return self.largest_mb << 20


def screen(path: Path, limits: Limits) -> None:
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


def too_large(path: Path, last: str, size: int, limits: Limits) -> Refused:
    """What to raise where so many bytes have been counted up to a file, the last of them."""
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
