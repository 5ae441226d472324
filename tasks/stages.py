"""The loop's Prefect tasks. DVC is their memory: each looks there first, so a flow may be run again from the top.

Prefect caches and persists nothing; only paths and settings travel between tasks.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from uuid import UUID

from prefect import Task, get_run_logger, task
from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.states import Completed
from prefect.tasks import exponential_backoff

from rsr.common import Advance, Waiting, WorkspaceError, progress
from rsr.reports import iteration_markdown, read_rows
from rsr_tasks import bookkeeping, loop, versions
from rsr_tasks.bookkeeping import Outcome
from rsr_tasks.campaign import Campaign
from rsr_tasks.lab import emit
from rsr_tasks.loop import Work
from rsr_tasks.workspace import flat

_PLAIN: dict[str, Any] = {"cache_policy": NO_CACHE, "persist_result": False}
_PATIENT: dict[str, Any] = {**_PLAIN, "retries": 2, "retry_delay_seconds": exponential_backoff(5)}


def _lost_connection(_: Task, __: TaskRun, state: State) -> bool:
    """Retry only what may mend itself: a wrong result does not become right by repetition."""
    return isinstance(state.result(raise_on_failure=False), (ConnectionError, TimeoutError))


def _git_was_busy(_: Task, __: TaskRun, state: State) -> bool:
    """A person's git, or their editor's, takes the index for a moment."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, WorkspaceError) and ".lock" in error.got


_COMMITS: dict[str, Any] = {**_PLAIN, "retries": 3, "retry_delay_seconds": 2, "retry_condition_fn": _git_was_busy}


def _shown(outcome: Outcome) -> State:
    return Completed(name="Completed" if outcome == "ran" else "Cached", message=outcome)


@cache
def _stage(name: str) -> Task[..., Any]:
    @task(name=name, task_run_name=f"{name} {{iteration}}", **_PLAIN)
    def stage(campaign: Campaign, iteration: int = 0) -> State:
        return _shown(loop.bring_up_to_date(campaign, name, iteration, shown))

    return stage


@task(task_run_name="plan {iteration}", **_PLAIN)
def plan(campaign: Campaign, iteration: int) -> None:
    loop.plan(campaign, iteration)


@task(task_run_name="collect {iteration}", retry_condition_fn=_lost_connection, **_PATIENT)
def collect(campaign: Campaign, iteration: int) -> State:
    """Record the session; `Waiting`, and for what, where a person has to do something first."""
    try:
        return _shown(loop.collect(campaign, iteration, shown))
    except Waiting as waiting:
        return Completed(name="Waiting", message=str(waiting))


@task(task_run_name="ask {iteration}", **_PLAIN)
def ask(campaign: Campaign, iteration: int, wanted: str | None) -> None:
    """Notify whoever may be able to help: on Prefect's pages, in the log, and by an event for automations."""
    create_markdown_artifact(key="waiting", markdown=f"# Iteration {iteration} waits\n\n{wanted}\n")
    get_run_logger().warning("%s", wanted)
    emit("rsr.waiting", campaign.root, iteration=iteration, wanted=wanted or "")


def _commit(campaign: Campaign, iteration: int) -> None:
    if words := versions.detached(campaign.root):
        get_run_logger().warning("%s", words)
    loop.version(campaign, iteration)


@task(task_run_name="version {iteration}", **_COMMITS)
def version(campaign: Campaign, iteration: int) -> None:
    """Commit and tag the iteration, and show it in Prefect's UI."""
    _commit(campaign, iteration)
    workspace, key = campaign.workspace, campaign.table.name
    rows = [row for row in read_rows(workspace) if row["iteration"] <= iteration]
    create_table_artifact(key=key, table=flat(rows), description="Figures, iteration by iteration")
    create_markdown_artifact(key=f"{key}-{iteration:03d}", markdown=iteration_markdown(workspace, iteration))


@task(task_run_name="push", **_PATIENT)
def push(campaign: Campaign) -> bool:
    """Send everything to DVC's remote, where one is configured."""
    return bookkeeping.push(campaign.root)


def _collected(campaign: Campaign, iteration: int) -> str | None:
    recorded = collect(campaign, iteration)
    return recorded.message if recorded.name == "Waiting" else None


PREFECT = Work(
    plan=plan,
    stage=lambda campaign, name, iteration: _stage(name)(campaign, iteration),
    collect=_collected,
    ask=ask,
    version=version,
    push=lambda campaign: push(campaign, return_state=True),  # a remote that is away does not stop the campaign
    say=lambda words: get_run_logger().info(words),
)
"""The work of an iteration as Prefect's tasks."""


# Progress of a step in two places at once: a bar on the terminal, and an artifact in Prefect's pages.


_EVERY_S = 5.0
"""A report costs a call to Prefect's server; a step that is over sooner makes none."""


@contextmanager
def shown(title: str) -> Iterator[Advance]:
    """Show how far a step is; `title` is its name and iteration."""
    page = _Page(title)
    with progress.bar(title) as bar:

        def advance(fraction: float, words: str = "") -> None:
            bar(fraction, words)
            page.report(fraction, words)

        yield advance
    page.close()


class _Page:
    """A progress artifact, made when the step has gone on for a while and renewed from time to time."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._artifact: UUID | None = None
        self._reported_s = time.monotonic()

    def report(self, fraction: float, words: str) -> None:
        now_s = time.monotonic()
        if now_s - self._reported_s < _EVERY_S:
            return
        self._reported_s = now_s
        self._write(100.0 * min(1.0, fraction), f"{self._title}: {words}" if words else self._title)

    def close(self) -> None:
        """Leave it full, if it was ever shown."""
        if self._artifact is not None:
            self._write(100.0, self._title)

    def _write(self, percent: float, words: str) -> None:
        if self._artifact is None:
            key = self._title.replace(" ", "-")
            self._artifact = create_progress_artifact(progress=percent, key=key, description=words)  # type: ignore
        else:
            update_progress_artifact(artifact_id=self._artifact, progress=percent, description=words)
