"""The inbox watch tells of what came, once, and leaves a loop at work alone."""

from __future__ import annotations

import time
from threading import Event

import pytest

from rsr.common.files import read_json, write_json
from rsr.config import ClashConfig, GnnConfig, LoopConfig, RealityConfig
from rsr.pipelines.lab.approval import approve
from rsr_tasks.lab import _flow_of
from rsr_tasks.locking import held
from tests.pipelines.test_arrivals import waiting


@pytest.fixture
def campaign(tmp_path):
    """A campaign that stopped for an approval, which was given."""
    workspace = waiting(tmp_path / "lab", RealityConfig(kind="inbox", approval=True))
    approve(workspace, 0, by="a person")
    return workspace


def told_to(server_patience: int, root: str) -> list[dict]:
    """Events about the workspace that the server knows; they take a moment to arrive."""
    from prefect.client.orchestration import get_client

    question = {"filter": {"event": {"name": ["rsr.policy-approved", "rsr.session-dropped"]}}}
    with get_client(sync_client=True) as client:
        for _ in range(server_patience):
            found = client.request("POST", "/events/filter", json=question).json()["events"]
            if ours := [event for event in found if event["resource"]["prefect.resource.name"] == root]:
                return ours
            Event().wait(0.2)
    return []


def test_what_came_is_told_once_and_again_after_a_while_without_effect(campaign, tmp_path, prefect_server):
    from rsr_flows.watch_inbox import watch_inbox

    (line,) = watch_inbox(str(tmp_path))
    assert line == f"{campaign.root}: policy-approved for iteration 1 (iterations/000/approval.json)"
    (event,) = told_to(100, str(campaign.root))
    assert event["event"] == "rsr.policy-approved"
    assert event["payload"] == {"iteration": 1, "until": 1}
    assert event["resource"]["rsr.flow"] == "rsr-loop"
    assert watch_inbox(str(tmp_path)) == []

    note = campaign.root / ".rsr" / "emitted.json"
    write_json(note, {**read_json(note), "at_s": time.time() - 3600})
    assert len(watch_inbox(str(tmp_path))) == 1, "whoever received it may have died"


def test_an_event_says_which_flow_the_campaign_belongs_to():
    labels = [_flow_of(LoopConfig(**sections)) for sections in ({}, {"clash": ClashConfig()}, {"gnn": GnnConfig()})]
    assert labels == ["rsr-loop", "clash", "gnn"]


def test_a_loop_at_work_will_find_it_by_itself(campaign, prefect_server):
    from rsr_flows.watch_inbox import watch_inbox

    with held(campaign.root):
        assert watch_inbox(str(campaign.root)) == []


def test_a_campaign_in_disorder_does_not_silence_the_others(campaign, tmp_path, prefect_server):
    from rsr_flows.watch_inbox import watch_inbox

    broken = waiting(tmp_path / "broken", RealityConfig(kind="inbox"))
    broken.frozen_path(1).write_text("reality: 3\n")
    assert len(watch_inbox(str(tmp_path))) == 1


def test_a_torn_note_is_no_note(campaign, prefect_server):
    from rsr_flows.watch_inbox import watch_inbox

    (campaign.root / ".rsr" / "emitted.json").write_text('{"path": ')
    assert len(watch_inbox(str(campaign.root))) == 1
