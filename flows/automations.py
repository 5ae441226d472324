"""Automations that belong to no deployment: `python -m rsr_flows.automations`; `rsr-serve` sees to them too.

A worker reports the death of its runs. Where it dies with them, as in a power cut, they would be shown as running for
ever; so a run whose sign of life fails to come is shown as crashed.
"""

from __future__ import annotations

from datetime import timedelta

from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import StateType
from prefect.events import EventTrigger, Posture
from prefect.events.actions import ChangeFlowRunState
from prefect.events.schemas.automations import AutomationCore

_SIGN_OF_LIFE = "prefect.flow-run.heartbeat"
_ENDS = {f"prefect.flow-run.{state}" for state in ("Completed", "Failed", "Cancelled", "Crashed")}


def silent_runs(within: timedelta = timedelta(minutes=15)) -> AutomationCore:
    """Runs without a sign of life for so long have crashed; by default Prefect has one every three minutes."""
    return AutomationCore(
        name="runs that fell silent",
        description="Shows a run as crashed whose worker died with it.",
        trigger=EventTrigger(
            after={_SIGN_OF_LIFE},
            expect={_SIGN_OF_LIFE, *_ENDS},
            match={"prefect.resource.id": "prefect.flow-run.*"},
            for_each={"prefect.resource.id"},
            posture=Posture.Proactive,
            threshold=1,
            within=within,
        ),
        actions=[ChangeFlowRunState(state=StateType.CRASHED, message="No sign of life: its worker died with it.")],
    )


def ensure(automation: AutomationCore) -> None:
    """Have the server know exactly one automation of this name, as it is now."""
    forget(automation.name)
    with get_client(sync_client=True) as client:
        client.create_automation(automation)


def forget(name: str) -> None:
    """Have the server know none of this name."""
    with get_client(sync_client=True) as client:
        for known in client.read_automations_by_name(name):
            client.delete_automation(known.id)


if __name__ == "__main__":
    ensure(silent_runs())
