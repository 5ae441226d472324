"""Tasks of a lab: its forms (a new campaign, a visit, an approval), events for automations, and the inbox watch."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from prefect import get_run_logger, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.context import FlowRunContext
from prefect.events import emit_event
from prefect.settings import get_current_settings

from rsr.common import DAMAGED, RsrError, read_json, write_json
from rsr.config import LoopConfig, dump_config, load_config, parse_config
from rsr.pipelines import Arrival, arrival
from rsr.pipelines.lab import approval, arrivals as answer
from rsr.workspace import CHAIN_FILE, Workspace
from rsr_tasks import begin as beginning
from rsr_tasks.begin import Pipeline, Reality
from rsr_tasks.environment import person_id
from rsr_tasks.locking import live_holder

PAGE_KEY = "approvals"
"""Name of a private key in PREFECT_HOME."""
_PLAIN: dict[str, Any] = {"cache_policy": NO_CACHE, "persist_result": False}


@task(name="begin", **_PLAIN)
def begin(workspace: str, pipeline: Pipeline, scenario: str, reality: Reality, approval: bool, seed: int) -> str:
    """Make a campaign's folder and show what comes next; returns where it lies."""
    folder = Path(workspace)
    given = {"scenario": scenario, "seed": seed, "reality": {"kind": beginning.KINDS[reality], "approval": approval}}
    written = beginning.written_before(folder)
    made = beginning.begin(folder, beginning.settings_for(pipeline, given, written, where="form of the new campaign"))
    lines = "\n".join(f"- {line}" for line in beginning.next_steps(made))
    create_markdown_artifact(key="new-campaign", markdown=f"# {made.root}\n\n{lines}\n")
    return str(made.root)


@task(name="choose", **_PLAIN)
def choose(workspace: str, method: str | None, fit_episodes: int | None, train_steps: int | None) -> None:
    """Write what was chosen into the settings of the iteration that waits for its session, and of those to come."""
    found = Workspace.at(Path(workspace))
    chosen = {"tune": {"method": method, "fit_episodes": fit_episodes}, "retrain": {"train_steps": train_steps}}
    waiting = found.frozen_path(answer.awaited(found))
    for path in [found.settings_path, *([waiting] if waiting.exists() else [])]:
        _set(path, chosen)


def _set(path: Path, chosen: dict[str, dict[str, Any]]) -> None:
    """Change settings in a file; what was not chosen, None, stays, and so does a file in which nothing changes."""
    before = load_config(path)
    document = before.model_dump(mode="json")
    for section, values in chosen.items():
        document[section] |= {name: value for name, value in values.items() if value is not None}
    settings = parse_config(document, where="form of the visit")
    if settings != before:
        dump_config(settings, path)


@task(name="answer", **_PLAIN)
def answer_request(workspace: str, sources: list[Path], mapping: Path | None) -> int:
    """Put the recordings into the inbox, for the loop that is run next; returns the iteration that they are for."""
    found = Workspace.at(Path(workspace))
    iteration = answer.answer(found, sources, mapping)
    get_run_logger().info("the recordings are the session of iteration %s", iteration)
    return iteration


def login_of_run() -> str:
    """Say who made the present run after logging in at the page by name; "" where that is nobody (`_guard`)."""
    context = FlowRunContext.get()
    maker = context.flow_run.created_by if context is not None and context.flow_run is not None else None
    name = (maker.display_value if maker is not None else None) or ""
    return name if maker is not None and name and maker.id == person_id(name) else ""


@task(name="allow", **_PLAIN)
def allow(workspace: str, iteration: int, by: str, note: str, login: str = "") -> None:
    """Write a person's approval beside the policy; a loop that waits for it goes on by the event."""
    found = Workspace.at(Path(workspace))
    given = approval.approve(found, iteration, by, note, key=_page_key(login), login=login)
    get_run_logger().info("policy %s of iteration %s: %s", given.policy_sha256[:12], iteration, given.said_by())
    emit_arrival(found)


def _page_key(login: str) -> Path | None:
    """The key that signs for whoever logged in at the page by name; what it is worth, approvers.yaml says."""
    key = get_current_settings().home / PAGE_KEY
    return key if login and key.exists() else None


# Events that automations may act upon: call a person, start a deployment. Their resource is the workspace.


Name = Literal["rsr.robot-changed", "rsr.waiting", "rsr.session-dropped", "rsr.policy-approved"]
"""The gap left its noise band; the loop waits for a person; a session came into the inbox; a policy may be deployed."""


def emit(name: Name, root: Path, **payload: float | str) -> None:
    """Emit an event about the workspace; it also says which flow the campaign belongs to."""
    labels = {"prefect.resource.id": f"rsr.workspace.{root.name}", "prefect.resource.name": str(root)}
    emit_event(name, resource={**labels, "rsr.flow": _flow_of(Workspace(root).settings())}, payload=payload)


def _flow_of(settings: LoopConfig) -> str:
    sections = {"clash": settings.clash, "gnn": settings.gnn}
    return next((name for name, section in sections.items() if section is not None), "rsr-loop")


# Tasks of the inbox watch: which campaign may go on, and whether its event was emitted already.


_REEMIT_AFTER_S = 1800.0
"""After this long without effect an event is re-emitted: the server, or the run that it started, may have died."""
_EVENTS: dict[str, Name] = {"session-dropped": "rsr.session-dropped", "policy-approved": "rsr.policy-approved"}


@dataclass(frozen=True)
class Emitted:
    """The last event emitted about a campaign; `path` and `stamp_s` distinguish arrivals."""

    path: str
    stamp_s: float
    at_s: float


@task(name="look", **_PLAIN)
def look(folder: str) -> list[str]:
    """Emit an event for every campaign in a folder that waited and may go on; returns them, one line each."""
    return [line for root in _campaigns(Path(folder).resolve()) for line in emit_arrival(Workspace(root))]


def _campaigns(folder: Path) -> list[Path]:
    return sorted({path.parent for pattern in (CHAIN_FILE, f"*/{CHAIN_FILE}") for path in folder.glob(pattern)})


def emit_arrival(workspace: Workspace) -> list[str]:
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
    emit(_EVENTS[found.kind], workspace.root, iteration=found.iteration, until=_until(found))
    _remember(workspace, found)
    get_run_logger().info("%s", line)
    return [line]


def _remember(workspace: Workspace, found: Arrival) -> None:
    """Note that whoever should know of this arrival does."""
    last = Emitted(workspace.relative(found.path), found.at_s, time.time())
    write_json(_note(workspace), asdict(last))


def _until(found: Arrival) -> int:
    """How far the loop is to go: with a session in hand up to the question after it, else up to the one about it."""
    return found.iteration + (found.kind == "session-dropped")


def _is_news(workspace: Workspace, found: Arrival) -> bool:
    try:
        last = Emitted(**read_json(_note(workspace)))
    except DAMAGED:
        return True
    same = (last.path, last.stamp_s) == (workspace.relative(found.path), found.at_s)
    return not same or time.time() - last.at_s > _REEMIT_AFTER_S


def _note(workspace: Workspace) -> Path:
    return workspace.root / ".rsr" / "emitted.json"
