"""Turn dropped sessions and approvals into events, by which automations run the loop on."""

from __future__ import annotations

from prefect import flow

from rsr_tasks.lab import look


@flow(name="watch-inbox", persist_result=False)
def watch_inbox(folder: str = ".") -> list[str]:
    """Look once at every campaign that waits; made to run on a schedule. Returns what was emitted, one line each.

    Files say what came, so nothing is lost while neither server nor worker runs: the next look finds it.

    Args:
        folder: of the campaigns: one itself, or the folder in which they lie side by side.
    """
    return look(folder)
