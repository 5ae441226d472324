"""Has what a campaign waits for come in the meantime? Files alone say so: nobody needs to have been told."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rsr.config import LoopConfig
from rsr.errors import Waiting
from rsr.realities.inbox import dropped, last_change_s
from rsr.steps.answer import awaited
from rsr.steps.approval import require_approval
from rsr.workspace import Workspace

QUIET_S = 5.0
"""A drop that was written to more recently than this is still being copied."""


@dataclass(frozen=True)
class Arrival:
    """What lets the loop go on.

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
    iteration = awaited(workspace)
    settings = workspace.config(iteration) if iteration in workspace.chain() else workspace.settings()
    if settings.reality.approval and not _is_approved(workspace, iteration - 1):
        return None
    drop = _drop(workspace, settings, iteration)
    if drop is not None:
        still = now_s() - last_change_s(drop) >= QUIET_S
        return Arrival("session-dropped", iteration, drop) if still else None
    approval = workspace.approval_path(iteration - 1)
    if settings.reality.approval and _is_newer(approval, workspace.waiting_path):
        return Arrival("policy-approved", iteration, approval)
    return None


def _is_approved(workspace: Workspace, iteration: int) -> bool:
    try:
        require_approval(workspace, iteration)
    except Waiting:
        return False
    return True


def _is_newer(answer: Path, question: Path) -> bool:
    return answer.stat().st_mtime_ns > question.stat().st_mtime_ns


def _drop(workspace: Workspace, settings: LoopConfig, iteration: int) -> Path | None:
    """What the lab put into the inbox, if it records by itself. Not read here: the loop screens it first."""
    if settings.reality.kind != "inbox":
        return None
    return dropped(workspace.root / settings.reality.inbox, workspace.session_dir(iteration).name)
