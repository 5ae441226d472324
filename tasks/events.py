"""Events that automations may act upon: call a person, start a deployment. Their resource is the workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from prefect.events import emit_event

Name = Literal["rsr.robot-changed", "rsr.waiting", "rsr.session-dropped", "rsr.policy-approved"]
"""The gap left its noise band; the loop waits for a person; a session came into the inbox; a policy may be deployed."""


def tell(name: Name, root: Path, **payload: float | str) -> None:
    """Emit an event about the workspace."""
    resource = {"prefect.resource.id": f"rsr.workspace.{root.name}", "prefect.resource.name": str(root)}
    emit_event(name, resource=resource, payload=payload)
