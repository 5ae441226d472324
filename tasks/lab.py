"""Tasks of a visit to the lab: settings for what comes next, recordings into the inbox, a person's word on a policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from rsr.config import dump_config, parse_config
from rsr.steps import answer, approval
from rsr.steps.arrivals import arrival
from rsr.workspace import Workspace
from tasks.inbox import remember, tell_of

_PLAIN: dict[str, Any] = {"cache_policy": NO_CACHE, "persist_result": False}


@task(name="choose", **_PLAIN)
def choose(workspace: str, method: str, fit_episodes: int, train_steps: int | None) -> None:
    """Write the settings of the iterations to come; those that are planned keep theirs."""
    found = Workspace.find(Path(workspace))
    document = found.settings().model_dump(mode="json")
    document["tune"] |= {"method": method, "fit_episodes": fit_episodes}
    document["retrain"] |= {"train_steps": train_steps}
    dump_config(parse_config(document, where="form of the visit"), found.settings_path)


@task(name="answer", **_PLAIN)
def answer_request(workspace: str, sources: list[Path], mapping: Path | None) -> int:
    """Put the recordings into the inbox; returns the iteration that they are for."""
    found = Workspace.find(Path(workspace))
    iteration = answer.answer(found, sources, mapping)
    get_run_logger().info("the recordings are the session of iteration %s", iteration)
    if (came := arrival(found)) is not None:
        remember(found, came)  # whoever put them there goes round the loop now; no event is to start it a second time
    return iteration


@task(name="allow", **_PLAIN)
def allow(workspace: str, iteration: int, by: str, note: str) -> None:
    """Write a person's approval beside the policy; a loop that waits for it goes on by the event."""
    found = Workspace.find(Path(workspace))
    approval.approve(found, iteration, by, note)
    tell_of(found)
