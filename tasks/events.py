"""Events that automations may act upon: call a person, start a deployment. Their resource is the workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from prefect.events import emit_event

from rsr.config import LoopConfig
from rsr.workspace import Workspace

Name = Literal["rsr.robot-changed", "rsr.waiting", "rsr.session-dropped", "rsr.policy-approved"]
"""The gap left its noise band; the loop waits for a person; a session came into the inbox; a policy may be deployed."""


def tell(name: Name, root: Path, **payload: float | str) -> None:
    """Emit an event about the workspace; it also says which flow the campaign belongs to."""
    labels = {"prefect.resource.id": f"rsr.workspace.{root.name}", "prefect.resource.name": str(root)}
    emit_event(name, resource={**labels, "rsr.flow": _flow_of(Workspace(root).settings())}, payload=payload)


def _flow_of(settings: LoopConfig) -> str:
    sections = {"clash": settings.clash, "gnn": settings.gnn}
    return next((name for name, section in sections.items() if section is not None), "rsr-loop")
