"""What people in a lab start from a form: a visit is over, a policy may be deployed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from prefect import flow
from pydantic import BaseModel, Field

from flows.rsr_loop import rsr_loop
from tasks.campaign import DEFAULT_TABLE
from tasks.lab import allow, answer_request, choose


class LabVisit(BaseModel):
    """What came of a visit to the lab, and what to do with it."""

    workspace: str = Field(description="folder of the campaign")
    sources: list[Path] = Field(description="what was recorded: bags, CSV, LeRobot sets, stored sessions, ...")
    mapping: Path | None = Field(None, description="file that says which columns are which channels, if there is one")
    method: Literal["mjx", "cmaes", "sysid", "adam"] | None = Field(
        None,
        description="how to fit the simulator to this visit's session, and from then on. Empty, here and below: as "
        "params.yaml says",
    )
    fit_episodes: int | None = Field(None, ge=1, description="episodes to fit; the others judge the fit")
    train_steps: int | None = Field(None, ge=1, description="environment steps of the retraining")


@flow(name="after-lab-session", persist_result=False)
def after_lab_session(visit: LabVisit, table: str = DEFAULT_TABLE) -> list[dict[str, Any]]:
    """Put a visit's recordings into the campaign and go round the loop; returns one row of figures an iteration."""
    choose(visit.workspace, visit.method, visit.fit_episodes, visit.train_steps)
    iteration = answer_request(visit.workspace, visit.sources, visit.mapping)
    return rsr_loop(visit.workspace, iteration, table)


class Decision(BaseModel):
    """A person's word on a policy."""

    workspace: str = Field(description="folder of the campaign")
    iteration: int = Field(ge=0, description="whose policy; its report is iterations/NNN/report.html")
    by: str = Field(min_length=1, description="who answers for it")
    note: str = Field("", description="what else there is to say")


@flow(name="approve", persist_result=False)
def approve(decision: Decision) -> None:
    """Let a policy be deployed; the loop, run again, then goes on."""
    allow(decision.workspace, decision.iteration, decision.by, decision.note)
