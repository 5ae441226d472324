"""A learned simulator of contact as an alternative tuning: taught by an identified MuJoCo and a few recordings.

    prior
    for k = 1, 2, ...
        collect             three trajectories to learn from, and others to judge by
        identify            the teacher: MuJoCo's contact parameters
        scale, train        what the teacher does from varied starts, and a network that learns it
        finetune            on the few recordings, where that helps
        evaluate, report    then committed, tagged and pushed

rsr-loop --workspace gnn --pipeline gnn
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow

from rsr_tasks.campaign import GNN_TABLE, opened, settings_of
from rsr_tasks.loop import go_round
from rsr_tasks.stages import PREFECT
from rsr_tasks.watcher import watched


@flow(name="gnn", persist_result=False)
def gnn(
    workspace: str = "gnn", iterations: int = 1, settings: dict[str, Any] | None = None, table: str = GNN_TABLE
) -> list[dict[str, Any]]:
    """Learn how bodies touch from three recordings and a simulator; returns one row of figures an iteration.

    Where a lab has to record first (`reality.kind: inbox`), it says so and ends; run again, it goes on from there.

    Args:
        workspace: its folder; made if it does not exist.
        iterations: length of the chain, those already done included.
        settings: as in params.yaml, of a new workspace; what is left out has the method's defaults.
        table: "module:name" of the steps; the module is imported, which runs its code.
    """
    with opened(Path(workspace), table, settings_of("gnn", settings)) as campaign, watched():
        return go_round(campaign, iterations, PREFECT)
