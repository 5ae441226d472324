"""Crashes, full disks and unwritable folders: a session is there as a whole, or not at all."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sample_sessions import assert_same, list_sessions, make_session

from rsr.common.errors import WorkspaceError
from rsr.sessions import read_session, write_session

SYNCS_BEFORE_RENAME = 13
"""Seven files and six folders; the fourteenth sync is that of the parent, after the rename."""

KILL_AT_EVERY_SYNC = """
import os, sys
from pathlib import Path
from sample_sessions import list_sessions, make_session
from sync_kills import die_at_sync
from rsr.sessions import write_session

session = make_session()

def write_and_die(root, at):
    die_at_sync(at)
    write_session(root, session)

for at in range(1, int(sys.argv[2]) + 1):
    child = os.fork()
    if child == 0:
        write_and_die(Path(sys.argv[1]) / str(at), at)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(at, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0)
"""


def test_a_kill_at_any_moment_leaves_no_half_session(tmp_path):
    """A real SIGKILL at every point where something reaches the disk, then the same call again."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    points = SYNCS_BEFORE_RENAME + 2
    command = [sys.executable, "-c", KILL_AT_EVERY_SYNC, str(tmp_path), str(points)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    signals = [int(line.split()[1]) for line in done.stdout.splitlines()]
    assert signals == [9] * (SYNCS_BEFORE_RENAME + 1) + [0]
    for at in range(1, points + 1):
        root = tmp_path / str(at)
        folder = root / "push_cube" / "session-001"
        whole = at > SYNCS_BEFORE_RENAME
        assert list_sessions(root).readable == ((folder,) if whole else ())
        assert len(list_sessions(root).damaged) == (0 if whole else 1)
        assert write_session(root, make_session()) == folder
        assert_same(read_session(folder), make_session())
        assert list(folder.parent.iterdir()) == [folder]


@pytest.fixture
def mount(tmp_path):
    """Mount a small file system of its own: the one way to fill a disk, or to stop root from writing."""
    folder = tmp_path / "mounted"
    folder.mkdir()

    def attach(options: str) -> Path:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "none", str(folder)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            pytest.skip(f"needs the right to mount a tmpfs: {done.stderr.strip()}")
        return folder

    try:
        yield attach
    finally:
        if folder.is_mount():
            subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_said_and_leaves_nothing(mount):
    root = mount("size=64k")
    session = make_session(rows=201)
    with pytest.raises(WorkspaceError) as raised:
        write_session(root, session)
    folder = root / "push_cube" / "session-001"
    assert str(raised.value) == (
        f"{folder}: got No space left on device; expected a writable folder with free space. "
        "Free some space or correct the permissions, then run the same command again: nothing was lost."
    )
    assert list((root / "push_cube").iterdir()) == []
    subprocess.run(["mount", "-o", "remount,size=8m", str(root)], check=True)
    assert_same(read_session(write_session(root, session)), session)


def test_a_read_only_disk_is_said(mount):
    root = mount("ro")
    with pytest.raises(WorkspaceError) as raised:
        write_session(root, make_session())
    assert str(raised.value) == (
        f"{root / 'push_cube' / 'session-001'}: got Read-only file system; expected a writable folder with free space. "
        "Free some space or correct the permissions, then run the same command again: nothing was lost."
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere: see the read-only disk")
def test_a_folder_without_permission_is_said(tmp_path):
    (tmp_path / "push_cube").mkdir(mode=0o555)
    with pytest.raises(WorkspaceError, match="got Permission denied"):
        write_session(tmp_path, make_session())


def test_a_file_in_the_way_is_said(tmp_path):
    (tmp_path / "data").write_text("not a folder")
    with pytest.raises(WorkspaceError, match="got Not a directory"):
        write_session(tmp_path / "data", make_session())
    assert (tmp_path / "data").read_text() == "not a folder"
