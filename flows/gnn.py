"""A learned simulator of contact as an alternative tuning: taught by an identified MuJoCo and a few recordings.

python -m flows.gnn --workspace gnn
"""

from __future__ import annotations

if __name__ == "__main__":  # before Prefect is imported: its home and server are chosen by then
    from flows._tuning_command import main

    raise SystemExit(main("gnn"))

from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger

from rsr.steps import reason_to_stop
from tasks.campaign import GNN_TABLE, opened
from tasks.presets import settings_of
from tasks.stages import ask, collect, evaluate, finetune, identify, plan, prior, publish, push, report, scale, train
from tasks.watcher import watched


@flow(name="gnn", persist_result=False)
def gnn(
    workspace: str = "gnn", iterations: int = 1, settings: dict[str, Any] | None = None, table: str = GNN_TABLE
) -> list[dict[str, Any]]:
    """Learn how bodies touch from three recordings and a simulator; returns one row of figures an iteration.

    Where a lab has to record first (`reality.kind: inbox`), it says so and ends; run again, it goes on from there.

    Args:
        workspace: its folder; made if it does not exist.
        iterations: how long the chain shall be, counting those already done.
        settings: as in params.yaml, of a new workspace; what is left out has the method's defaults.
        table: "module:name" of the steps.
    """
    with opened(Path(workspace), table, settings_of("gnn", settings)) as campaign, watched():
        plan(campaign, 0)
        prior(campaign)
        for k in range(1, iterations + 1):
            plan(campaign, k)
            recorded = collect(campaign, k)  # three trajectories to learn from, and others to judge by
            if recorded.name == "Waiting":
                ask(campaign, k, recorded.message)
                break
            identify(campaign, k)  # the teacher: MuJoCo's contact parameters
            scale(campaign, k)  # what the teacher does, from thousands of starts
            train(campaign, k)
            finetune(campaign, k)  # on the few recordings, where that helps
            evaluate(campaign, k)
            report(campaign, k)
            publish(campaign, k, "gnn")
            push(campaign, return_state=True)  # a remote that is away does not stop the campaign
            if reason := reason_to_stop(campaign.workspace, k):
                get_run_logger().info("stopping after iteration %s: %s", k, reason)
                break
        return campaign.workspace.rows()
