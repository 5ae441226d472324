"""What each task does, without Prefect: one step, its bookkeeping, and nothing twice."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from rsr import progress
from rsr.errors import Waiting
from rsr.files import write_text
from rsr.progress import Advance
from rsr.steps import leave_receipt, run_step
from tasks import bookkeeping, versions
from tasks.bookkeeping import Outcome
from tasks.campaign import Campaign, tags_of
from tasks.engine_settings import spread_as_configured
from tasks.workspace import write_curves, write_pipeline


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
    write_curves(campaign.workspace)
    files = campaign.versioned_files(iteration)
    versions.commit(campaign.root, f"rsr: iteration {iteration}", files, tags_of(campaign.table, iteration))
