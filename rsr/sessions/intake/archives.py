"""Archives that a lab sends: unpacked member by member, each looked at first. Nothing is written outside the folder."""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any, cast

from rsr.common import SessionError, cannot_write
from rsr.sessions.importers import printable, unreadable
from rsr.sessions.intake.screening import IntakeLimits, refused, too_large

_TARS: dict[str, Callable[[Path], Any]] = {
    ".tar": lambda path: path.open("rb"),
    ".tar.gz": gzip.open,
    ".tgz": gzip.open,
    ".tar.bz2": bz2.open,
    ".tbz2": bz2.open,
    ".tar.xz": lzma.open,
    ".txz": lzma.open,
}
SUFFIXES = (".zip", *_TARS)
_CHUNK = 1 << 20
_LARGEST_HEADER = 4 << 20
_REPACK = "Pack the folder of the recording anew: plain files, named from that folder on."
_DAMAGED = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    ValueError,
    NotImplementedError,
)
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO}
"""Errors of the folder that is written to; others are those of the archive, such as a name that is too long."""


@dataclass(frozen=True)
class _Member:
    """One entry of an archive; `open` is None for a folder."""

    name: str
    size: int
    open: Callable[[], IO[bytes]] | None


def is_archive(path: Path) -> bool:
    """Tell by the name."""
    return path.is_file() and path.name.lower().endswith(SUFFIXES)


def unpack(archive: Path, folder: Path, limits: IntakeLimits) -> Path:
    """Unpack into a folder that is empty; returns what was packed: its only entry, or else the folder.

    Raises:
        Refused: a member leads out, is a link or a device, or there is more of it than is allowed.
        SessionError: the archive is damaged or locked.
    """
    try:
        members = _zipped(archive, limits) if archive.suffix.lower() == ".zip" else _tarred(archive)
        _write(archive, members, folder, limits)
    except _DAMAGED as error:
        if isinstance(error, OSError) and error.errno in _DISK:
            raise cannot_write(folder, error) from error
        got = f"an archive that cannot be read ({type(error).__name__}: {error})"
        raise unreadable(archive, got, "a whole one") from error
    found = [entry for entry in sorted(folder.iterdir()) if entry.name not in ("__MACOSX", ".DS_Store")]
    return found[0] if len(found) == 1 else folder


def _write(archive: Path, members: Iterator[_Member], folder: Path, limits: IntakeLimits) -> None:
    """Bytes are counted as they come: what an archive promises may be a lie."""
    total = 0
    for number, member in enumerate(members, 1):
        if number > limits.most_files:
            raise refused(archive, f"more than {limits.most_files} members", "fewer", _REPACK)
        target = folder / _inside(archive, member.name)
        if member.open is None:
            target.mkdir(parents=True, exist_ok=True)
            continue
        if total + member.size > limits.largest_bytes:
            raise too_large(archive, printable(member.name), total + member.size, limits)
        if target.exists():
            raise refused(archive, f"two members '{member.name}'", "each name once", _REPACK)
        target.parent.mkdir(parents=True, exist_ok=True)
        with member.open() as source, target.open("xb") as sink:
            while chunk := source.read(_CHUNK):
                total += len(chunk)
                if total > limits.largest_bytes:
                    raise too_large(archive, printable(member.name), total, limits)
                sink.write(chunk)


def _inside(archive: Path, name: str) -> PurePosixPath:
    """The place of a member below the folder, read as either system reads it."""
    windows, posix = PureWindowsPath(name), PurePosixPath(name)
    if posix.is_absolute() or windows.drive or windows.root or ".." in (*posix.parts, *windows.parts):
        got = f"member '{name}', which leads out of the archive"
        raise refused(archive, got, "names below the archive's own folder", _REPACK)
    return posix


def _zipped(path: Path, limits: IntakeLimits) -> Iterator[_Member]:
    with zipfile.ZipFile(path) as archive:
        if len(archive.infolist()) > limits.most_files:  # before the first of them is written
            raise refused(path, f"more than {limits.most_files} members", "fewer", _REPACK)
        for info in archive.infolist():
            if info.flag_bits & 1:
                raise unreadable(path, "an archive with a password", "an open one", "Pack it without a password.")
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _special(path, info.filename)
            opener = None if info.is_dir() else lambda info=info: archive.open(info)
            yield _Member(info.filename, info.file_size, opener)


def _tarred(path: Path) -> Iterator[_Member]:
    suffix = next(suffix for suffix in sorted(_TARS, key=len, reverse=True) if path.name.lower().endswith(suffix))
    with _TARS[suffix](path) as stream, tarfile.open(fileobj=cast(Any, Guarded(stream, path)), mode="r:") as archive:
        for info in archive:
            if not (info.isreg() or info.isdir()):
                raise _special(path, info.name)
            opener = None if info.isdir() else lambda info=info: _content(archive, info)
            yield _Member(info.name, info.size, opener)


def _content(archive: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    content = archive.extractfile(info)
    if content is None:
        raise tarfile.ReadError(f"nothing in {info.name}")
    return content


class Guarded:
    """A stream whose reader cannot be made to take it whole: tarfile reads a long header at once, however long."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._stream, self._path = stream, path
        self.seek, self.tell, self.close = stream.seek, stream.tell, stream.close

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _LARGEST_HEADER:
            raise refused(self._path, f"a header of {size} bytes", f"at most {_LARGEST_HEADER}", _REPACK)
        return self._stream.read(size)


def _special(path: Path, name: str) -> SessionError:
    got = f"member '{name}', a link or a device"
    return refused(
        path, got, "files and folders", "Pack what the link leads to: `tar --dereference`, `zip` without -y."
    )
