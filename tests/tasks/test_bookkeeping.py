"""The loop's expectations of DVC, on a real git and DVC repository."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from toy import TABLE, TABLE_NAME
from toy.bare import find_faults, fingerprint, run_bare_loop

from rsr.common.errors import WorkspaceError
from rsr.config import LoopConfig
from rsr_tasks import bookkeeping, loop, versions
from rsr_tasks.campaign import finished, opened
from rsr_tasks.workspace import create_workspace

_DVC = [sys.executable, "-m", "dvc"]


def dvc(root: Path, *arguments: str) -> str:
    """Run DVC as a person would, from a shell without the environment that the loop runs in."""
    done = subprocess.run([*_DVC, *arguments], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def audit(tmp_path, monkeypatch):
    """The steps that ran, read from TOY_AUDIT."""
    path = tmp_path / "audit"
    path.touch()
    monkeypatch.setenv("TOY_AUDIT", str(path))
    return lambda: path.read_text().split()


@pytest.fixture
def campaign(tmp_path):
    """Iteration 1 planned in a new workspace, policy 0 made."""
    with opened(tmp_path / "workspace", TABLE_NAME, LoopConfig()) as campaign:
        loop.plan(campaign, 0)
        loop.bring_up_to_date(campaign, "start", 0)
        loop.plan(campaign, 1)
        yield campaign


class TestAfterTheLoop:
    def test_dvc_finds_everything_up_to_date(self, finished_loop):
        assert json.loads(dvc(finished_loop, "status", "--json")) == {}
        assert "Running stage" not in dvc(finished_loop, "repro")
        assert versions.git(finished_loop, "status", "--porcelain") == ""

    @pytest.mark.slow
    def test_dvc_repro_force_gives_the_same_bytes(self, finished_loop):
        before = fingerprint(finished_loop)
        output = dvc(finished_loop, "repro", "--force")
        assert "Running stage 'retrain@2'" in output
        assert fingerprint(finished_loop) == before

    @pytest.mark.parametrize("command", [["checkout"], ["repro", "retrain@2"], ["repro", "--single-item", "retrain@2"]])
    def test_a_deleted_policy_comes_back(self, finished_loop, command):
        before = fingerprint(finished_loop)
        for path in (finished_loop / "iterations/002/policy").iterdir():
            path.unlink()
        (finished_loop / "iterations/002/policy").rmdir()
        assert fingerprint(finished_loop) != before
        dvc(finished_loop, *command)
        assert fingerprint(finished_loop) == before

    def test_the_loop_restores_it_too_without_computing(self, finished_loop, audit):
        before = fingerprint(finished_loop)
        policy = finished_loop / "iterations/001/policy/policy.npz"
        policy.unlink()
        run_bare_loop(finished_loop, 2)
        assert fingerprint(finished_loop) == before
        assert audit() == []

    def test_metrics_are_shown_and_compared(self, finished_loop):
        shown = json.loads(dvc(finished_loop, "metrics", "diff", "iter/001", "iter/002", "--json"))
        assert "iterations/002/evaluation/metrics.json" in shown

    def test_each_iteration_is_a_tagged_commit_of_machine_written_files(self, finished_loop):
        assert versions.git(finished_loop, "tag", "--list", "iter/*").split() == ["iter/001", "iter/002"]
        changed = versions.git(finished_loop, "show", "--stat=200", "--format=", "--name-only", "iter/002^{}").split()
        assert [name for name in changed if not name.startswith("iterations/002/")] == [
            "curves.json",
            "data.dvc",
            "dvc.lock",
            "dvc.yaml",
            "iterations.json",
        ]
        assert {"iterations/002/params.yaml", "iterations/002/evaluation/metrics.json"} <= set(changed)
        assert sorted(Path(name).stem for name in changed if "receipts" in name) == sorted(
            ["collect", "tune", "infogap", "retrain", "evaluate", "report"]
        )

    def test_a_changed_setting_changes_the_future_only(self, finished_loop, audit):
        settings = finished_loop / "params.yaml"
        original = settings.read_text()
        settings.write_text(original.replace("episodes:", "episodes: 10 #"))
        assert bookkeeping.stale(finished_loop) == set()
        settings.write_text(original)


def test_a_changed_frozen_setting_makes_exactly_its_stages_stale(campaign):
    loop.collect(campaign, 1)
    loop.bring_up_to_date(campaign, "tune", 1)
    frozen = campaign.workspace.frozen_path(1)
    frozen.write_text(frozen.read_text().replace("method: mjx", "method: sysid"))
    assert bookkeeping.bring_up_to_date(campaign.root, "start", lambda: None) == "fresh"
    assert "tune@1" in bookkeeping.stale(campaign.root)


class TestOneStage:
    def test_runs_once(self, campaign, audit):
        loop.collect(campaign, 1)
        assert [loop.bring_up_to_date(campaign, "tune", 1) for _ in range(2)] == ["ran", "fresh"]
        assert audit() == ["collect@1", "tune@1"]

    def test_stale_outputs_are_removed_first(self, campaign):
        loop.collect(campaign, 1)
        stray = campaign.workspace.calibration_dir(1) / "of_an_earlier_version.json"
        stray.parent.mkdir(parents=True)
        stray.write_text("{}")
        loop.bring_up_to_date(campaign, "tune", 1)
        assert not stray.exists()

    def test_a_failure_leaves_it_stale_and_unlocked(self, campaign, monkeypatch):
        loop.collect(campaign, 1)
        monkeypatch.setenv("TOY_FAULT", "tune@1:half:raise")
        with pytest.raises(RuntimeError, match="toy fault in tune 1"):
            loop.bring_up_to_date(campaign, "tune", 1)
        assert "tune@1" in bookkeeping.stale(campaign.root)
        assert not any(json.loads((campaign.root / ".dvc/tmp/rwlock").read_text()).values())
        monkeypatch.delenv("TOY_FAULT")
        assert loop.bring_up_to_date(campaign, "tune", 1) == "ran"

    def test_while_it_runs_dvc_refuses_to_touch_it(self, campaign):
        loop.collect(campaign, 1)
        seen = []

        def run_and_look():
            command = [*_DVC, "repro", "--single-item", "tune@1"]
            seen.append(subprocess.run(command, cwd=campaign.root, capture_output=True, text=True, check=False))
            campaign.workspace.calibration_dir(1).mkdir()
            (campaign.workspace.calibration_dir(1) / "calibration.json").write_text("{}")

        bookkeeping.bring_up_to_date(campaign.root, "tune@1", run_and_look)
        assert seen[0].returncode != 0
        assert f"(PID {os.getpid()})" in seen[0].stderr

    def test_dvc_repro_before_the_loop_leaves_nothing_for_it(self, campaign, audit):
        loop.collect(campaign, 1)
        dvc(campaign.root, "repro")
        assert audit()[1:] == [f"{name}@1" for name in ("tune", "infogap", "retrain", "evaluate", "report")]
        assert loop.bring_up_to_date(campaign, "report", 1) == "fresh"
        receipts = {path.stem for path in campaign.workspace.receipts_dir(1).glob("*.json")}
        assert receipts == {"collect", "tune", "infogap", "retrain", "evaluate", "report"}

    def test_works_from_any_current_folder(self, campaign, monkeypatch, tmp_path):
        monkeypatch.chdir(tmp_path)
        loop.collect(campaign, 1)
        assert loop.bring_up_to_date(campaign, "tune", 1) == "ran"
        assert Path.cwd() == tmp_path


class TestRecordings:
    def test_are_made_once(self, campaign, audit):
        assert [loop.collect(campaign, 1) for _ in range(2)] == ["ran", "fresh"]
        assert audit() == ["collect@1"]

    def test_one_that_was_stored_but_not_listed_is_listed_not_made_again(self, campaign, audit, monkeypatch):
        monkeypatch.setenv("TOY_FAULT", "collect@1:after:raise")
        with pytest.raises(RuntimeError, match="toy fault"):
            loop.collect(campaign, 1)
        assert not bookkeeping.is_recorded(campaign.root, campaign.workspace.session_dir(1))
        assert loop.collect(campaign, 1) == "ran"
        assert audit() == ["collect@1"]
        assert (campaign.workspace.receipts_dir(1) / "collect.json").exists()
        assert "data.dvc" not in bookkeeping.stale(campaign.root)

    def test_one_that_is_missing_is_brought_back(self, campaign, audit):
        loop.collect(campaign, 1)
        session = campaign.workspace.session_dir(1)
        content = (session / "episodes.npz").read_bytes()
        (session / "episodes.npz").unlink()
        assert loop.collect(campaign, 1) == "fresh"
        assert (session / "episodes.npz").read_bytes() == content
        assert audit() == ["collect@1"]

    def test_a_new_one_leaves_the_old_iterations_fresh(self, finished_loop):
        session = finished_loop / "data/push_cube/session-099"
        session.mkdir()
        (session / "card.json").write_text("{}")
        bookkeeping.record(finished_loop, session)
        assert bookkeeping.stale(finished_loop) == set()
        assert bookkeeping.is_recorded(finished_loop, session)

    def test_listed_but_on_no_machine_here(self, finished_loop, tmp_path):
        clone = tmp_path / "clone"
        versions.git(tmp_path, "clone", "--quiet", str(finished_loop), str(clone))
        with pytest.raises(WorkspaceError) as caught, opened(clone, TABLE_NAME):
            pass
        assert str(caught.value) == (
            f"{clone}: got data.dvc lists 4 files of recordings that are not on this machine; "
            "expected the recordings, in data/ or in DVC's cache. No DVC remote is set, so git alone was copied. Bring "
            "all of it: `rsr backup` where the recordings are, `rsr restore` here; or set a remote there (`dvc remote "
            "add --default NAME ADDRESS`, commit, `dvc push`), then `git pull` and `dvc pull` here."
        )
        (clone / ".dvc/config").write_text("[core]\n    remote = lab\n['remote \"lab\"']\n    url = ../remote\n")
        with pytest.raises(WorkspaceError, match="Fetch them: `dvc pull data`, then run"), opened(clone, TABLE_NAME):
            pass

    def test_those_that_were_there_before_the_first_loop_are_kept(self, tmp_path):
        create_workspace(tmp_path / "origin", LoopConfig(), TABLE)
        versions.git(tmp_path, "clone", "--quiet", "origin", "clone")
        mine = tmp_path / "clone/data/push_cube/last_year"
        mine.mkdir(parents=True)
        (mine / "card.json").write_text("{}")
        with opened(tmp_path / "clone", TABLE_NAME):
            assert bookkeeping.is_recorded(tmp_path / "clone", mine)


def cloned(origin: Path, clone: Path, remote: Path) -> Path:
    """Somebody else's copy: what git has, and what `dvc pull` brings."""
    clone.parent.mkdir(exist_ok=True)
    versions.git(clone.parent, "clone", "--quiet", str(origin), str(clone))
    dvc(clone, "remote", "add", "--local", "--default", "shelf", str(remote))
    dvc(clone, "pull", "--quiet")
    return clone


class TestClone:
    """Somebody else's checkout: git's files only, no data folder, an empty cache."""

    def test_of_a_campaign_that_has_not_begun(self, tmp_path):
        create_workspace(tmp_path / "origin", LoopConfig(), TABLE)
        versions.git(tmp_path, "clone", "--quiet", "origin", "clone")
        run_bare_loop(tmp_path / "clone", 1)
        assert bookkeeping.stale(tmp_path / "clone") == set()
        assert versions.git(tmp_path / "clone", "status", "--porcelain") == ""

    def test_with_a_remote_finds_everything_there(self, finished_loop, tmp_path, audit):
        remote = tmp_path / "remote"
        dvc(finished_loop, "remote", "add", "--local", "--default", "--force", "shelf", str(remote))
        assert bookkeeping.push(finished_loop)
        clone = cloned(finished_loop, tmp_path / "clone", remote)
        with opened(clone, TABLE_NAME) as campaign:
            assert finished(campaign, 2)
        run_bare_loop(clone, 2)
        assert audit() == []

    @pytest.mark.slow
    def test_elsewhere_it_goes_on_with_the_next_iteration(self, finished_loop, tmp_path, audit):
        """From git and a remote of DVC alone, in another place; and what it adds can be fetched from there in turn."""
        remote = tmp_path / "remote"
        dvc(finished_loop, "remote", "add", "--local", "--default", "--force", "shelf", str(remote))
        assert bookkeeping.push(finished_loop)
        clone = cloned(finished_loop, tmp_path / "elsewhere" / "clone", remote)
        shutil.rmtree(finished_loop)
        run_bare_loop(clone, 3)
        assert find_faults(clone, 3) == []
        assert {line.split("@")[-1].split()[0] for line in audit()} == {"3"}, "the first two are not done again"
        assert bookkeeping.push(clone)
        again = cloned(clone, tmp_path / "again", remote)
        with opened(again, TABLE_NAME) as campaign:
            assert finished(campaign, 3)
        assert bookkeeping.stale(again) == set()


def test_without_a_remote_nothing_is_pushed(campaign):
    assert bookkeeping.push(campaign.root) is False


def test_what_dvc_refuses_is_told_in_its_words(campaign):
    (campaign.root / "dvc.yaml").write_text("stages: 3")
    with pytest.raises(WorkspaceError, match=r"got DVC's refusal: .*dvc\.yaml.* validation failed.*`dvc status`"):
        bookkeeping.stale(campaign.root)


def test_a_conflict_between_branches_is_left_to_a_person(finished_loop):
    text = f"<<<<<<< HEAD\n{(finished_loop / 'data.dvc').read_text()}=======\n>>>>>>> other"
    (finished_loop / "data.dvc").write_text(text)
    with pytest.raises(WorkspaceError, match="got DVC's refusal"):
        run_bare_loop(finished_loop, 2)
    assert (finished_loop / "data.dvc").read_text() == text


def test_a_deleted_evaluation_is_work_to_do(finished_loop, audit):
    shutil.rmtree(finished_loop / "iterations/001/evaluation")
    with opened(finished_loop, TABLE_NAME) as campaign:
        assert not finished(campaign, 2)
    run_bare_loop(finished_loop, 2)
    assert find_faults(finished_loop, 2) == []
    assert audit() == []
