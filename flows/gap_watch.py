"""Between lab sessions: is the robot still the one that was calibrated? Made to run on a schedule."""

from __future__ import annotations

from pathlib import Path

from prefect import flow

from rsr_flows.rsr_loop import rsr_loop
from rsr_tasks.campaign import DEFAULT_TABLE
from rsr_tasks.watch import announce, check_gap, iterations_done


@flow(name="gap-watch", persist_result=False)
def gap_watch(
    workspace: str = ".", sessions: list[Path] | None = None, recalibrate: bool = False, table: str = DEFAULT_TABLE
) -> bool:
    """Compare the gap of the newest recordings with that of the calibration; returns whether it left its noise band.

    Args:
        workspace: folder of the campaign.
        sessions: folders of new recordings; by default what was dropped in the inbox, or else the newest session.
        recalibrate: if it did, go round the loop once more.
        table: "module:name" of the loop's steps; the module is imported, which runs its code.
    """
    drift = check_gap(workspace, sessions or [])
    announce(workspace, drift)
    if drift.changed and recalibrate:
        rsr_loop(workspace, iterations_done(workspace) + 1, table)
    return drift.changed
