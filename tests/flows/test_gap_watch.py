"""The gap watch as a flow: a real Prefect server, a campaign whose calibration is right, and a robot that changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from rsr.calibration import Calibration, Evidence, save_calibration
from rsr.config import LoopConfig, dump_config
from rsr.errors import WorkspaceError
from rsr.files import write_json
from rsr.sessions import write_session
from rsr.workspace import Workspace
from tests.calibration.recordings import calibrated, recording

EPISODES = 12


@pytest.fixture
def campaign(tmp_path) -> Workspace:
    """Two sessions of a robot that stays as it is, each with the calibration that knows it."""
    write_json(tmp_path / "iterations.json", {"chain": {}})
    dump_config(LoopConfig(), tmp_path / "params.yaml")
    workspace = Workspace(tmp_path)
    for iteration in range(3):
        workspace.plan(iteration)
    for iteration in (1, 2):
        record(workspace, f"session-{iteration:03d}", seed=iteration)
        save_calibration(knowing(), workspace.calibration_dir(iteration))
    return workspace


def record(workspace: Workspace, name: str, **options) -> Path:
    session = recording(episodes=EPISODES, **options)
    return write_session(workspace.data_dir, replace(session, card=replace(session.card, session=name)))


def knowing() -> Calibration:
    """It knows the truth, and every episode of its session judged it."""
    evidence = Evidence(0.02, 0.005, "m", {"block_position": (0.02, 0.005)}, (), tuple(range(EPISODES)))
    return replace(calibrated(), evidence=evidence)


def page() -> str:
    from prefect.artifacts import Artifact

    return Artifact.get("gap-watch").data


def events(patience: int = 100) -> list[dict]:
    """Alarms known to the server; they take a moment to arrive."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        for _ in range(patience):
            question = {"filter": {"event": {"name": ["rsr.robot-changed"]}}}
            found = client.request("POST", "/events/filter", json=question).json()["events"]
            if found:
                return found
            Event().wait(0.2)
    return []


def test_it_is_quiet_while_the_robot_stays_and_speaks_up_when_it_changes(campaign, prefect_server):
    from flows.gap_watch import gap_watch

    assert gap_watch(str(campaign.root)) is False
    assert page().startswith("# The gap is within its noise band")
    changed = record(campaign, "after-the-repair", seed=3, truth=(("actuator_gain", 0.9),))
    assert gap_watch(str(campaign.root), [changed]) is True
    assert page().startswith("# The robot has changed")
    (event,) = events()
    assert event["resource"]["prefect.resource.name"] == str(campaign.root)
    assert event["payload"]["gap_now"] > event["payload"]["limit"]


def test_without_a_calibration_it_says_what_is_missing(tmp_path, prefect_server):
    from flows.gap_watch import gap_watch

    write_json(tmp_path / "iterations.json", {"chain": {}})
    with pytest.raises(WorkspaceError, match="got 0 iterations with a calibration"):
        gap_watch(str(tmp_path))
