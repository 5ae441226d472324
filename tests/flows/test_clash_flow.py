"""CLASH as a tuning task: a real flow on a real server, real DVC, real strikes of a stand-in, with a tiny budget."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rsr.calibration import load_calibration
from rsr.cli import main as rsr
from rsr.common.errors import ConfigError, WorkspaceError
from rsr.learned.clash import load_adapted
from rsr_tasks import bookkeeping, versions
from rsr_tasks.campaign import CLASH_TABLE, finished, opened, settings_of
from rsr_tasks.loop import run_bare_loop

TINY = {
    "scenario": "strike_square",
    "reality": {"episodes": 12},
    "tune": {"fit_episodes": 6},
    "clash": {"pairs": 600, "train_steps": 120, "targets": 1},
}


@pytest.fixture(scope="module")
def done(tmp_path_factory, prefect_server) -> Path:
    """A campaign of two iterations, run as a flow."""
    from rsr_flows.clash import clash

    root = tmp_path_factory.mktemp("clash") / "workspace"
    rows = clash(str(root), 2, TINY)
    assert [row["iteration"] for row in rows] == [1, 2]
    return root


def results(root: Path) -> dict[str, str]:
    """Hashes of all that its first iteration must give; reports and receipts quote durations."""
    files = (path for k in ("000", "001") for path in (root / "iterations" / k).rglob("*") if path.is_file())
    kept = (path for path in files if path.name != "report.html" and path.parent.name != "receipts")
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in kept}


def dvc(root: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "dvc", *arguments]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def loop(*options: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", "from rsr_flows.console import loop; raise SystemExit(loop())", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
class TestFlow:
    def test_ends_with_everything_versioned_and_clean(self, done):
        assert bookkeeping.stale(done) == set()
        assert versions.git(done, "status", "--porcelain") == ""
        assert {"iter/001", "collisions@v2.0.0"} <= set(versions.git(done, "tag").split())
        with opened(done, CLASH_TABLE) as campaign:
            assert finished(campaign, 2)

    def test_each_iteration_knows_more_strikes_and_is_judged_by_others(self, done):
        figures = [json.loads((done / f"iterations/00{k}/evaluation/metrics.json").read_text()) for k in (1, 2)]
        assert [row["strikes_known"] for row in figures] == [6, 12]
        for k, row in enumerate(figures, 1):
            calibration = load_calibration(done / f"iterations/00{k}/calibration")
            assert calibration.method == "clash"
            assert not set(calibration.evidence.fitted) & set(calibration.evidence.held_out)
            assert row["judged"].endswith("judged on the other 6")
            assert row["gap_after"] == calibration.evidence.gap_after
        model = load_adapted(done / "iterations/002/calibration")
        assert model.shape.name == "square"
        assert model.sliding is not None

    def test_shows_its_figures_in_prefect_and_on_a_page(self, done):
        from prefect.artifacts import Artifact

        shown = json.loads(Artifact.get("clash").data)
        assert [row["iteration"] for row in shown] == [1, 2]
        assert "within 10 %" in Artifact.get("clash-002").data
        page = (done / "iterations/002/report.html").read_text()
        assert "Adapted to 12 strikes" in page
        assert "Nothing on this page comes from a physical robot" in page

    def test_dvc_runs_the_same_stages_to_the_same_bytes(self, done):
        before = (done / "dvc.lock").read_text()
        assert "Data and pipelines are up to date" in dvc(done, "repro")
        assert "bin/rsr step adapt --iteration 1" in dvc(done, "repro", "-s", "-f", "adapt@1")
        assert (done / "dvc.lock").read_text() == before
        versions.git(done, "checkout", "--", "iterations")  # the receipt of another duration, which a loop would commit

    def test_the_loops_command_finds_it_up_to_date(self, done):
        said = loop("--workspace", str(done), "--iterations", "2")
        assert said.returncode == 0, said.stderr
        assert "is up to date through iteration 2" in said.stdout

    def test_the_loops_command_takes_it_for_no_other_kind(self, done):
        said = loop("--workspace", str(done), "--pipeline", "gnn")
        assert said.returncode == 1
        assert "got --pipeline gnn; expected clash" in " ".join(said.stderr.split())

    def test_other_stages_are_refused_in_its_workspace(self, done):
        with pytest.raises(WorkspaceError, match="got a campaign whose stages are strikes, surrogate, adapt"):
            run_bare_loop(done, 1)


def run(root: Path, *killed_at: str) -> int:
    """Run the campaign in a process of its own, killed as a file gets its name; returns the exit code."""
    command = [sys.executable, "-m", "tuning_kills", str(root), "clash", json.dumps(TINY), "1", *killed_at]
    return subprocess.run(command, capture_output=True, check=False).returncode


@pytest.mark.slow
def test_killed_it_goes_on_to_what_nobody_disturbed(tmp_path, done):
    """Killed while the adapted model is written."""
    assert run(tmp_path / "w", "001/calibration/adapted.json") == -signal.SIGKILL
    assert (tmp_path / "w/iterations/001/calibration/calibration.json").exists(), "half of the stage was written"
    assert run(tmp_path / "w") == 0
    assert results(tmp_path / "w") == results(done)
    assert bookkeeping.stale(tmp_path / "w") == set()


@pytest.mark.slow
def test_an_inbox_is_waited_for_and_asked_for_strikes(tmp_path, prefect_server):
    from rsr_flows.clash import clash

    settings = {**TINY, "reality": {"kind": "inbox", "episodes": 5}, "clash": {"pairs": 100, "train_steps": 1}}
    assert clash(str(tmp_path / "w"), 1, settings) == []
    request = json.loads((tmp_path / "w/inbox/session-001.request.json").read_text())
    assert len(request["speed_m_s"]) == len(request["point_m"]) == 5
    assert "session of 5 episodes" in (tmp_path / "w/.rsr/waiting").read_text()


@pytest.mark.slow
def test_the_loops_command_runs_what_the_settings_say(tmp_path):
    """A lab's own params.yaml with a section `clash`, then `rsr init` and `rsr-loop` without a word of CLASH."""
    root = tmp_path / "w"
    root.mkdir()
    settings = {**TINY, "reality": {"kind": "inbox", "episodes": 5}, "clash": {"pairs": 100, "train_steps": 1}}
    settings["tune"] = {"method": "clash", "fit_episodes": 3}
    (root / "params.yaml").write_text(json.dumps(settings))
    assert rsr(["init", str(root)]) == 0
    said = loop("--workspace", str(root), "--iterations", "1")
    assert said.returncode == 0, said.stderr
    assert "CLASH in" in said.stdout
    assert "session of 5 episodes" in said.stdout
    assert (root / "inbox/session-001.request.json").exists()


def test_settings_that_make_no_sense_are_refused_before_anything_runs(tmp_path):
    with pytest.raises(ConfigError, match="settings of the flow clash: clash: got unknown key 'pears'"):
        settings_of("clash", {"clash": {"pears": 3}})
