"""Read every file that dvc.lock and data.dvc list, and compare its MD5 with theirs: what no time stamp can hide."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import yaml

from rsr.common import WorkspaceError
from rsr.workspace import Workspace

_UNFINISHED = ".part"


def verify(workspace: Workspace) -> list[str]:
    """Compare recordings, results and DVC's cache with their recorded hashes; returns what disagrees, one line each.

    `dvc status` trusts a file whose size and time did not change; this does not.
    """
    wrong = [words for path, recorded in _listed(workspace.root) if (words := _disagreement(path, recorded))]
    cached = workspace.root / ".dvc" / "cache" / "files" / "md5"
    damaged = [path for path in sorted(cached.glob("??/*")) if path.suffix != ".tmp" and not _is_named_rightly(path)]
    return [*wrong, *(f"{path}: not what its name says" for path in damaged)]


def _listed(root: Path) -> list[tuple[Path, str]]:
    """Every output and dependency with its recorded hash, each once."""
    listed = [*_entries(root / "dvc.lock"), *_entries(root / "data.dvc")]
    return [(root / path, recorded) for path, recorded in dict.fromkeys(listed)]


def _entries(ledger: Path) -> list[tuple[str, str]]:
    """Path and hash of what a file of DVC lists, in stages or by itself."""
    if not ledger.exists():
        return []
    try:
        document = yaml.safe_load(ledger.read_text()) or {}
        parts = [*document.get("stages", {}).values(), document]
        entries = [entry for part in parts for kind in ("deps", "outs") for entry in part.get(kind, [])]
        return [(entry["path"], entry["md5"]) for entry in entries]
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError, AttributeError) as error:
        raise WorkspaceError(
            got=f"{type(error).__name__}: {' '.join(str(error).split())}",
            expected="a file of DVC",
            where=str(ledger),
            next_step="Run the loop again: it takes a torn file back from git.",
        ) from error


def _disagreement(path: Path, recorded: str) -> str:
    if not path.exists():
        return f"{path}: not there; `dvc pull` or `dvc checkout` brings it back"
    if not (path.is_file() or path.is_dir()):  # a device or a pipe may have no end
        return f"{path}: neither a file nor a folder"
    computed = _md5_of_folder(path) if path.is_dir() else _md5(path)
    return "" if computed == recorded else f"{path}: MD5 {computed[:8]}, recorded as {recorded[:8]}"


def _md5_of_folder(folder: Path) -> str:
    """DVC's hash of a folder: of the JSON list of its files."""
    files = sorted(
        (path.relative_to(folder) for path in folder.rglob("*") if path.is_file()), key=lambda path: path.parts
    )
    entries = [{"md5": _md5(folder / path), "relpath": path.as_posix()} for path in files if path.suffix != _UNFINISHED]
    return hashlib.md5(json.dumps(entries, sort_keys=True).encode(), usedforsecurity=False).hexdigest() + ".dir"


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _is_named_rightly(path: Path) -> bool:
    """DVC names every object in its cache by its MD5."""
    return _md5(path) == path.parent.name + path.stem
