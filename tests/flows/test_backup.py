"""A campaign in one file, and back: on another folder, by another user; damaged and hostile files are refused."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from toy import TABLE_NAME
from toy.bare import find_faults, fingerprint, run_bare_loop

from rsr.cli import main as rsr
from rsr.common.errors import WorkspaceError
from rsr.workspace import Workspace
from rsr_tasks import bookkeeping, versions
from rsr_tasks.backup import backup
from rsr_tasks.campaign import opened
from rsr_tasks.locking import held
from rsr_tasks.restore import restore

_PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def campaign(tmp_path_factory) -> Path:
    """Two iterations, and what a person put beside them."""
    root = tmp_path_factory.mktemp("lab") / "campaign"
    run_bare_loop(root, 2)
    (root / "notes.md").write_text("mine")
    (root / "inbox").mkdir()
    (root / "inbox/session-003.request.json").write_text("{}")
    (root / ".rsr/waiting").write_text("a person's approval")
    Workspace(root).approval_path(2).write_text('{"by": "a person"}')
    (root / ".dvc/config.local").write_text("[core]\n    remote = secret\n")
    return root


@pytest.fixture(scope="module")
def archive(campaign, tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("backup") / "campaign.tar.gz"
    backup(campaign, file, table_name=TABLE_NAME)
    return file


def everything(root: Path) -> dict[str, tuple[str, int, int]]:
    """Hash, mode and time of every file that a campaign consists of."""
    own = (".git/", ".prefect/", ".dvc/tmp/", ".rsr/lock", ".rsr/python", ".dvc/config.local")
    files = ((path.relative_to(root).as_posix(), path) for path in root.rglob("*") if path.is_file())
    return {
        name: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mode, path.stat().st_mtime_ns)
        for name, path in files
        if not name.startswith(own)
    }


def test_it_comes_back_bit_for_bit_and_goes_on(campaign, archive, tmp_path):
    workspace, _ = restore(archive, tmp_path / "elsewhere/restored")
    root = workspace.root
    assert everything(root) == everything(campaign)
    assert versions.git(root, "log", "--all", "--format=%H %D") == versions.git(
        campaign, "log", "--all", "--format=%H %D"
    )
    assert versions.git(root, "status", "--porcelain") == versions.git(campaign, "status", "--porcelain")
    versions.git(root, "fsck", "--strict")
    assert bookkeeping.stale(root) == set()
    assert not (root / ".dvc/config.local").exists()
    status = subprocess.run(
        [sys.executable, "-m", "dvc", "status"], cwd=root, capture_output=True, text=True, check=True
    )
    assert "Data and pipelines are up to date" in status.stdout

    workspace.approval_path(2).unlink()
    run_bare_loop(root, 3)
    undisturbed = tmp_path / "undisturbed"
    run_bare_loop(undisturbed, 3)
    assert fingerprint(root) == fingerprint(undisturbed)
    (root / "notes.md").unlink()
    assert [fault for fault in find_faults(root, 3) if "inbox" not in fault] == []


def test_an_older_iteration_can_still_be_looked_at(archive, tmp_path):
    """The cache came along, so git and DVC go back together."""
    workspace, _ = restore(archive, tmp_path / "restored")
    versions.git(workspace.root, "checkout", "--quiet", "iter/001")
    shutil.rmtree(workspace.data_dir)
    command = [sys.executable, "-m", "dvc", "checkout", "--force"]
    subprocess.run(command, cwd=workspace.root, check=True, capture_output=True)
    assert [path.name for path in (workspace.data_dir / "push_cube").iterdir()] == ["session-001"]


def test_files_that_were_one_are_one_again(archive, tmp_path):
    """DVC links results to its cache where it can; copies would take the space twice."""
    with gzip.open(archive) as stream, tarfile.open(fileobj=stream) as members:
        manifest = json.load(members.extractfile("manifest.json"))
    by_inode: dict[int, list[str]] = {}
    for entry in manifest["files"]:
        by_inode.setdefault(entry["inode"], []).append(entry["path"])
    root = restore(archive, tmp_path / "restored")[0].root
    for names in by_inode.values():
        assert len({(root / name).stat().st_ino for name in names}) == 1


def test_a_half_done_iteration_goes_on_from_where_it_was(tmp_path, monkeypatch):
    root = tmp_path / "w"
    monkeypatch.setenv("TOY_FAULT", "retrain@1:half:raise")
    with pytest.raises(RuntimeError):
        run_bare_loop(root, 1)
    monkeypatch.delenv("TOY_FAULT")
    backup(root, tmp_path / "half.tar.gz", table_name=TABLE_NAME)
    monkeypatch.setenv("TOY_AUDIT", str(tmp_path / "audit"))
    restored = restore(tmp_path / "half.tar.gz", tmp_path / "r")[0].root
    run_bare_loop(restored, 1)
    assert (tmp_path / "audit").read_text().split() == ["retrain@1", "evaluate@1", "report@1"]
    assert find_faults(restored, 1) == []


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="only root becomes another user")
def test_another_user_restores_it_and_goes_on(archive):
    """As an ordinary user without a name, in a folder and with a home of its own."""
    home = Path(
        subprocess.run(["mktemp", "-d", "-p", "/var/tmp"], capture_output=True, text=True, check=True).stdout.strip()
    )
    try:
        shutil.copy(archive, home / "c.tar.gz")
        for path in (home, home / "c.tar.gz"):
            os.chown(path, 10001, 10001)
        code = (
            "import sys; from pathlib import Path; "
            "from rsr_tasks.restore import restore; from rsr_tasks import bookkeeping; "
            "from toy.bare import run_bare_loop; root = restore(Path('c.tar.gz'), Path('r'))[0].root; "
            "print(bookkeeping.stale(root)); run_bare_loop(root, 3); print(bookkeeping.stale(root))"
        )
        # May read what root reads, because Python and this checkout may lie in root's home; writes as anybody does.
        reads = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
        user = ["setpriv", "--reuid=10001", "--regid=10001", "--clear-groups", *reads]
        done = subprocess.run(
            [*user, sys.executable, "-c", code],
            cwd=home,
            env={**os.environ, "HOME": str(home), "LOGNAME": "somebody", "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if "setpriv:" in done.stderr:
            pytest.skip("this machine lets nobody become another user")
        assert done.stdout.split("\n")[-3:] == ["set()", "set()", ""], done.stdout + done.stderr
    finally:
        shutil.rmtree(home)


class TestRefusals:
    def test_of_backup(self, campaign, archive, tmp_path):
        with pytest.raises(WorkspaceError, match="got a file that is there already"):
            backup(campaign, archive, table_name=TABLE_NAME)
        with pytest.raises(WorkspaceError, match="got a file inside the campaign"):
            backup(campaign, campaign / "b.tar.gz", table_name=TABLE_NAME)
        with pytest.raises(WorkspaceError, match="got no such folder; expected a workspace"):
            backup(tmp_path / "none", tmp_path / "b.tar.gz")

    def test_a_loop_at_work(self, campaign, tmp_path):
        code = (
            f"from rsr_tasks.backup import backup; from pathlib import Path; backup(Path({str(campaign)!r}), Path('b'))"
        )
        with held(campaign):
            done = subprocess.run(
                [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
            )
        assert "got a workspace in which a loop is running" in done.stderr
        assert list(tmp_path.iterdir()) == []

    def test_a_link_in_the_campaign(self, tmp_path):
        run_bare_loop(tmp_path / "w", 0)
        (tmp_path / "w/inbox").symlink_to(tmp_path)
        with pytest.raises(WorkspaceError, match="got a link, to"):
            backup(tmp_path / "w", tmp_path / "b.tar.gz", table_name=TABLE_NAME)
        assert [path.name for path in tmp_path.iterdir()] == ["w"]

    def test_a_target_with_something_in_it(self, archive, tmp_path):
        (tmp_path / "thesis.tex").write_text("mine")
        assert rsr(["restore", str(archive), str(tmp_path)]) == 2
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]

    @pytest.mark.parametrize("content", [b"", b"no archive", gzip.compress(b"no tar", mtime=0)])
    def test_what_is_no_archive(self, content, tmp_path):
        (tmp_path / "b.tar.gz").write_bytes(content)
        with pytest.raises(WorkspaceError, match="Nothing was restored"):
            restore(tmp_path / "b.tar.gz", tmp_path / "r")
        assert [path.name for path in tmp_path.iterdir()] == ["b.tar.gz"]

    def test_no_such_archive(self, tmp_path):
        with pytest.raises(WorkspaceError, match="No such file"):
            restore(tmp_path / "none.tar.gz", tmp_path / "r")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.9, 0.999])
    def test_cut_or_with_one_byte_changed(self, archive, tmp_path, share):
        whole = archive.read_bytes()
        place = int(share * len(whole))
        flipped = whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]
        for content in (whole[:place], flipped):
            (tmp_path / "b.tar.gz").write_bytes(content)
            with pytest.raises(WorkspaceError, match="Nothing was restored"):
                restore(tmp_path / "b.tar.gz", tmp_path / "r")
            assert [path.name for path in tmp_path.iterdir()] == ["b.tar.gz"]


def members_of(archive: Path) -> list[tuple[str, bytes]]:
    with tarfile.open(archive) as members:
        return [(member.name, members.extractfile(member).read()) for member in members]


def packed(file: Path, contents: list[tuple[str, bytes]]) -> Path:
    with tarfile.open(file, "w:gz") as members:
        for name, content in contents:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            members.addfile(member, io.BytesIO(content))
    return file


def altered(archive: Path, change: Callable[[dict], None], more: bytes | None = None) -> list[tuple[str, bytes]]:
    """The archive's members with a changed manifest; `more` is one content more."""
    (name, manifest), *others = members_of(archive)
    document = json.loads(manifest)
    change(document)
    extra = [] if more is None else [(f"files/{hashlib.sha256(more).hexdigest()}", more)]
    return [(name, json.dumps(document).encode()), *others, *extra]


def planted(path: str, content: bytes) -> Callable[[dict], None]:
    def change(document: dict) -> None:
        digest = hashlib.sha256(content).hexdigest()
        document["files"].append(
            {"path": path, "sha256": digest, "size": len(content), "mode": 0o755, "mtime_ns": 0, "inode": 99999}
        )

    return change


class TestHostile:
    @pytest.mark.parametrize(
        "path",
        [
            "../outside",
            "/tmp/rsr-outside",
            "data/../../outside",
            ".git/hooks/post-checkout",
            ".GIT/config",
            "sub/.git/config",
            ".dvc/config.local",
            ".dvc/tmp/x",
            "data.dvc/below-a-file",
            "data.dvc",
        ],
    )
    def test_a_path_that_no_campaign_has(self, archive, tmp_path, path):
        content = b"#!/bin/sh\ntouch hacked\n"
        file = packed(tmp_path / "b.tar.gz", altered(archive, planted(path, content), content))
        with pytest.raises(WorkspaceError, match="Nothing was restored"):
            restore(file, tmp_path / "r")
        assert [each.name for each in tmp_path.iterdir()] == ["b.tar.gz"]
        assert not Path("/tmp/rsr-outside").exists()

    def test_links_and_names_of_the_tar_file_itself_mean_nothing(self, archive, tmp_path):
        contents = members_of(archive)
        with tarfile.open(tmp_path / "b.tar.gz", "w:gz") as members:
            for name, content in contents[:2]:
                member = tarfile.TarInfo(name)
                member.size = len(content)
                members.addfile(member, io.BytesIO(content))
            link = tarfile.TarInfo(contents[2][0])
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            members.addfile(link)
        with pytest.raises(WorkspaceError, match="Nothing was restored"):
            restore(tmp_path / "b.tar.gz", tmp_path / "r")

    def test_a_set_user_id_a_strange_version_and_a_key_too_many(self, archive, tmp_path):
        def mode(document: dict) -> None:
            document["files"][0]["mode"] = 0o4755

        def version(document: dict) -> None:
            document["version"] = 2

        def key(document: dict) -> None:
            document["hook"] = "x"

        for number, change in enumerate((mode, version, key)):
            file = packed(tmp_path / f"{number}.tar.gz", altered(archive, change))
            with pytest.raises(WorkspaceError, match="Nothing was restored"):
                restore(file, tmp_path / "r")

    def test_a_result_that_is_not_what_dvc_recorded(self, archive, tmp_path):
        """Its own hash is right, DVC's is not."""
        content = b"other weights"

        def change(document: dict) -> None:
            (entry,) = (each for each in document["files"] if each["path"] == "iterations/002/policy/policy.npz")
            document["files"].remove(entry)
            planted(entry["path"], content)(document)

        file = packed(tmp_path / "b.tar.gz", altered(archive, change, content))
        with pytest.raises(WorkspaceError, match=r"what does not agree with DVC's hashes|in place of"):
            restore(file, tmp_path / "r")

    def test_a_campaign_larger_than_the_disk_is_refused_before_it_is_written(self, archive, tmp_path):
        def change(document: dict) -> None:
            document["files"][0]["size"] = 1 << 60

        file = packed(tmp_path / "b.tar.gz", altered(archive, change))
        with pytest.raises(WorkspaceError, match="MB of free space; expected"):
            restore(file, tmp_path / "r")

    def test_a_header_that_would_fill_the_memory(self, tmp_path):
        member = tarfile.TarInfo("manifest.json")
        member.type, member.size = tarfile.XHDTYPE, 1 << 40
        with gzip.open(tmp_path / "b.tar.gz", "wb") as stream:
            stream.write(member.tobuf())
        with pytest.raises(WorkspaceError, match="Nothing was restored"):
            restore(tmp_path / "b.tar.gz", tmp_path / "r")


_FULL = """
import sys
from pathlib import Path
from rsr.common.errors import RsrError
from rsr_tasks.backup import backup
from rsr_tasks.restore import restore
root, archive, small = map(Path, sys.argv[1:])
for attempt in (lambda: backup(root, small / "b", table_name="toy:TABLE"), lambda: restore(archive, small / "r")):
    try:
        attempt()
    except RsrError as error:
        print(type(error).__name__, error.got, sorted(path.name for path in small.iterdir()))
"""


def test_a_full_disk_leaves_nothing_half_done(campaign, archive, tmp_path):
    script = f'mount -t tmpfs -o size=12k tmpfs {tmp_path} && exec {sys.executable} -c "$@"'
    options = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]
    command = [*options, _FULL, str(campaign), str(archive), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=_PROJECT)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip("this machine allows no mount namespaces")
    first, second = done.stdout.splitlines()
    full = ("No space left on device", "Out of diskspace")  # the system's words, and git's when its own write fails
    assert first.startswith("WorkspaceError "), done.stdout + done.stderr
    assert first.endswith(" []"), done.stdout + done.stderr
    assert any(words in first for words in full), done.stdout + done.stderr
    assert second == "WorkspaceError 0 MB of free space []"


def test_it_may_be_held_by_whoever_backs_it_up(campaign, tmp_path):
    with opened(campaign, TABLE_NAME):
        assert backup(campaign, tmp_path / "b.tar.gz", table_name=TABLE_NAME).files
