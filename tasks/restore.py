"""Bring a campaign back from its archive, on any machine and for any user: whole and verified, or not at all."""

from __future__ import annotations

import errno
import gzip
import hashlib
import os
import shutil
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from rsr.common import Advance, Refused, WorkspaceError, cannot_write, ignore, write_text
from rsr.pipelines import PYTHON_FILE
from rsr.sessions import Guarded
from rsr.workspace import CHAIN_FILE, Workspace
from rsr_tasks import versions
from rsr_tasks.backup import (
    FILES,
    HISTORY,
    LARGEST_MANIFEST,
    MANIFEST,
    Entry,
    Manifest,
    damaged,
    parse_manifest,
    relative_words,
)

_CHUNK = 1 << 20
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO, errno.EFBIG}


def restore(archive: Path, folder: Path, advance: Advance = ignore) -> tuple[Workspace, Manifest]:
    """Make a campaign of its archive, in a new or empty folder.

    Every file is compared with the hash in the archive, and then with those that DVC recorded. Nothing of the archive
    is run, and git's settings and hooks are this user's own.

    Raises:
        WorkspaceError: the folder is not empty, the disk is full, or the archive is damaged or no archive of ours.
    """
    folder = folder.resolve()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise WorkspaceError(
            got="a folder with something in it" if folder.is_dir() else "a file",
            expected="a new or empty folder",
            where=str(folder),
            next_step="Name another one: a campaign is never restored over something else.",
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".part", dir=folder.parent))
    except OSError as error:
        raise cannot_write(folder, error) from error
    try:
        manifest = _unpack(archive, unfinished, advance)
        unfinished.chmod(0o755)
        os.replace(unfinished, folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return Workspace(folder), manifest


def _unpack(archive: Path, root: Path, advance: Advance) -> Manifest:
    with _explained(archive, root), gzip.open(archive) as unpacked, _opened(unpacked, archive) as members:
        manifest = _manifest(members, archive)
        _check_space(root, manifest)
        history = root / HISTORY
        _take(members, archive, HISTORY, manifest.history, manifest.history_size, history)
        versions.unbundle(root, history, manifest.branch, manifest.commit)
        history.unlink()
        _take_files(members, archive, manifest, root, advance)
        if len(unpacked.read(_CHUNK)) == _CHUNK:  # to the end, where gzip's checksum is
            raise damaged(archive, "more after its last member", "an archive made by `rsr backup`")
    Workspace(root).data_dir.mkdir(exist_ok=True)  # empty before the first recording, so not among the files
    if not (root / CHAIN_FILE).is_file():
        raise damaged(archive, f"no {CHAIN_FILE} in it", "a campaign")
    write_text(root / PYTHON_FILE, f"{sys.executable}\n")
    if (found := tuple(relative_words(Workspace(root)))) != manifest.disagreements:
        other = next(iter({*found} ^ {*manifest.disagreements}))
        raise damaged(archive, f"what does not agree with DVC's hashes ({other})", "what was backed up")
    return manifest


def _opened(stream: Any, archive: Path) -> tarfile.TarFile:
    return tarfile.open(fileobj=cast(Any, Guarded(stream, archive)), mode="r:")


@contextmanager
def _explained(archive: Path, root: Path) -> Iterator[None]:
    """Separate errors of the disk from faults of the archive."""
    try:
        yield
    except OSError as error:
        if error.errno in _DISK and error.filename != str(archive):
            raise cannot_write(root.parent, error) from error
        raise damaged(archive, f"{type(error).__name__}: {error}", "an archive made by `rsr backup`") from error
    except (tarfile.TarError, EOFError, zlib.error, ValueError, Refused) as error:
        raise damaged(archive, f"{type(error).__name__}: {error}", "an archive made by `rsr backup`") from error


def _manifest(members: tarfile.TarFile, archive: Path) -> Manifest:
    member = members.next()
    if member is None or member.name != MANIFEST or not member.isreg() or member.size > LARGEST_MANIFEST:
        raise damaged(archive, "no manifest in it", "an archive made by `rsr backup`")
    content = members.extractfile(member)
    parts = iter(lambda: content.read(_CHUNK) if content else b"", b"")
    return parse_manifest(b"".join(parts), archive)


def _check_space(root: Path, manifest: Manifest) -> None:
    free = shutil.disk_usage(root).free
    if free < 1.1 * manifest.size + manifest.history_size:
        raise WorkspaceError(
            got=f"{free / 1e6:.0f} MB of free space",
            expected=f"{manifest.size / 1e6:.0f} MB for the campaign, and some to work",
            where=str(root.parent),
            next_step="Free some space, or restore it on another disk; nothing was restored.",
        )


def _take_files(members: tarfile.TarFile, archive: Path, manifest: Manifest, root: Path, advance: Advance) -> None:
    wanted: dict[str, list[Entry]] = {}
    for entry in manifest.files:
        wanted.setdefault(entry.sha256, []).append(entry)
    for number, (digest, entries) in enumerate(wanted.items()):  # in the order in which they were packed
        advance(number / len(wanted), "restoring")
        first = root / entries[0].path
        first.parent.mkdir(parents=True, exist_ok=True)
        _take(members, archive, FILES + digest, digest, entries[0].size, first)
        _name_again(root, entries)
    if members.next() is not None:
        raise damaged(archive, "more members than the manifest lists", "an archive made by `rsr backup`")


def _name_again(root: Path, entries: list[Entry]) -> None:
    """Give one content all its names: links of one file where it was one, or else copies."""
    written: dict[int, Path] = {entries[0].inode: root / entries[0].path}
    for entry in entries[1:]:
        path = root / entry.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if entry.inode in written:
            os.link(written[entry.inode], path)
        else:
            shutil.copyfile(root / entries[0].path, path)
            written[entry.inode] = path
    for entry in entries:
        os.utime(root / entry.path, ns=(entry.mtime_ns, entry.mtime_ns))
        (root / entry.path).chmod(entry.mode | 0o400)


def _take(members: tarfile.TarFile, archive: Path, name: str, digest: str, size: int, target: Path) -> None:
    """Write the next member, which must be this one, with this content."""
    member = members.next()
    if member is None or member.name != name or not member.isreg() or member.size != size:
        raise damaged(archive, f"'{member.name if member else 'nothing'}' in place of '{name}'", "its next member")
    content = members.extractfile(member)
    if content is None or _copy(content, target) != digest:
        raise damaged(archive, f"a content of '{name}' that is not what its hash says", "the bytes that were packed")


def _copy(source: IO[bytes], target: Path) -> str:
    digest = hashlib.sha256()
    with target.open("xb") as sink:
        while chunk := source.read(_CHUNK):
            digest.update(chunk)
            sink.write(chunk)
    return digest.hexdigest()
