"""Tasks of a visit to the lab: settings for what comes next, recordings into the inbox, a person's word on a policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from rsr.config import dump_config, load_config, parse_config
from rsr.steps import answer, approval
from rsr.workspace import Workspace
from tasks.inbox import tell_of

_PLAIN: dict[str, Any] = {"cache_policy": NO_CACHE, "persist_result": False}


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


@task(name="allow", **_PLAIN)
def allow(workspace: str, iteration: int, by: str, note: str) -> None:
    """Write a person's approval beside the policy; a loop that waits for it goes on by the event."""
    found = Workspace.at(Path(workspace))
    approval.approve(found, iteration, by, note)
    tell_of(found)
