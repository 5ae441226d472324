"""Write a campaign into one file: git's history, recordings, results, DVC's cache, approvals, unfinished work.

A tar file, packed with gzip: `manifest.json` first, then git's history as a bundle, then each file once, named by its
SHA-256. No name in the tar file is a path, so none can lead out of the folder; those of the manifest are checked.
"""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rsr.common import Advance, WorkspaceError, cannot_write, ignore, sha256, sync_folder
from rsr.pipelines import verify
from rsr.workspace import SCENARIO_DIR, Workspace
from rsr_tasks import versions
from rsr_tasks.campaign import TABLES, opened, pipeline_of

_WHOLE = ("data", "inbox", "iterations", ".rsr", SCENARIO_DIR, ".dvc/cache")
"""Folders whose files are kept although git ignores them."""
_OF_THIS_MACHINE = {".rsr/lock", ".rsr/python", ".dvc/config.local"}
_UNFINISHED = (".part", ".tmp")


def backup(folder: Path, file: Path, advance: Advance = ignore, table_name: str | None = None) -> Manifest:
    """Write a campaign into one new file, whole or not at all; no loop runs in it meanwhile.

    What is not in it: Prefect's history, secrets (`.dvc/config.local`), settings of git itself, what git ignores
    outside of the campaign's own folders.

    Raises:
        WorkspaceError: the file is there already, or cannot be written; the folder is no campaign, or holds links.
    """
    workspace, file = Workspace.at(folder), file.resolve()
    if file.exists() or file.is_relative_to(workspace.root):
        raise WorkspaceError(
            got="a file that is there already" if file.exists() else "a file inside the campaign",
            expected="a new file outside of the campaign",
            where=str(file),
            next_step="Name another one.",
        )
    with opened(workspace.root, table_name or TABLES[pipeline_of(workspace.settings())]):
        return _pack(workspace, file, advance)


def _pack(workspace: Workspace, file: Path, advance: Advance) -> Manifest:
    unfinished = file.with_name(f".{file.name}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".rsr-", dir=file.parent) as beside:
            history = Path(beside) / HISTORY
            versions.bundle(workspace.root, history)
            manifest = _listed(workspace, history, advance)
            _write(unfinished, manifest, workspace.root, history, advance)
        os.replace(unfinished, file)
        sync_folder(file.parent)
    except OSError as error:
        raise cannot_write(file, error) from error
    finally:
        unfinished.unlink(missing_ok=True)
    return manifest


def _listed(workspace: Workspace, history: Path, advance: Advance) -> Manifest:
    branch, commit = versions.head(workspace.root)
    paths = sorted(set(_paths(workspace.root)))
    inodes: dict[tuple[int, int], int] = {}
    entries = []
    for number, path in enumerate(paths):
        advance(0.5 * number / len(paths), "reading")
        entries.append(_entry(workspace.root, path, inodes))
    return Manifest(
        branch=branch,
        commit=commit,
        history=sha256(history),
        history_size=history.stat().st_size,
        files=tuple(entries),
        disagreements=tuple(relative_words(workspace)),
    )


def relative_words(workspace: Workspace) -> list[str]:
    """List disagreements with DVC's recorded hashes, with paths relative to the campaign."""
    return sorted(words.replace(f"{workspace.root}/", "") for words in verify(workspace))


def _paths(root: Path) -> Iterator[str]:
    """Every file that belongs to the campaign: what git tracks or a person put beside it, and the folders of the loop.

    Raises:
        WorkspaceError: there is a link among them; what it leads to would be missing elsewhere.
    """
    below = (path.relative_to(root).as_posix() for name in _WHOLE for path in (root / name).rglob("*"))
    for name in (*versions.listed(root), *below, *_WHOLE):
        path = root / name
        if path.is_symlink():
            raise WorkspaceError(
                got=f"a link, to {path.readlink()}",
                expected="files and folders, which can be packed",
                where=str(path),
                next_step="Put what it leads to in its place, e.g. with `cp -rL`, or remove it.",
            )
        if path.is_file() and name not in _OF_THIS_MACHINE and not name.endswith(_UNFINISHED):
            yield name


def _entry(root: Path, name: str, inodes: dict[tuple[int, int], int]) -> Entry:
    path = root / name
    found = path.stat()
    inode = inodes.setdefault((found.st_dev, found.st_ino), len(inodes))
    return Entry(
        path=name,
        sha256=sha256(path),
        size=found.st_size,
        mode=found.st_mode & 0o777,
        mtime_ns=found.st_mtime_ns,
        inode=inode,
    )


def _write(file: Path, manifest: Manifest, root: Path, history: Path, advance: Advance) -> None:
    by_hash = {entry.sha256: entry for entry in manifest.files}
    # GNU's format needs no extra headers for these names, so that a reader need not accept any.
    with tarfile.open(file, "w:gz", compresslevel=1, format=tarfile.GNU_FORMAT) as archive:
        text = manifest.model_dump_json().encode()
        archive.addfile(_member(MANIFEST, len(text)), io.BytesIO(text))
        with history.open("rb") as stream:
            archive.addfile(_member(HISTORY, manifest.history_size), stream)
        for number, entry in enumerate(by_hash.values()):
            advance(0.5 + 0.5 * number / len(by_hash), "packing")
            with (root / entry.path).open("rb") as stream:
                archive.addfile(_member(FILES + entry.sha256, entry.size), stream)
    with file.open("rb") as stream:
        os.fsync(stream.fileno())


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o644
    return member


# The archive of a campaign: what is in it, and the checks that what comes from elsewhere has to pass.


MANIFEST, HISTORY, FILES = "manifest.json", "history.bundle", "files/"
LARGEST_MANIFEST = 256 << 20
_HASH = Field(pattern="^[0-9a-f]{64}$")


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Entry(_Record):
    """One file of the campaign. Files of one `inode` were one file under several names, as DVC's cache makes them."""

    path: str = Field(min_length=1, max_length=4096)
    sha256: str = _HASH
    size: int = Field(ge=0)
    mode: int = Field(ge=0, le=0o777)
    mtime_ns: int
    inode: int = Field(ge=0)


class Manifest(_Record):
    """All of a campaign.

    Args:
        branch: git's; None where no branch is checked out.
        commit: what is checked out.
        history: hash and size of the bundle.
        disagreements: what differed from DVC's recorded hashes when the archive was made; usually nothing.
    """

    format: Literal["rsr campaign"] = "rsr campaign"
    version: Literal[1] = 1
    branch: str | None
    commit: str = Field(pattern="^[0-9a-f]{40,64}$")
    history: str = _HASH
    history_size: int = Field(ge=0)
    files: tuple[Entry, ...]
    disagreements: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes that it takes on a disk."""
        return self.history_size + sum({entry.inode: entry.size for entry in self.files}.values())


def parse_manifest(text: bytes, archive: Path) -> Manifest:
    """Read a manifest, of which nothing is used before it was checked.

    Raises:
        WorkspaceError: it is no manifest, or names files outside of the campaign's folder or in git's own.
    """
    try:
        manifest = Manifest.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        got = f"{'.'.join(map(str, first['loc'])) or 'manifest'}: {first['msg']}"
        raise damaged(archive, got, "the archive of a campaign, of version 1") from error
    files = {PurePosixPath(entry.path) for entry in manifest.files}
    if len(files) < len(manifest.files):
        raise damaged(archive, "a file that is listed twice", "each file once")
    for path in files:
        if not _is_inside(path):
            raise damaged(archive, f"a file '{path}', which no campaign has", "files in the campaign's own folder")
        if not files.isdisjoint(path.parents):
            raise damaged(archive, f"'{path}' below another file", "files in folders")
    return manifest


def _is_inside(path: PurePosixPath) -> bool:
    """Whether a restored campaign may have this file: below its folder, no settings of git's, no secrets of DVC's."""
    parts = [part.lower() for part in path.parts]
    if path.is_absolute() or ".." in parts or "\0" in str(path) or any(part.rstrip(". ") == ".git" for part in parts):
        return False
    return parts[:2] not in ([".dvc", "config.local"], [".dvc", "tmp"])


def damaged(archive: Path, got: str, expected: str) -> WorkspaceError:
    return WorkspaceError(
        got=" ".join(got.split())[:300],
        expected=expected,
        where=str(archive),
        next_step="Nothing was restored. Fetch the archive once more, or use another one.",
    )
