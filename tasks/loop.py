"""The loop over a table of steps: one for all pipelines, with Prefect and without."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rsr.common import Advance, Waiting, progress, write_text
from rsr.config import LoopConfig, parse_config
from rsr.pipelines import leave_receipt, reason_to_stop, run_step
from rsr_tasks import bookkeeping, versions
from rsr_tasks.bookkeeping import Outcome
from rsr_tasks.campaign import DEFAULT_TABLE, Campaign, opened, tags_of
from rsr_tasks.engine_settings import spread_as_configured
from rsr_tasks.workspace import write_curves, write_pipeline


@dataclass(frozen=True)
class Work:
    """How pieces of an iteration are done: as Prefect's tasks (`rsr_tasks.stages`), or plainly (`rsr_tasks.loop`).

    Args:
        plan: (campaign, iteration), freezes its settings and appends it to the chain.
        stage: (campaign, name of a step, iteration), brings it up to date.
        collect: (campaign, iteration), records the session; returns for what a person is awaited, if so.
        ask: (campaign, iteration, for what), notifies whoever may be able to help.
        version: (campaign, iteration), commits and tags.
        push: (campaign), sends everything to a remote, where there is one.
        say: (words), reports why the loop ends early.
    """

    plan: Callable[[Campaign, int], object]
    stage: Callable[[Campaign, str, int], object]
    collect: Callable[[Campaign, int], str | None]
    ask: Callable[[Campaign, int, str], object]
    version: Callable[[Campaign, int], object]
    push: Callable[[Campaign], object]
    say: Callable[[str], object]


def go_round(campaign: Campaign, iterations: int, work: Work) -> list[dict[str, Any]]:
    """Bring a campaign to so many iterations; returns one row of figures an iteration.

    Where a person has to record or to approve something first, it says so and ends; run again, it goes on from there.
    """
    work.plan(campaign, 0)
    for step in campaign.table.stages:
        if not step.foreach:
            work.stage(campaign, step.name, 0)
    for k in range(1, iterations + 1):
        work.plan(campaign, k)
        if wanted := work.collect(campaign, k):
            work.ask(campaign, k, wanted)
            break
        for step in campaign.table.stages:
            if step.foreach:
                work.stage(campaign, step.name, k)
        work.version(campaign, k)
        work.push(campaign)
        if reason := reason_to_stop(campaign.workspace, k):
            work.say(f"stopping after iteration {k}: {reason}")
            break
    return campaign.workspace.rows()


# The work of each task, without Prefect: one step, its bookkeeping, and nothing twice.


def plan(campaign: Campaign, iteration: int) -> None:
    """Freeze the iteration's settings and append it to the chain, and to what DVC plots."""
    campaign.workspace.plan(iteration)
    write_pipeline(campaign.root, campaign.table)


Shown = Callable[[str], AbstractContextManager[Advance]]
"""Shows how far a step is: takes its title, gives what the step calls."""


def bring_up_to_date(campaign: Campaign, name: str, iteration: int, shown: Shown = progress.bar) -> Outcome:
    """Run a step as a stage of DVC, unless DVC knows its result already."""

    def run() -> None:
        with spread_as_configured(), shown(f"{name} {iteration}") as advance:
            run_step(campaign.workspace, name, iteration, advance, campaign.table)

    return bookkeeping.bring_up_to_date(campaign.root, campaign.table.address(name, iteration), run)


def collect(campaign: Campaign, iteration: int, shown: Shown = progress.bar) -> Outcome:
    """Record the iteration's session, once: what moved a robot is never moved again for want of an entry in a file."""
    workspace, session = campaign.workspace, campaign.workspace.session_dir(iteration)
    if bookkeeping.is_recorded(campaign.root, session):
        bookkeeping.restore_recording(campaign.root, session)
        return "fresh"
    if not session.exists():
        _record(campaign, iteration, shown)
    elif not (workspace.receipts_dir(iteration) / "collect.json").exists():
        leave_receipt(workspace, campaign.table.collect, iteration)
    bookkeeping.record(campaign.root, session)
    return "ran"


def _record(campaign: Campaign, iteration: int, shown: Shown) -> None:
    """Run the step; where it waits for somebody, leave word of it."""
    note = campaign.workspace.waiting_path
    try:
        with shown(f"collect {iteration}") as advance:
            run_step(campaign.workspace, "collect", iteration, advance, campaign.table)
    except Waiting as waiting:
        write_text(note, f"{waiting}\n")
        raise
    note.unlink(missing_ok=True)


def version(campaign: Campaign, iteration: int) -> None:
    """Commit and tag what the loop wrote in this iteration."""
    rows = campaign.workspace.rows()
    write_curves(campaign.workspace, rows)
    write_pipeline(campaign.root, campaign.table, rows)  # whose curves are of the figures that metrics have
    files = campaign.versioned_files(iteration)
    versions.commit(campaign.root, f"rsr: iteration {iteration}", files, tags_of(campaign.table, iteration))


# The loop without Prefect: the same actions in the same order. For many campaigns side by side, and for tests.


_PLAIN = Work(
    plan=plan,
    stage=bring_up_to_date,
    collect=lambda campaign, iteration: collect(campaign, iteration) and None,  # a wait ends it by `Waiting`
    ask=lambda campaign, iteration, wanted: None,
    version=version,
    push=lambda campaign: None,
    say=logging.getLogger(__name__).info,
)


def run_bare_loop(
    root: Path, iterations: int, table_name: str = DEFAULT_TABLE, config: LoopConfig | None = None
) -> list[dict[str, Any]]:
    """Bring a campaign to so many iterations; returns one row of figures an iteration.

    Raises:
        Waiting: a person has to record or to approve something first.
    """
    with opened(root, table_name, config or LoopConfig()) as campaign:
        return go_round(campaign, iterations, _PLAIN)


def run_campaign(workspace: str, iterations: int, settings: dict[str, Any], table: str) -> list[dict[str, Any]]:
    """One job of a fan-out: a campaign with settings of its own; returns one row of figures an iteration."""
    given = parse_config(settings, where="settings of the benchmark")
    return run_bare_loop(Path(workspace), iterations, table, given)
