"""Make a run whose process is gone: `main` begins it, gives one sign of life, and shortens the server's patience."""

from __future__ import annotations

import sys
from datetime import timedelta

from prefect import flow
from prefect.client.orchestration import get_client
from prefect.events import emit_event
from prefect.states import Running

from rsr_flows.automations import ensure, silent_runs


@flow(name="silence")
def silence() -> None:
    """Never runs; it only has a run."""


def main(patience_s: str) -> None:
    """Say the run's id."""
    ensure(silent_runs(timedelta(seconds=float(patience_s))))
    with get_client(sync_client=True) as client:
        run = client.create_flow_run(silence, state=Running())
    resource = {"prefect.resource.id": f"prefect.flow-run.{run.id}"}
    emit_event("prefect.flow-run.heartbeat", resource=resource)
    sys.stdout.write(str(run.id))
