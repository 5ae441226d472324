"""A new version of DVC that lacks a part which we use is named; what we write is what DVC writes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from toy.bare import run_bare_loop

from rsr.common.errors import WorkspaceError
from rsr_tasks import bookkeeping, dvc_private


def dvc(root: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "dvc", *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def workspace(finished_loop):
    return finished_loop


def test_the_installed_dvc_has_every_part_that_is_used():
    assert dvc_private.missing() == []


def test_a_missing_part_is_named():
    parts = (
        "dvc.repo:lock_repo",
        "dvc.nowhere:thing",
        "dvc.repo:Repo.left",
        "dvc.rwlock:rwlock(tmp_dir, patience)",
    )
    assert dvc_private.missing(parts) == list(parts[1:])


@pytest.mark.parametrize("address", ["start", "tune@1", "report@2"])
def test_a_stage_is_what_dvc_makes_of_the_whole_files(workspace, address):
    with bookkeeping._opened(workspace) as repo, dvc_private.locked(repo):
        ours, (theirs,) = dvc_private.stage_of(repo, address), repo.stage.collect(address)
        assert ours.dumpd() == theirs.dumpd()
        assert ours.status() == theirs.status() == {}


def test_dvc_commit_writes_the_same_bytes(workspace):
    lock, metrics = workspace / "dvc.lock", workspace / "iterations/001/evaluation/metrics.json"
    lock.write_bytes(lock.read_bytes().replace(b"  tune@2:\n", b"  tune@7:\n"))  # one entry gone, and one that is old
    metrics.write_text(json.dumps(json.loads(metrics.read_text()) | {"iteration": 1.5e-7}))
    before = lock.read_bytes()
    addresses = ("tune@2", "evaluate@1", "report@1")
    with bookkeeping._opened(workspace) as repo:
        for address in addresses:
            dvc_private.commit(repo, address)
    ours = lock.read_bytes()
    lock.write_bytes(before)
    for address in addresses:
        dvc(workspace, "commit", "--force", address)
    assert ours == lock.read_bytes() != before


def test_dvc_leaves_nothing_in_memory_for_the_next_iteration(tmp_path):
    others = {name: MemoryFileSystem.store[name] for name in MemoryFileSystem.store}
    MemoryFileSystem.store["/of somebody else"] = None
    try:
        run_bare_loop(tmp_path / "workspace", 1)
        assert MemoryFileSystem.store == {**others, "/of somebody else": None}
    finally:
        del MemoryFileSystem.store["/of somebody else"]


def test_an_output_that_git_tracks_is_refused_as_by_dvc(workspace):
    policy = workspace / "iterations/002/policy"
    subprocess.run(["git", "add", "--force", str(policy)], cwd=workspace, check=True)
    with pytest.raises(WorkspaceError, match="already tracked by SCM"), bookkeeping._opened(workspace) as repo:
        dvc_private.commit(repo, "retrain@2")


@pytest.mark.parametrize(
    "change",
    [lambda text: "# by hand\n" + text, lambda text: text.replace("\n  tune@1:", "\n\n  tune@1:")],
    ids=["comment", "empty line"],
)
def test_a_file_that_a_person_has_edited_is_left_to_dvc(workspace, change, monkeypatch):
    lock = workspace / "dvc.lock"
    lock.write_text(change(lock.read_text()))
    monkeypatch.chdir(workspace)
    assert dvc_private._usual_lock() is None
    with bookkeeping._opened(workspace) as repo:
        dvc_private.commit(repo, "tune@1")
        with dvc_private.locked(repo):
            assert dvc_private.stage_of(repo, "tune@1").status() == {}
