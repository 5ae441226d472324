"""CLASH as an alternative tuning: a surrogate of collisions, distilled from MuJoCo and adapted to a few real strikes.

python -m flows.clash --workspace clash
"""

from __future__ import annotations

if __name__ == "__main__":  # before Prefect is imported: its home and server are chosen by then
    from flows._tuning_command import main

    raise SystemExit(main("clash"))

from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger

from rsr.steps import reason_to_stop
from tasks.campaign import CLASH_TABLE, opened
from tasks.presets import settings_of
from tasks.stages import adapt, aim, ask, collect, evaluate, plan, publish, push, report, strikes, surrogate
from tasks.watcher import watched


@flow(name="clash", persist_result=False)
def clash(
    workspace: str = "clash", iterations: int = 1, settings: dict[str, Any] | None = None, table: str = CLASH_TABLE
) -> list[dict[str, Any]]:
    """Adapt a surrogate to ten strikes, and to ten more each iteration; returns one row of figures an iteration.

    Where a lab has to record first (`reality.kind: inbox`), it says so and ends; run again, it goes on from there.

    Args:
        workspace: its folder; made if it does not exist.
        iterations: how long the chain shall be, counting those already done.
        settings: as in params.yaml, of a new workspace; what is left out has CLASH's defaults.
        table: "module:name" of the steps.
    """
    with opened(Path(workspace), table, settings_of("clash", settings)) as campaign, watched():
        plan(campaign, 0)
        strikes(campaign)  # MuJoCo's collisions, over the ranges of Table I
        surrogate(campaign)  # distilled from them, differentiable in the parameters
        for k in range(1, iterations + 1):
            plan(campaign, k)
            recorded = collect(campaign, k)  # strikes of the stand-in, or of a lab
            if recorded.name == "Waiting":
                ask(campaign, k, recorded.message)
                break
            adapt(campaign, k)  # parameters through the frozen network, then what is left over
            evaluate(campaign, k)  # all methods, on strikes that nothing was fitted to
            aim(campaign, k)  # single strikes to target poses
            report(campaign, k)
            publish(campaign, k, "clash")
            push(campaign, return_state=True)  # a remote that is away does not stop the campaign
            if reason := reason_to_stop(campaign.workspace, k):
                get_run_logger().info("stopping after iteration %s: %s", k, reason)
                break
        return campaign.workspace.rows()
