"""The folders that a command works on: a campaign, or stored sessions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from rsr.errors import ConfigError
from rsr.workspace import Workspace

Folder = Annotated[Path | None, arg(metavar="DIR", help_behavior_hint="")]


def located(folder: Path | None) -> Workspace:
    """Find the workspace: the folder itself where one was named, else the current one or the nearest above it."""
    return Workspace.find(Path.cwd()) if folder is None else Workspace.at(folder)


def at_least_one(sessions: Sequence[Path]) -> None:
    """Refuse a command line that names no session."""
    if not sessions:
        raise ConfigError(
            got="no session",
            expected="at least one folder of a stored session",
            where="command line",
            next_step="Name them, e.g. data/push_cube/session-001.",
        )
