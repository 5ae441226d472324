"""A visit's recordings become the session that the loop waits for: put into the inbox under the name it asked for."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from rsr.common import ConfigError, SessionError, Waiting
from rsr.config import LoopConfig
from rsr.pipelines.lab.approval import require_approval
from rsr.realities import dropped, last_change_s
from rsr.scenarios import load_scenario, target_of
from rsr.sessions import IntakeLimits, admitted, check_stored, is_session, read_lines, write_session
from rsr.sessions.ingest import ingest
from rsr.workspace import Workspace


def awaited(workspace: Workspace) -> int:
    """The iteration that the next session belongs to."""
    chain = workspace.chain()
    return next((k for k in chain if not workspace.session_dir(k).exists()), max(chain, default=0) + 1)


def _awaited(workspace: Workspace) -> tuple[int, LoopConfig]:
    """That iteration, and its settings: the frozen ones once it is planned."""
    iteration = awaited(workspace)
    return iteration, workspace.config(iteration) if iteration in workspace.chain() else workspace.settings()


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
    iteration, settings = _awaited(workspace)
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
    limits = IntakeLimits(settings.reality.largest_mb)
    with admitted(sources, limits) as safe:
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


# Has what a campaign waits for come in the meantime? Files alone say so: no message is needed.

QUIET_S = 5.0
"""A drop that was written to more recently than this is still being copied."""


@dataclass(frozen=True)
class Arrival:
    """A session or an approval that lets the loop go on.

    Args:
        kind: a session lies in the inbox, or a person let the policy be deployed.
        iteration: of the loop, to which it belongs.
        path: the file or folder that came.
    """

    kind: Literal["session-dropped", "policy-approved"]
    iteration: int
    path: Path

    @property
    def at_s(self) -> float:
        """The time stamp of what changed last in it."""
        return last_change_s(self.path)


def arrival(workspace: Workspace, now_s: Callable[[], float] = time.time) -> Arrival | None:
    """Say what came that the loop stopped for, or None. A session that is still being copied has not come yet."""
    if not workspace.waiting_path.exists():
        return None
    iteration, settings = _awaited(workspace)
    if settings.reality.approval and not _is_approved(workspace, iteration - 1):
        return None
    drop = _drop(workspace, settings, iteration)
    if drop is not None:
        still = now_s() - last_change_s(drop) >= QUIET_S
        return Arrival("session-dropped", iteration, drop) if still else None
    approval = workspace.approval_path(iteration - 1)
    if settings.reality.approval and approval.stat().st_mtime_ns > workspace.waiting_path.stat().st_mtime_ns:
        return Arrival("policy-approved", iteration, approval)
    return None


def _is_approved(workspace: Workspace, iteration: int) -> bool:
    try:
        require_approval(workspace, iteration)
    except Waiting:
        return False
    return True


def _drop(workspace: Workspace, settings: LoopConfig, iteration: int) -> Path | None:
    """Newest folder in the inbox, if the lab records by itself. Not read here: the loop screens it first."""
    if settings.reality.kind != "inbox":
        return None
    return dropped(workspace.root / settings.reality.inbox, workspace.session_dir(iteration).name)
