"""Recovery from what a killed process leaves behind, made by hand or by a process that really dies."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from toy import TABLE_NAME
from toy.bare import find_faults, fingerprint, run_bare_loop

from rsr.common.errors import WorkspaceError
from rsr.sessions import Card, Channel, Episode, Session, read_session, write_session
from rsr_tasks import bookkeeping, versions
from rsr_tasks.campaign import opened, sweep
from rsr_tasks.watcher import LOOP_VARIABLE


@pytest.fixture(scope="module")
def _original(tmp_path_factory):
    root = tmp_path_factory.mktemp("campaign") / "workspace"
    run_bare_loop(root, 1)
    return root


@pytest.fixture
def root(_original, tmp_path):
    """One iteration, done; a copy for each test."""
    return Path(shutil.copytree(_original, tmp_path / "workspace"))


def leave(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("name", ["dvc.lock", "data.dvc"])
@pytest.mark.parametrize("kept", [0.0, 0.9])
def test_a_ledger_torn_in_the_middle_of_a_write(root, name, kept):
    before, text = fingerprint(root), (root / name).read_text()
    (root / name).write_text(text[: int(kept * len(text))])
    run_bare_loop(root, 1)
    assert fingerprint(root) == before
    assert find_faults(root, 1) == []


def test_a_torn_ledger_that_was_never_committed(tmp_path, monkeypatch):
    monkeypatch.setenv("TOY_FAULT", "infogap@1:before:raise")
    with pytest.raises(RuntimeError):
        run_bare_loop(tmp_path / "workspace", 1)
    monkeypatch.delenv("TOY_FAULT")
    (tmp_path / "workspace/dvc.lock").write_text("schema: '2.0'\nstages:\n  start:\n    cm")
    run_bare_loop(tmp_path / "workspace", 1)
    assert find_faults(tmp_path / "workspace", 1) == []


@pytest.mark.parametrize("name", ["index.lock", "HEAD.lock", "refs/heads/main.lock", "refs/tags/iter/002.lock"])
def test_lock_files_of_a_git_that_is_gone(root, name):
    leave(root / ".git" / name)
    run_bare_loop(root, 2)
    assert find_faults(root, 2) == []


def test_lock_files_of_a_git_that_is_alive_are_waited_for(root):
    (root / "note").write_text("mine")
    versions.git(root, "add", "note")
    environment = {**os.environ, "GIT_EDITOR": "sleep 1; true"}
    person = subprocess.Popen(["git", "commit", "note"], cwd=root, env=environment, stderr=subprocess.DEVNULL)
    while not (root / ".git/index.lock").exists():
        assert person.poll() is None, "git ended before it took its lock"
        time.sleep(0.01)
    with opened(root, TABLE_NAME):
        assert person.wait() is not None


def test_dvc_entries_of_a_process_whose_number_lives_on(root):
    session = str(root / "data/push_cube/session-001")
    entry = {"pid": os.getppid(), "cmd": "rsr-loop"}
    leave(root / ".dvc/tmp/rwlock", json.dumps({"write": {session: entry}, "read": {}}))
    holder = {"pid": os.getppid(), "host": "here", "since": "yesterday", "command": "rsr-loop"}
    leave(root / ".rsr/lock", json.dumps(holder))
    (root / "iterations/001/calibration/calibration.json").unlink()
    run_bare_loop(root, 1)
    assert find_faults(root, 1) == []


@pytest.mark.parametrize("text", ["", '{"write": {"/a', '{"write": 3}', "[]"])
def test_dvc_list_of_users_torn(root, text):
    leave(root / ".dvc/tmp/rwlock", text)
    leave(root / ".dvc/tmp/lock", "99999999")  # DVC's own lock is the system's: what the file says does not matter
    run_bare_loop(root, 1)
    assert find_faults(root, 1) == []


def test_half_written_files_and_sessions(root):
    before = fingerprint(root)
    leave(root / "data/push_cube/.session-002.x7.part/meta/card.json", "{")
    leave(root / "iterations/001/.params.yaml.x7.part")
    leave(root / "iterations/001/evaluation/.yyyn76KnCn-AOxrSktEQzg.tmp")
    leave(root / ".iterations.json.x7.part")
    leave(root / ".dvc/cache/files/md5/ab/.unfinished.tmp")
    (root / ".dvc/cache/runs/ab/abcdef").mkdir(parents=True)
    assert bookkeeping.stale(root) == set(), "leftovers are none of DVC's business"
    run_bare_loop(root, 1)
    assert fingerprint(root) == before
    assert find_faults(root, 1) == []


def test_children_of_a_dead_loop_are_ended_and_nobody_else(root):
    sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    orphan = subprocess.Popen(sleep, env={**os.environ, LOOP_VARIABLE: f"12345@here:{root}"})
    stranger = subprocess.Popen(sleep, env={**os.environ, LOOP_VARIABLE: f"12345@here:{root}-2"})
    with opened(root, TABLE_NAME):
        orphan.wait(timeout=1)
        assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


def test_git_has_its_own_words_when_it_fails(root):
    with pytest.raises(WorkspaceError) as caught:
        versions.git(root, "tag", "a..b")
    assert str(caught.value) == (
        f"{root}: got fatal: 'a..b' is not a valid tag name.; expected `git tag` to succeed. "
        "Mend this, then run the same command again: nothing was lost."
    )


class TestInterruptedRecordings:
    """A session's folder is renamed when it is whole; these were killed just before."""

    @pytest.fixture
    def unfinished(self, tmp_path):
        write_session(tmp_path / "data", _session(0.0))
        whole = tmp_path / "data/push_cube/session-001"
        return whole.rename(whole.with_name(".session-001.x7.part"))

    def test_whole_ones_are_kept(self, tmp_path, unfinished):
        sweep(tmp_path)
        assert read_session(tmp_path / "data/push_cube/session-001").card == _session(0.0).card
        assert not unfinished.exists()

    def test_torn_ones_are_removed(self, tmp_path, unfinished):
        for path in unfinished.rglob("*.parquet"):
            path.write_bytes(path.read_bytes()[:100])
        sweep(tmp_path)
        assert list((tmp_path / "data/push_cube").iterdir()) == []

    def test_another_recording_of_the_same_name_is_left_to_a_person(self, tmp_path, unfinished):
        write_session(tmp_path / "data", _session(1.0))
        sweep(tmp_path)
        assert unfinished.exists()
        assert read_session(tmp_path / "data/push_cube/session-001").episodes[0]["tip"][0, 0] == 1.0


def _session(value: float) -> Session:
    episode = Episode(index=0, time_s=np.arange(3) / 20, values={"tip": np.full((3, 1), value)})
    card = Card(session="session-001", scenario="push_cube", reality="stand_in", simulated=True, control_dt_s=0.05)
    return Session(card, (Channel("tip", ("x",), "m", "world"),), (episode,))
