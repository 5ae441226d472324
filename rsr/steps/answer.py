"""A visit's recordings become the session that the loop waits for: put into the inbox under the name it asked for."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rsr.config import LoopConfig
from rsr.errors import ConfigError, SessionError
from rsr.scenarios import load_scenario
from rsr.scenarios.targets import target_of
from rsr.sessions import is_session, write_session
from rsr.sessions.ingest import ingest
from rsr.sessions.intake import check_stored, taken_in
from rsr.sessions.mapping import read_lines
from rsr.sessions.screening import Limits
from rsr.workspace import Workspace


def awaited(workspace: Workspace) -> int:
    """The iteration that the next session belongs to."""
    chain = workspace.chain()
    return next((k for k in chain if not workspace.session_dir(k).exists()), max(chain, default=0) + 1)


def answer(workspace: Workspace, sources: Sequence[Path], mapping: Path | None = None) -> int:
    """Put recordings into the inbox as the session of the iteration that waits; returns that iteration.

    Args:
        sources: one stored session, or raw recordings, which are ingested first.
        mapping: for raw recordings; what it lacks is guessed, and what cannot be guessed is an error that says so.

    Raises:
        Refused: the recordings are not safe to be read, or not what they say they are.
        SessionError: they cannot be used, or another session waits in the inbox under this name.
        ConfigError: the campaign does not take its sessions from an inbox.
    """
    iteration = awaited(workspace)
    settings = workspace.config(iteration) if iteration in workspace.chain() else workspace.settings()
    target = _place(workspace, settings, iteration)
    incoming = target.parent / ".incoming"
    shutil.rmtree(incoming, ignore_errors=True)
    try:
        made = _made(sources, settings, mapping, incoming, target.name)
        made.rename(target)
    finally:
        shutil.rmtree(incoming, ignore_errors=True)
    return iteration


def _made(sources: Sequence[Path], settings: LoopConfig, mapping: Path | None, incoming: Path, name: str) -> Path:
    """Screen the sources, and store what they hold as one session of this name."""
    limits = Limits(settings.reality.largest_mb)
    with taken_in(sources, limits) as safe:
        if len(safe) == 1 and is_session(safe[0]):
            session = check_stored(safe[0])
            return write_session(incoming, replace(session, card=replace(session.card, session=name)))
        given = read_lines(mapping) if mapping is not None else {}
        target = target_of(load_scenario(settings.scenario))
        return ingest(safe, target, incoming, given=given, name=name, limits=limits).folder


def _place(workspace: Workspace, settings: LoopConfig, iteration: int) -> Path:
    if settings.reality.kind != "inbox":
        raise ConfigError(
            got=f"reality.kind: {settings.reality.kind}",
            expected="inbox, where a lab's own recordings go",
            where=str(workspace.settings_path),
            next_step="Set it before the campaign begins; a stand-in's sessions and a lab's do not mix.",
        )
    target = workspace.root / settings.reality.inbox / workspace.session_dir(iteration).name
    if target.exists():
        raise SessionError(
            got="a session that waits there already",
            expected="one session an iteration",
            where=str(target),
            next_step="Run the loop, which takes it; or remove it, if it was a mistake.",
        )
    return target
