"""Automations of the server."""

from __future__ import annotations

from datetime import timedelta


def test_an_automation_is_there_once_and_as_it_was_last_said(prefect_server):
    from prefect.client.orchestration import get_client

    from rsr_flows.automations import ensure, silent_runs

    ensure(silent_runs())
    ensure(silent_runs(timedelta(minutes=20)))
    with get_client(sync_client=True) as client:
        (known,) = client.read_automations_by_name(silent_runs().name)
    assert known.trigger.within == timedelta(minutes=20)
