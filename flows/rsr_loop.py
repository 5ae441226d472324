"""The Real-Sim-Real loop, Algorithm 1 of the paper.

python -m flows.rsr_loop --iterations 3 --workspace demo
"""

from __future__ import annotations

if __name__ == "__main__":  # before Prefect is imported: its home and server are chosen by then
    from flows._command import main

    raise SystemExit(main())

from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger

from rsr.steps import reason_to_stop
from tasks.campaign import DEFAULT_TABLE, opened
from tasks.stages import ask, collect, evaluate, infogap, plan, push, report, retrain, start, tune, version
from tasks.watcher import watched


@flow(name="rsr-loop", persist_result=False)
def rsr_loop(workspace: str = ".", iterations: int = 3, table: str = DEFAULT_TABLE) -> list[dict[str, Any]]:
    """Close the gap between simulation and reality; returns one row of figures an iteration.

    Where a person has to record or to approve something first, it says so and ends; run again, it goes on from there.

    Args:
        workspace: its folder; made if it does not exist.
        iterations: how long the chain shall be, counting those already done.
        table: "module:name" of the steps.
    """
    with opened(Path(workspace), table) as campaign, watched():
        plan(campaign, 0)
        start(campaign)  # pi_0 from the nominal simulator
        for k in range(1, iterations + 1):
            plan(campaign, k)
            recorded = collect(campaign, k)  # deploy pi_{k-1}; a session of reality comes back, or is awaited
            if recorded.name == "Waiting":
                ask(campaign, k, recorded.message)
                break
            tune(campaign, k)  # theta_k, judged on held-out episodes
            infogap(campaign, k)  # KL(D_real^k || D_sim^{k-1}), and where the two differ
            retrain(campaign, k)  # pi_k in the tuned simulator, task reward + InfoGap
            evaluate(campaign, k)
            report(campaign, k)
            version(campaign, k)
            push(campaign, return_state=True)  # a remote that is away does not stop the loop
            if reason := reason_to_stop(campaign.workspace, k):
                get_run_logger().info("stopping after iteration %s: %s", k, reason)
                break
        return campaign.workspace.rows()
