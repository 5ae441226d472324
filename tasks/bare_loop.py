"""The loop without Prefect: the same actions in the same order. For many campaigns side by side, and for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rsr.config import LoopConfig, parse_config
from rsr.steps import reason_to_stop
from rsr.workspace import Workspace
from tasks import actions
from tasks.campaign import DEFAULT_TABLE, opened


def run_bare_loop(
    root: Path, iterations: int, table_name: str = DEFAULT_TABLE, config: LoopConfig | None = None
) -> None:
    """Bring a campaign to so many iterations; see `flows.rsr_loop`."""
    with opened(root, table_name, config) as campaign:
        actions.plan(campaign, 0)
        for step in campaign.table.stages:
            if not step.foreach:
                actions.bring_up_to_date(campaign, step.name, 0)
        for k in range(1, iterations + 1):
            actions.plan(campaign, k)
            actions.collect(campaign, k)
            for step in campaign.table.stages:
                if step.foreach:
                    actions.bring_up_to_date(campaign, step.name, k)
            actions.version(campaign, k)
            if reason_to_stop(campaign.workspace, k):
                break


def run_campaign(workspace: str, iterations: int, settings: dict[str, Any], table: str) -> list[dict[str, Any]]:
    """One job of a fan-out: a campaign with settings of its own; returns one row of figures an iteration."""
    run_bare_loop(Path(workspace), iterations, table, parse_config(settings, where="settings of the benchmark"))
    return Workspace(Path(workspace)).rows()
