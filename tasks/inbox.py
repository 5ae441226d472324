"""Tasks of the inbox watch: which campaign may go on, and whether that was said already."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from rsr.errors import RsrError
from rsr.files import DAMAGED, read_json, write_json
from rsr.steps.arrivals import Arrival, arrival
from rsr.workspace import CHAIN_FILE, Workspace
from tasks.events import Name, tell
from tasks.locking import live_holder

_PLAIN: dict[str, Any] = {"cache_policy": NO_CACHE, "persist_result": False}
_AGAIN_S = 1800.0
"""After this long without effect an event is told once more: the server, or the run that it started, may have died."""
_EVENTS: dict[str, Name] = {"session-dropped": "rsr.session-dropped", "policy-approved": "rsr.policy-approved"}


@dataclass(frozen=True)
class Told:
    """What was last said of a campaign; `path` and `stamp_s` tell one arrival from the next."""

    path: str
    stamp_s: float
    at_s: float


@task(name="look", **_PLAIN)
def look(folder: str) -> list[str]:
    """Tell of every campaign in a folder that waited and may go on; returns what was told, one line each."""
    return [line for root in _campaigns(Path(folder).resolve()) for line in tell_of(Workspace(root))]


def _campaigns(folder: Path) -> list[Path]:
    return sorted({path.parent for pattern in (CHAIN_FILE, f"*/{CHAIN_FILE}") for path in folder.glob(pattern)})


def tell_of(workspace: Workspace) -> list[str]:
    """Emit an event if the campaign waited and may go on, unless that was said already."""
    if live_holder(workspace.root) is not None:
        return []  # a loop is at work in it, and will find what came
    try:
        found = arrival(workspace)
    except (RsrError, OSError) as error:  # one campaign in disorder must not silence the others
        get_run_logger().warning("%s", error)
        return []
    if found is None or not _is_news(workspace, found):
        return []
    line = f"{workspace.root}: {found.kind} for iteration {found.iteration} ({workspace.relative(found.path)})"
    tell(_EVENTS[found.kind], workspace.root, iteration=found.iteration, until=_until(found))
    _remember(workspace, found)
    get_run_logger().info("%s", line)
    return [line]


def _remember(workspace: Workspace, found: Arrival) -> None:
    """Note that whoever should know of this arrival does."""
    told = Told(workspace.relative(found.path), found.at_s, time.time())
    write_json(_note(workspace), asdict(told))


def _until(found: Arrival) -> int:
    """How far the loop shall go: with a session in hand up to the question after it, else up to the one about it."""
    return found.iteration + (found.kind == "session-dropped")


def _is_news(workspace: Workspace, found: Arrival) -> bool:
    try:
        told = Told(**read_json(_note(workspace)))
    except DAMAGED:
        return True
    same = (told.path, told.stamp_s) == (workspace.relative(found.path), found.at_s)
    return not same or time.time() - told.at_s > _AGAIN_S


def _note(workspace: Workspace) -> Path:
    return workspace.root / ".rsr" / "told.json"
