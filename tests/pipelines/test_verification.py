"""Files are read, not believed: a change that leaves size and time alone is found."""

from __future__ import annotations

import os

import pytest
from toy.bare import run_bare_loop

from rsr.common.errors import WorkspaceError
from rsr.pipelines.verification import verify
from rsr.workspace import Workspace
from rsr_tasks import bookkeeping


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Workspace:
    root = tmp_path_factory.mktemp("campaign") / "workspace"
    run_bare_loop(root, 1)
    return Workspace(root)


def test_a_finished_loop_has_the_hashes_that_were_noted(workspace):
    assert verify(workspace) == []


@pytest.mark.parametrize("name", ["data/push_cube/session-001/episodes.npz", "iterations/001/policy/policy.npz"])
def test_a_flipped_bit_is_found_where_dvc_status_sees_nothing(workspace, name):
    path = workspace.root / name
    before, stamp = path.read_bytes(), path.stat()
    path.unlink()  # it may share its bytes with the cache
    path.write_bytes(before)
    bookkeeping.stale(workspace.root)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    bookkeeping.stale(workspace.root)
    with path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(bytes([before[-1] ^ 1]))
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert bookkeeping.stale(workspace.root) == set()
    found = verify(workspace)
    assert found
    assert all(str(path.parent) in line or str(workspace.data_dir) in line for line in found)
    path.write_bytes(before)


def test_what_is_missing_is_said_with_its_remedy(workspace):
    path = workspace.report_path(1)
    page = path.read_bytes()
    path.unlink()
    assert verify(workspace) == [f"{path}: not there; `dvc pull` or `dvc checkout` brings it back"]
    path.write_bytes(page)


def test_damage_in_the_cache(workspace):
    name = next(path for path in (workspace.root / ".dvc/cache/files/md5").glob("??/*") if path.suffix != ".dir")
    before = name.read_bytes()
    name.chmod(0o644)
    name.unlink()
    name.write_bytes(before + b"!")
    assert f"{name}: not what its name says" in verify(workspace)
    name.write_bytes(before)


def test_a_torn_ledger(workspace):
    lock = workspace.root / "dvc.lock"
    text = lock.read_text()
    for torn in ("stages:\n  a: [", "- a\n", "stages: {a: {outs: [{path: b}]}}\n"):
        lock.write_text(torn)
        with pytest.raises(WorkspaceError, match="expected a file of DVC"):
            verify(workspace)
    lock.write_text(text)
