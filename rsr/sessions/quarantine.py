"""Where refused recordings go: moved aside whole, with the reason in a text file beside it. Nothing is deleted."""

from __future__ import annotations

import shutil
from pathlib import Path

from rsr.errors import SessionError
from rsr.files import cannot_write, write_text

FOLDER = "quarantine"


def quarantine(path: Path, reason: SessionError, folder: Path | None = None) -> Path:
    """Move a file or folder to `<folder>/<name>-N`, the reason to `<name>-N.txt`; returns where it is now.

    Args:
        folder: by default `quarantine` beside it.

    Raises:
        WorkspaceError: the folder cannot be written; everything is where it was.
    """
    folder = path.parent / FOLDER if folder is None else folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        number = 1
        while (folder / f"{path.name}-{number}").exists() or (folder / f"{path.name}-{number}.txt").exists():
            number += 1
        moved = folder / f"{path.name}-{number}"
        write_text(folder / f"{moved.name}.txt", f"{reason}\n")
        shutil.move(path, moved)
    except OSError as error:
        raise cannot_write(folder, error) from error
    return moved
