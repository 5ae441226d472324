"""The loop's Prefect tasks. DVC is their memory: each looks there first, so a flow may be run again from the top.

Prefect caches and persists nothing; only paths and settings travel between tasks.
"""

from __future__ import annotations

from typing import Any

from prefect import Task, get_run_logger, task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.states import Completed
from prefect.tasks import exponential_backoff

from rsr.errors import Waiting, WorkspaceError
from rsr.reports import read_rows, summary_markdown
from rsr.reports.tuning import tuning_markdown
from tasks import actions, bookkeeping
from tasks.bookkeeping import Outcome
from tasks.campaign import Campaign
from tasks.events import tell
from tasks.progress import shown
from tasks.workspace import flat

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


def _stage(name: str) -> Task[..., Any]:
    @task(name=name, task_run_name=f"{name} {{iteration}}", **_PLAIN)
    def stage(campaign: Campaign, iteration: int = 0) -> State:
        return _shown(actions.bring_up_to_date(campaign, name, iteration, shown))

    return stage


start, tune, infogap, retrain, evaluate, report = map(
    _stage, ("start", "tune", "infogap", "retrain", "evaluate", "report")
)

strikes, surrogate, adapt, aim = map(_stage, ("strikes", "surrogate", "adapt", "aim"))
prior, identify, scale, train, finetune = map(_stage, ("prior", "identify", "scale", "train", "finetune"))


@task(task_run_name="plan {iteration}", **_PLAIN)
def plan(campaign: Campaign, iteration: int) -> None:
    actions.plan(campaign, iteration)


@task(task_run_name="collect {iteration}", retry_condition_fn=_lost_connection, **_PATIENT)
def collect(campaign: Campaign, iteration: int) -> State:
    """Record the session; `Waiting`, and for what, where a person has to do something first."""
    try:
        return _shown(actions.collect(campaign, iteration, shown))
    except Waiting as waiting:
        return Completed(name="Waiting", message=str(waiting))


@task(task_run_name="ask {iteration}", **_PLAIN)
def ask(campaign: Campaign, iteration: int, wanted: str | None) -> None:
    """Tell whoever may be able to help: on Prefect's pages, in the log, and by an event for automations."""
    create_markdown_artifact(key="waiting", markdown=f"# Iteration {iteration} waits\n\n{wanted}\n")
    get_run_logger().warning("%s", wanted)
    tell("rsr.waiting", campaign.root, iteration=iteration, wanted=wanted or "")


@task(task_run_name="version {iteration}", **_COMMITS)
def version(campaign: Campaign, iteration: int) -> None:
    """Commit and tag the iteration, and show it in Prefect's UI."""
    actions.version(campaign, iteration)
    workspace = campaign.workspace
    create_table_artifact(
        key="rsr-loop", table=flat(read_rows(workspace)), description="Real-Sim-Real, iteration by iteration"
    )
    create_markdown_artifact(key=f"iteration-{iteration:03d}", markdown=summary_markdown(workspace, iteration))


@task(task_run_name="publish {iteration}", **_COMMITS)
def publish(campaign: Campaign, iteration: int, key: str) -> None:
    """Commit and tag an iteration of an alternative tuning, and show it in Prefect's UI."""
    actions.version(campaign, iteration)
    rows = [row for row in read_rows(campaign.workspace) if row["iteration"] <= iteration]
    create_table_artifact(key=key, table=flat(rows), description="What tuning was worth, iteration by iteration")
    report = str(campaign.workspace.report_path(iteration))
    create_markdown_artifact(key=f"{key}-{iteration:03d}", markdown=tuning_markdown(rows, report))


@task(task_run_name="push", **_PATIENT)
def push(campaign: Campaign) -> bool:
    """Send everything to DVC's remote, where one is configured."""
    return bookkeeping.push(campaign.root)
