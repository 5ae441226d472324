"""Flows that people in a lab start from a form: a visit is over, a policy may be deployed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from prefect import flow
from pydantic import BaseModel, Field

from rsr_flows.rsr_loop import rsr_loop
from rsr_tasks.campaign import DEFAULT_TABLE
from rsr_tasks.lab import allow, answer_request, choose, login_of_run

# Examples stand in the descriptions: Prefect's page does not show a field's `examples`.
_FOLDER = (
    "the campaign's folder on the worker's machine: an absolute path, such as /data/campaigns/block_on_table, or one "
    "from the folder of `make serve` on, such as block_on_table"
)


class LabVisit(BaseModel):
    """Recordings and settings after a visit to the lab, as a form."""

    workspace: str = Field(description=_FOLDER)
    sources: list[Path] = Field(
        description="what was recorded: bags, CSV, LeRobot sets, stored sessions, ...; paths as above, such as "
        "/data/visits/monday/run-1.mcap",
    )
    mapping: Path | None = Field(
        None,
        description="file that says which columns are which channels, if there is one, such as "
        "/data/visits/mappings/push_cube.yaml; `rsr ingest` writes it",
    )
    method: Literal["mjx", "cmaes", "sysid", "adam"] | None = Field(
        None,
        description="how to fit the simulator to this visit's session, and from then on. Empty, here and below: as "
        "params.yaml says",
    )
    fit_episodes: int | None = Field(None, ge=1, description="episodes to fit; the others judge the fit")
    train_steps: int | None = Field(None, ge=1, description="environment steps of the retraining")


@flow(name="after-lab-session", persist_result=False)
def after_lab_session(visit: LabVisit, table: str = DEFAULT_TABLE) -> list[dict[str, Any]]:
    """Put a visit's recordings into the campaign and go round the loop; returns one row of figures an iteration.

    It goes on up to the question after it: whether the new policy may be deployed, or what to record next.
    """
    choose(visit.workspace, visit.method, visit.fit_episodes, visit.train_steps)
    iteration = answer_request(visit.workspace, visit.sources, visit.mapping)
    return rsr_loop(visit.workspace, iteration + 1, table)


class Decision(BaseModel):
    """A person's word on a policy."""

    workspace: str = Field(description=_FOLDER)
    iteration: int = Field(
        ge=0, description="whose policy, 0 for the first one; the report of a later one is iterations/NNN/report.html"
    )
    by: str = Field(
        min_length=1,
        description="your name, such as Operator One, by which you answer for it. Who logged in by name approves in no "
        "other; who did not, is believed",
    )
    note: str = Field("", description="what else there is to say")


@flow(name="approve", persist_result=False)
def approve(decision: Decision) -> None:
    """Let a policy be deployed; the loop, run again, then goes on.

    A campaign with an approvers.yaml wants a signature: by `rsr approve --key`, or by the page's key for a name that is
    logged in and listed with it (deployments/README.md).
    """
    allow(decision.workspace, decision.iteration, decision.by, decision.note, login_of_run())
