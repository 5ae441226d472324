"""Sources of a session: kept beside it, or at least named with its checksum."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rsr.common import SessionError, inside, read_object, sha256

Keep = Literal["copy", "hash"]
SOURCE_FILE = "raw/source.json"
MAPPING_FILE = "raw/mapping.yaml"
_MOST_FILES = 100_000


@dataclass(frozen=True)
class RawFile:
    """One file of a source.

    Args:
        name: path under the session's folder.
    """

    path: Path
    name: str
    size: int
    sha256: str


def raw_files(sources: Sequence[Path]) -> tuple[RawFile, ...]:
    """List and hash every file of the sources: `raw/files/<source>/<path in it>`."""
    found = []
    for source in sources:
        files = sorted(path for path in source.rglob("*") if path.is_file()) if source.is_dir() else [source]
        if not files or len(files) > _MOST_FILES:
            raise SessionError(
                got=f"{len(files)} files",
                expected=f"a file, or a folder of at most {_MOST_FILES}",
                where=str(source),
                next_step="Name the recording itself.",
            )
        for path in files:
            relative = path.relative_to(source.parent) if source.resolve() != source.root else path.name
            found.append(RawFile(path, f"raw/files/{relative}", path.stat().st_size, sha256(path)))
    if len({file.name for file in found}) < len(found):
        raise SessionError(
            got="two sources of one name",
            expected="each name once",
            where=", ".join(str(source) for source in sources),
            next_step="Ingest them one by one, or rename one.",
        )
    return tuple(found)


def describe(files: Sequence[RawFile], keep: Keep, details: dict[str, Any]) -> bytes:
    """The document that stands beside a session."""
    listed = [{"name": file.name, "bytes": file.size, "sha256": file.sha256} for file in files]
    return (json.dumps(details | {"kept": keep == "copy", "files": listed}, indent=1) + "\n").encode()


def made_from(folder: Path) -> tuple[str, ...]:
    """Checksums of the files that a stored session was made from; nothing where that is not known."""
    try:
        document = read_object(inside(folder, SOURCE_FILE))
        return tuple(sorted(str(file["sha256"]) for file in document["files"]))
    except (OSError, ValueError, KeyError, TypeError):
        return ()


def made_with(folder: Path) -> str | None:
    """Read the mapping that a session was made with, as its text; None where there is none."""
    try:
        return inside(folder, MAPPING_FILE).read_text()
    except (OSError, ValueError):
        return None
