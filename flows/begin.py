"""A campaign begun from a form on Prefect's page; `rsr init` is the same in a terminal."""

from __future__ import annotations

from typing import Any

from prefect import flow
from pydantic import BaseModel, Field

from rsr_flows.clash import clash
from rsr_flows.gnn import gnn
from rsr_flows.rsr_loop import rsr_loop
from rsr_tasks.begin import Pipeline, Reality
from rsr_tasks.campaign import CLASH_TABLE, DEFAULT_TABLE, GNN_TABLE
from rsr_tasks.lab import begin


class NewCampaign(BaseModel):
    """Settings of a campaign to be made. Paths are those of the machine on which the worker runs."""

    workspace: str = Field(
        description="its folder, new or empty: an absolute path, such as /data/campaigns/block_on_table, or one from "
        "the folder of `make serve` on, such as block_on_table",
    )
    scenario: str = Field(
        "push_cube",
        description="a built-in scenario's name, such as push_cube; the path of a YAML file, such as "
        "/home/lab/arm/scenario.yaml; or menagerie:NAME. It is copied with its meshes",
    )
    reality: Reality = Field(
        "inbox",
        description="where recordings come from. stand_in: simulated; inbox: the lab records by itself; robot: the "
        "worker's machine drives it",
    )
    approval: bool = Field(True, description="no policy is deployed before a person approved of it (approve)")
    pipeline: Pipeline = Field(
        "loop", description="loop tunes, retrains and deploys; clash learns collisions, gnn a simulator of contact"
    )
    seed: int = Field(0, ge=0, description="of everything random")
    iterations: int = Field(1, ge=0, description="how far to go at once; 0 makes the folder alone")


@flow(name="begin-campaign", persist_result=False)
def begin_campaign(campaign: NewCampaign, table: str | None = None) -> list[dict[str, Any]]:
    """Make a campaign's folder and go round the loop, until it is done or waits for somebody; returns its figures.

    Args:
        campaign: its settings.
        table: "module:name" of the steps; by default those of the pipeline.
    """
    root = begin(
        campaign.workspace, campaign.pipeline, campaign.scenario, campaign.reality, campaign.approval, campaign.seed
    )
    if campaign.iterations == 0:
        return []
    if campaign.pipeline == "clash":
        return clash(root, campaign.iterations, table=table or CLASH_TABLE)
    if campaign.pipeline == "gnn":
        return gnn(root, campaign.iterations, table=table or GNN_TABLE)
    return rsr_loop(root, campaign.iterations, table or DEFAULT_TABLE)
