"""Making workspaces, and refusing folders that are none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from toy import TABLE, TABLE_NAME
from toy.bare import find_faults, run_bare_loop

from rsr.common.errors import WorkspaceError
from rsr.config import LoopConfig, load_config
from rsr.pipelines import render_pipeline
from rsr.workspace import Workspace
from rsr_tasks import bookkeeping, versions
from rsr_tasks.campaign import opened
from rsr_tasks.workspace import create_workspace

_PROJECT = Path(__file__).resolve().parents[2]


def refusal(root: Path) -> str:
    with pytest.raises(WorkspaceError) as caught, opened(root, TABLE_NAME, LoopConfig()):
        pass
    return str(caught.value)


def test_a_new_workspace_is_a_clean_git_and_dvc_repository(tmp_path):
    root = tmp_path / "new" / "workspace"
    with opened(root, TABLE_NAME, LoopConfig(seed=4)) as campaign:
        assert campaign.workspace.chain() == {}
        assert campaign.workspace.settings().seed == 4
    assert versions.git(root, "status", "--porcelain") == ""
    assert versions.git(root, "log", "--format=%s") == "rsr: a new campaign"
    assert bookkeeping.stale(root) == {"start"}
    assert (root / "dvc.yaml").read_text() == render_pipeline(TABLE, Workspace(root))
    assert (root / ".rsr/python").read_text() == f"{sys.executable}\n"
    assert sorted(path.name for path in (root / ".rsr").iterdir()) == ["lock", "python"]


def test_dvc_tells_nobody_and_shares_storage(tmp_path):
    create_workspace(tmp_path / "w", LoopConfig(), TABLE)
    config = (tmp_path / "w/.dvc/config").read_text()
    for line in ("analytics = False", "check_update = False", "autostage = True", "type = reflink, hardlink, copy"):
        assert line in config


@pytest.mark.parametrize("present", [[], [".rsr"], [".rsr", ".prefect"]])
def test_an_empty_folder_becomes_one(tmp_path, present):
    for name in present:
        (tmp_path / name).mkdir()
    with opened(tmp_path, TABLE_NAME, LoopConfig()):
        assert (tmp_path / ".git").is_dir()


def test_an_interrupted_creation_is_begun_again(tmp_path):
    create_workspace(tmp_path, LoopConfig(seed=1), TABLE)
    (tmp_path / ".rsr/unfinished").touch()
    (tmp_path / "dvc.yaml").unlink()
    with opened(tmp_path, TABLE_NAME, LoopConfig(seed=2)):
        assert load_config(tmp_path / "params.yaml").seed == 2
    assert versions.git(tmp_path, "log", "--format=%s") == "rsr: a new campaign"


def test_an_existing_workspace_keeps_its_settings(tmp_path):
    create_workspace(tmp_path, LoopConfig(seed=1), TABLE)
    with opened(tmp_path, TABLE_NAME, LoopConfig(seed=2)):
        assert load_config(tmp_path / "params.yaml").seed == 1


def test_generated_files_are_brought_up_to_date(tmp_path):
    create_workspace(tmp_path, LoopConfig(), TABLE)
    (tmp_path / "dvc.yaml").write_text("stages: {}\n")
    (tmp_path / "bin/rsr").unlink()
    with opened(tmp_path, TABLE_NAME):
        assert (tmp_path / "dvc.yaml").read_text() == render_pipeline(TABLE, Workspace(tmp_path))
        assert os.access(tmp_path / "bin/rsr", os.X_OK)


def test_works_inside_a_git_hook(tmp_path, monkeypatch):
    """In a hook, git's variables point at the repository that the hook belongs to."""
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere.git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "elsewhere.git/index"))
    create_workspace(tmp_path / "w", LoopConfig(), TABLE)
    monkeypatch.undo()
    assert versions.git(tmp_path / "w", "log", "--format=%s") == "rsr: a new campaign"


def test_commits_without_an_identity_and_with_one(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    create_workspace(tmp_path / "w", LoopConfig(), TABLE)
    assert versions.git(tmp_path / "w", "log", "--format=%an <%ae>") == "rsr loop <rsr@localhost>"
    (tmp_path / ".gitconfig").write_text("[user]\nname = Ada\nemail = ada@lab\n")
    (tmp_path / "w/params.yaml").write_text("seed: 1\n")
    versions.commit(tmp_path / "w", "more", [tmp_path / "w/params.yaml"])
    assert versions.git(tmp_path / "w", "log", "-1", "--format=%an <%ae>") == "Ada <ada@lab>"


def test_a_commit_leaves_the_persons_own_work_alone(tmp_path):
    create_workspace(tmp_path, LoopConfig(), TABLE)
    (tmp_path / "notes.md").write_text("mine")
    versions.git(tmp_path, "add", "notes.md")
    (tmp_path / "params.yaml").write_text("seed: 1\n")
    versions.commit(tmp_path, "machine", [tmp_path / "params.yaml"], ["iter/001"])
    assert versions.git(tmp_path, "status", "--porcelain") == "A  notes.md"


@pytest.mark.parametrize(
    ("missing", "what", "command"),
    [
        (".git", "git", "git init"),
        (".dvc", "DVC", "dvc init"),
        ("iterations.json", "iterations.json", "git checkout ."),
    ],
)
def test_a_folder_that_is_no_workspace(tmp_path, missing, what, command):
    create_workspace(tmp_path, LoopConfig(), TABLE)
    shutil.rmtree(tmp_path / ".rsr")
    path = tmp_path / missing
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    before = sorted(tmp_path.iterdir())
    assert refusal(tmp_path) == (
        f"{tmp_path}: got a folder without {what}; "
        "expected a workspace: its own git and DVC repository, with iterations.json. "
        f"Name a new or empty folder, in which a workspace is made; or run `{command}` in this one."
    )
    assert sorted(tmp_path.iterdir()) == before


class TestNowhereToWrite:
    """On a file system of its own, small or read-only: root may write everywhere else."""

    def run(self, tmp_path, options, code):
        (tmp_path / "mount").mkdir()
        script = (
            f'mount -t tmpfs -o {options} tmpfs {tmp_path}/mount && exec {sys.executable} -c "$1" {tmp_path}/mount/w'
        )
        namespace = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", code]
        done = subprocess.run(namespace, capture_output=True, text=True, check=False, cwd=_PROJECT)
        if "unshare" in done.stderr or "mount:" in done.stderr:
            pytest.skip("this machine allows no mount namespaces")
        return done

    _OPEN = """
import sys
from rsr.config import LoopConfig
from rsr.common.errors import RsrError
from rsr_tasks.campaign import opened
try:
    with opened(sys.argv[1], "toy:TABLE", LoopConfig()):
        pass
except RsrError as error:
    print(type(error).__name__, error)
"""

    def test_a_folder_that_cannot_be_written(self, tmp_path):
        done = self.run(tmp_path, "ro", self._OPEN)
        assert done.stdout == (
            f"WorkspaceError {tmp_path}/mount/w/.rsr/lock: got Read-only file system; "
            "expected a writable folder with free space. "
            "Free some space or correct the permissions, then run the same command again: nothing was lost.\n"
        ), done.stderr

    def test_a_disk_too_full_to_begin(self, tmp_path):
        done = self.run(tmp_path, "size=20m", self._OPEN)
        assert re.sub(r"\d+ MB of", "20 MB of", done.stdout) == (
            f"WorkspaceError {tmp_path}/mount/w: got 20 MB of free space; expected at least 100 MB. "
            "Free some space, then run the same command again: nothing was lost.\n"
        ), done.stderr

    _FILL = """
import sys
from pathlib import Path
from rsr.config import LoopConfig
from rsr.common.errors import RsrError
from rsr_tasks import loop
from rsr_tasks.campaign import opened
from toy.bare import find_faults, run_bare_loop
root = Path(sys.argv[1])
with opened(root, "toy:TABLE", LoopConfig()) as campaign:
    loop.plan(campaign, 0)
    loop.bring_up_to_date(campaign, "start", 0)
    loop.plan(campaign, 1)
    loop.collect(campaign, 1)
    with (root.parent / "big").open("wb", buffering=0) as big:
        try:
            while True:
                big.write(bytes(1024))
        except OSError:
            pass
    try:
        loop.bring_up_to_date(campaign, "tune", 1)
    except RsrError as error:
        print(type(error).__name__, error.got)
(root.parent / "big").unlink()
run_bare_loop(root, 1)
print(find_faults(root, 1))
"""

    def test_a_disk_that_fills_up_in_the_middle(self, tmp_path):
        done = self.run(tmp_path, "size=150m", self._FILL)
        assert done.stdout == "WorkspaceError No space left on device\n[]\n", done.stderr

    _SEAL = """
import subprocess, sys
from pathlib import Path
from rsr.config import LoopConfig
from rsr.common.errors import RsrError
from rsr_tasks import loop
from rsr_tasks.campaign import opened
from toy.bare import find_faults, run_bare_loop
root = Path(sys.argv[1])
folder = str(root / "iterations" / "001")
with opened(root, "toy:TABLE", LoopConfig()) as campaign:
    loop.plan(campaign, 0)
    loop.bring_up_to_date(campaign, "start", 0)
    loop.plan(campaign, 1)
    loop.collect(campaign, 1)
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
    try:
        loop.bring_up_to_date(campaign, "tune", 1)
    except RsrError as error:
        print(type(error).__name__, error.got)
    subprocess.run(["umount", folder], check=True)
run_bare_loop(root, 1)
print(find_faults(root, 1))
"""

    @pytest.mark.slow
    def test_a_folder_that_becomes_read_only_in_the_middle(self, tmp_path):
        done = self.run(tmp_path, "size=150m", self._SEAL)
        assert done.stdout == "WorkspaceError Read-only file system\n[]\n", done.stderr


def test_a_clone_of_the_project_is_a_workspace_too(tmp_path):
    """A lab may fork the project and run the loop at its root."""
    origin = tmp_path / "origin"
    shipped = (".dvc/config", ".dvc/.gitignore", ".dvcignore", ".gitignore", "data.dvc", "dvc.yaml", "iterations.json")
    for name in (*shipped, "params.yaml", "bin/rsr"):
        (origin / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(_PROJECT / name, origin / name)
    versions.initialise(origin)
    versions.commit(origin, "the project", [origin / name for name in (*shipped, "params.yaml", "bin/rsr")])
    versions.git(tmp_path, "clone", "--quiet", "origin", "clone")
    run_bare_loop(tmp_path / "clone", 1)
    assert find_faults(tmp_path / "clone", 1) == []
    assert list(Workspace(tmp_path / "clone").chain()) == [1]
