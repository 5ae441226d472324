"""Tasks of the gap watch: compare, and notify whoever should know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import get_run_logger, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE

from rsr.calibration import Drift
from rsr.common import write_text
from rsr.pipelines.lab import gap_check
from rsr.workspace import Workspace
from rsr_tasks.lab import emit

_PLAIN: dict[str, Any] = {"cache_policy": NO_CACHE, "persist_result": False}


@task(name="check gap", **_PLAIN)
def check_gap(workspace: str, sessions: list[Path]) -> Drift:
    return gap_check.check_gap(Workspace.at(Path(workspace)), sessions)


@task(name="announce", **_PLAIN)
def announce(workspace: str, drift: Drift) -> None:
    """Show the figures in Prefect's pages; if the robot has changed, also warn in the log, and raise the alarm."""
    found = Workspace.at(Path(workspace))
    heading = "The robot has changed" if drift.changed else "The gap is within its noise band"
    create_markdown_artifact(key="gap-watch", markdown=f"# {heading}\n\n{drift}\n\nWorkspace `{found.root}`\n")
    if drift.changed:
        get_run_logger().warning("%s", drift)
        _raise_alarm(found, drift)
    else:
        found.alert_path.unlink(missing_ok=True)


def _raise_alarm(workspace: Workspace, drift: Drift) -> None:
    """Leave word in the workspace and emit the event, once for what is found every morning anew."""
    words, note = f"{drift}\n", workspace.alert_path
    if note.exists() and note.read_text() == words:
        return
    figures = {"gap_then": drift.gap_then, "gap_now": drift.gap_now, "limit": drift.limit, "unit": drift.gap_unit}
    emit("rsr.robot-changed", workspace.root, **figures)
    write_text(note, words)


def iterations_done(workspace: str) -> int:
    """The length of the chain so far."""
    return max(Workspace.at(Path(workspace)).chain(), default=0)
