"""Arrivals that a campaign waits for, and when they count as having come."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rsr.cli import main
from rsr.common.files import write_json, write_text
from rsr.common.progress import ignore
from rsr.config import LoopConfig, RealityConfig, dump_config
from rsr.pipelines.lab.approval import approve
from rsr.pipelines.lab.arrivals import QUIET_S, arrival
from rsr.policies import Normaliser, Policy
from rsr.realities import CollectionPlan, StandIn
from rsr.scenarios import load_scenario, task_of
from rsr.sessions import write_session
from rsr.workspace import Workspace

INBOX = RealityConfig(kind="inbox", episodes=2)


def still() -> Policy:
    size = task_of(load_scenario("push_cube")).observation_size
    layers = ((np.zeros((2, size), np.float32), np.zeros(2, np.float32)),)
    return Policy(task_of(load_scenario("push_cube")), Normaliser(np.zeros(size), np.ones(size), 10.0), layers)


def waiting(root: Path, reality: RealityConfig) -> Workspace:
    """A campaign with a first policy, whose loop stopped for somebody a while ago."""
    write_json(root / "iterations.json", {"chain": {}})
    dump_config(LoopConfig(reality=reality), root / "params.yaml")
    workspace = Workspace(root)
    workspace.plan(0)
    workspace.plan(1)
    still().save(workspace.policy_dir(0))
    write_text(workspace.waiting_path, "for somebody\n")
    os.utime(workspace.waiting_path, (1.0, 1.0))
    return workspace


def drop(workspace: Workspace) -> Path:
    session = StandIn(load_scenario("push_cube"), 1).collect(still(), CollectionPlan("session-001", 2, 5), ignore)
    (workspace.root / "inbox").mkdir(exist_ok=True)
    return write_session(workspace.root / "copying", session).rename(workspace.root / "inbox" / "session-001")


@pytest.fixture
def lab(tmp_path) -> Workspace:
    workspace = waiting(tmp_path / "lab", INBOX)
    (workspace.root / "inbox").mkdir()
    return workspace


class TestDrop:
    def test_a_session_has_come_when_nothing_is_written_to_it_any_more(self, lab):
        assert arrival(lab) is None
        folder = drop(lab)
        next(folder.rglob("*.parquet")).touch()
        latest_s = max(path.stat().st_mtime for path in folder.rglob("*"))
        assert arrival(lab, now_s=lambda: latest_s + QUIET_S / 2) is None, "it may still be copied"
        found = arrival(lab, now_s=lambda: latest_s + QUIET_S)
        assert found is not None
        assert (found.kind, found.iteration, found.path, found.at_s) == ("session-dropped", 1, folder, latest_s)

    def test_status_says_so(self, lab, capsys):
        main(["status", "--workspace", str(lab.root)])
        assert "Waiting: for somebody" in capsys.readouterr().out
        drop(lab)
        main(["status", "--workspace", str(lab.root)])
        assert (
            "What the loop waited for has come: inbox/session-001. It has to be run again." in capsys.readouterr().out
        )

    def test_an_archive_of_it_will_do_and_is_not_read(self, lab):
        archive = lab.root / "inbox" / "session-001.zip"
        archive.write_bytes(b"not even an archive")
        found = arrival(lab, now_s=lambda: archive.stat().st_mtime + QUIET_S)
        assert found is not None, "the loop says what is wrong with it, and moves it away"
        assert found.path == archive

    def test_nothing_comes_for_a_loop_that_does_not_wait(self, lab):
        drop(lab)
        lab.waiting_path.unlink()
        assert arrival(lab) is None

    def test_without_approval_a_session_is_of_no_use(self, tmp_path):
        workspace = waiting(tmp_path / "lab", replace_reality(approval=True))
        (workspace.root / "inbox").mkdir()
        drop(workspace)
        assert arrival(workspace) is None


class TestApproval:
    @pytest.fixture
    def gated(self, tmp_path) -> Workspace:
        return waiting(tmp_path / "gated", replace_reality(approval=True))

    def test_it_comes_once_and_is_old_news_when_the_loop_asks_for_more(self, gated):
        assert arrival(gated) is None
        approve(gated, 0, by="a person")
        found = arrival(gated)
        assert found is not None
        assert (found.kind, found.iteration, found.path) == ("policy-approved", 1, gated.approval_path(0))
        write_text(gated.waiting_path, "for a session\n")
        assert arrival(gated) is None

    def test_an_approval_of_another_policy_is_none(self, gated):
        approve(gated, 0, by="a person")
        policy = still()
        replace(policy, layers=((policy.layers[0][0] + 1, policy.layers[0][1]),)).save(gated.policy_dir(0))
        assert arrival(gated) is None


def replace_reality(**changes: bool) -> RealityConfig:
    return INBOX.model_copy(update=changes)
