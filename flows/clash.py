"""CLASH as an alternative tuning: a surrogate of collisions, distilled from MuJoCo and adapted to a few real strikes.

    strikes, surrogate      MuJoCo's collisions over the ranges of Table I, and a model distilled from them
    for k = 1, 2, ...
        collect             strikes of the stand-in, or of a lab
        adapt               parameters through the frozen network, then what is left over
        evaluate            on strikes that nothing was fitted to
        aim, report         single strikes to target poses; then committed, tagged and pushed

rsr-loop --workspace clash --pipeline clash
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow

from rsr_tasks.campaign import CLASH_TABLE, opened, settings_of
from rsr_tasks.loop import go_round
from rsr_tasks.stages import PREFECT
from rsr_tasks.watcher import watched


@flow(name="clash", persist_result=False)
def clash(
    workspace: str = "clash", iterations: int = 1, settings: dict[str, Any] | None = None, table: str = CLASH_TABLE
) -> list[dict[str, Any]]:
    """Adapt a surrogate to ten strikes, and to ten more each iteration; returns one row of figures an iteration.

    Where a lab has to record first (`reality.kind: inbox`), it says so and ends; run again, it goes on from there.

    Args:
        workspace: its folder; made if it does not exist.
        iterations: length of the chain, those already done included.
        settings: as in params.yaml, of a new workspace; what is left out has CLASH's defaults.
        table: "module:name" of the steps; the module is imported, which runs its code.
    """
    with opened(Path(workspace), table, settings_of("clash", settings)) as campaign, watched():
        return go_round(campaign, iterations, PREFECT)
