"""The gap watch as a flow: a real Prefect server, a campaign whose calibration is right, and a robot that changes."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from rsr.calibration import Calibration, Evidence, save_calibration
from rsr.cli import main
from rsr.common.errors import WorkspaceError
from rsr.common.files import write_json
from rsr.config import LoopConfig, RealityConfig, dump_config
from rsr.sessions import write_session
from rsr.workspace import Workspace
from rsr_tasks.locking import held
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


def events(root: Path, patience: int = 100) -> list[dict]:
    """Alarms about the workspace that the server knows; they take a moment to arrive."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        for _ in range(patience):
            question = {"filter": {"event": {"name": ["rsr.robot-changed"]}}}
            found = client.request("POST", "/events/filter", json=question).json()["events"]
            if ours := [event for event in found if event["resource"]["prefect.resource.name"] == str(root)]:
                return ours
            Event().wait(0.2)
    return []


def test_it_is_quiet_while_the_robot_stays_and_speaks_up_when_it_changes(campaign, prefect_server):
    from rsr_flows.gap_watch import gap_watch

    assert gap_watch(str(campaign.root)) is False
    assert page().startswith("# The gap is within its noise band")
    changed = record(campaign, "after-the-repair", seed=3, truth=(("actuator_gain", 0.9),))
    assert gap_watch(str(campaign.root), [changed]) is True
    assert page().startswith("# The robot has changed")
    (event,) = events(campaign.root)
    assert event["payload"]["gap_now"] > event["payload"]["limit"]


@pytest.mark.slow
def test_a_drop_that_no_calibration_has_seen_is_judged_and_the_alarm_stays_in_sight(campaign, prefect_server, capsys):
    from rsr_flows.gap_watch import gap_watch

    dump_config(LoopConfig(reality=RealityConfig(kind="inbox")), campaign.settings_path)
    made = record(campaign, "session-003", seed=3, truth=(("actuator_gain", 0.9),))
    (campaign.root / "inbox").mkdir()
    drop = made.rename(campaign.root / "inbox" / "session-003")
    assert gap_watch(str(campaign.root)) is True
    assert gap_watch(str(campaign.root)) is True
    assert len(events(campaign.root)) == 1, "the same finding is told once"
    with held(campaign.root):
        assert main(["status", "--workspace", str(campaign.root)]) == 0
    said = capsys.readouterr().out
    assert f"A loop is at work: process {os.getpid()} on" in said
    assert "Alert: the robot, or what it touches, has changed: gap" in said
    assert "rsr-loop" not in said, "nothing is to be begun while it runs"

    drop.rename(campaign.root / "withdrawn")
    assert gap_watch(str(campaign.root)) is False
    assert not campaign.alert_path.exists()


def test_without_a_calibration_it_says_what_is_missing(tmp_path, prefect_server):
    from rsr_flows.gap_watch import gap_watch

    write_json(tmp_path / "iterations.json", {"chain": {}})
    with pytest.raises(WorkspaceError, match="got 0 iterations with a calibration"):
        gap_watch(str(tmp_path))
