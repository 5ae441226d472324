"""Writing files so that a crash never leaves half of one: a temporary file beside the target, then a rename."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rsr.common.errors import WorkspaceError
from rsr.common.outside import parse_json

DAMAGED = (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile)
"""Errors of reading an absent, cut or altered JSON or .npz file."""


def write_bytes(path: Path, content: bytes) -> None:
    """Write atomically and durably; a full disk or a read-only folder is a WorkspaceError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise cannot_write(path, error) from error


def sync_folder(folder: Path) -> None:
    """Make the folder's entries durable, as fsync does for a file's bytes."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def cannot_write(path: Path, error: OSError) -> WorkspaceError:
    return WorkspaceError(
        got=error.strerror or str(error),
        expected="a writable folder with free space",
        where=str(path),
        next_step="Free some space or correct the permissions, then run the same command again: nothing was lost.",
    )


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def write_json(path: Path, document: Any) -> None:
    """Write JSON with sorted keys and a final newline, so that equal content has equal bytes."""
    write_text(path, json.dumps(document, indent=1, sort_keys=True, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    return parse_json(path.read_text())


def write_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write a byte-stable .npz: fixed order, fixed time stamps (numpy's own zip writer uses 1980-01-01)."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{name: np.asarray(arrays[name]) for name in sorted(arrays)})
    write_bytes(path, buffer.getvalue())


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    # Opened here, because numpy leaves its own handle open when the archive turns out to be damaged.
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def sha256(path: Path) -> str:
    """Hash a file, or a folder as the sorted list of its files' names and hashes."""
    if path.is_dir():
        lines = [f"{sha256(file)}  {file.relative_to(path)}" for file in sorted(path.rglob("*")) if file.is_file()]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


# Folders that are filled over several runs, and the card in each that says what it is being filled with.

NAME = "card.json"


def claim(folder: Path, card: Mapping[str, Any], contents: str, command: str) -> None:
    """Write the card, or see that the one that is there says the same.

    Keys that end with `_sha256` sum up others and are not compared.

    Args:
        contents: what the folder holds, e.g. "strikes". command: which one fills it, e.g. "rsr clash data".
    """
    path = folder / NAME
    if not path.exists():
        write_json(path, card)
        return
    try:
        there = read_json(path)
    except DAMAGED as error:
        raise refused(folder, f"a {NAME} that cannot be read: {error}", f"that of these {contents}", command) from error
    other = [key for key in card if card[key] != there.get(key) and not key.endswith("_sha256")]
    if other:
        raise refused(
            folder, f"{contents} with another {', '.join(other)}", "those that were asked for, or none", command
        )


def refused(folder: Path, got: str, expected: str, command: str) -> WorkspaceError:
    """Say what is wrong with the folder, and that filling it anew would help."""
    next_step = f"Name another folder, or remove this one and run `{command}` again."
    return WorkspaceError(got=got, expected=expected, where=str(folder), next_step=next_step)
