"""The campaign that a command works on: the folder that was named, or the one around the current folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from rsr.workspace import Workspace

Folder = Annotated[Path | None, arg(metavar="DIR", help_behavior_hint="")]


def located(folder: Path | None) -> Workspace:
    """Find the workspace: the folder itself where one was named, else the current one or the nearest above it."""
    return Workspace.find(Path.cwd()) if folder is None else Workspace.at(folder)
