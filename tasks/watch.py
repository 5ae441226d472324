"""Tasks of the gap watch: look, and tell whoever should know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import get_run_logger, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE

from rsr.calibration.drift import Drift
from rsr.steps import gap_check
from rsr.workspace import Workspace
from tasks.events import tell

_PLAIN: dict[str, Any] = {"cache_policy": NO_CACHE, "persist_result": False}


@task(name="check gap", **_PLAIN)
def check_gap(workspace: str, sessions: list[Path]) -> Drift:
    return gap_check.check_gap(Workspace.find(Path(workspace)), sessions)


@task(name="announce", **_PLAIN)
def announce(workspace: str, drift: Drift) -> None:
    """Show the figures in Prefect's pages; if the robot has changed, also warn in the log and emit an event."""
    root = Workspace.find(Path(workspace)).root
    heading = "The robot has changed" if drift.changed else "The gap is within its noise band"
    create_markdown_artifact(key="gap-watch", markdown=f"# {heading}\n\n{drift}\n\nWorkspace `{root}`\n")
    if drift.changed:
        get_run_logger().warning("%s", drift)
        figures = {"gap_then": drift.gap_then, "gap_now": drift.gap_now, "limit": drift.limit, "unit": drift.gap_unit}
        tell("rsr.robot-changed", root, **figures)


def iterations_done(workspace: str) -> int:
    """The length of the chain so far."""
    return max(Workspace.find(Path(workspace)).chain(), default=0)
