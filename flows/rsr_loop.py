"""The Real-Sim-Real loop, Algorithm 1 of the paper.

    start                                   pi_0 from the nominal simulator
    for k = 1, 2, ...
        collect                             deploy pi_{k-1}: a session of reality comes back, or is awaited
        tune                                theta_k, judged on held-out episodes
        infogap                             KL(D_real^k || D_sim^{k-1}), and where the two differ
        retrain                             pi_k in the tuned simulator, for task reward + InfoGap
        evaluate, report                    then the iteration is committed, tagged and pushed

The steps stand in `rsr/pipelines/tables.py`; `tasks/loop.py` goes round.

rsr-loop --iterations 3 --workspace demo --scenario push_cube
"""

from __future__ import annotations

if __name__ == "__main__":  # before Prefect is imported: its home and server are chosen by then
    from rsr_flows.console import loop

    raise SystemExit(loop())

from pathlib import Path
from typing import Any

from prefect import flow

from rsr.config import parse_config
from rsr_tasks.campaign import DEFAULT_TABLE, opened
from rsr_tasks.loop import go_round
from rsr_tasks.stages import PREFECT
from rsr_tasks.watcher import watched


@flow(name="rsr-loop", persist_result=False)
def rsr_loop(
    workspace: str = ".", iterations: int = 3, table: str = DEFAULT_TABLE, scenario: str | None = None
) -> list[dict[str, Any]]:
    """Close the gap between simulation and reality; returns one row of figures an iteration.

    Where a person has to record or to approve something first, it says so and ends; run again, it goes on from there.

    Args:
        workspace: the campaign's folder: an absolute path, or one from the folder of the project on.
        iterations: length of the chain, those already done included.
        table: "module:name" of the steps; the module is imported, which runs its code.
        scenario: a name, a path or menagerie:NAME; begins a campaign with a copy of it, on a stand-in, where the folder
            is new; otherwise `rsr init` begins one.
    """
    config = None if scenario is None else parse_config({"scenario": scenario}, where="parameters of the flow")
    with opened(Path(workspace), table, config) as campaign, watched():
        return go_round(campaign, iterations, PREFECT)
