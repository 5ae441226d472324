"""A learned simulator as a tuning task: a real flow on a real server, real DVC, a stand-in's pushes, a tiny budget."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rsr.calibration import load_calibration
from rsr.common.errors import ConfigError
from rsr.learned.gnn.calibration import load_gnn
from rsr.scenarios import load_scenario
from rsr_tasks import bookkeeping, versions
from rsr_tasks.campaign import GNN_TABLE, finished, opened

TINY = {
    "reality": {"episodes": 6},
    "tune": {"fit_episodes": 3},
    "gnn": {"teacher_budget": 24, "trajectories": 12, "steps": 6, "finetune_steps": 2},
}


@pytest.fixture(scope="module")
def done(tmp_path_factory, prefect_server) -> Path:
    """A campaign of one iteration, run as a flow."""
    from rsr_flows.gnn import gnn

    root = tmp_path_factory.mktemp("gnn") / "workspace"
    (row,) = gnn(str(root), 1, TINY)
    assert row["judged"] == "fitted to 3 episodes, judged on the other 3"
    return root


def results(root: Path) -> dict[str, str]:
    """Hashes of all that a campaign with these settings must give; reports and receipts quote durations."""
    files = (path for path in (root / "iterations").rglob("*") if path.is_file())
    kept = (path for path in files if path.name != "report.html" and path.parent.name != "receipts")
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in kept}


@pytest.mark.slow
def test_it_ends_with_everything_versioned_and_clean(done):
    assert bookkeeping.stale(done) == set()
    assert versions.git(done, "status", "--porcelain") == ""
    assert "contact@v1.0.0" in versions.git(done, "tag").split()
    with opened(done, GNN_TABLE) as campaign:
        assert finished(campaign, 1)


@pytest.mark.slow
def test_the_calibration_is_the_networks(done):
    folder = done / "iterations/001/calibration"
    calibration, scenario = load_calibration(folder), load_scenario("two_cubes")
    metrics = json.loads((done / "iterations/001/evaluation/metrics.json").read_text())
    assert calibration.method == "gnn"
    assert metrics["gap_after"] == calibration.evidence.gap_after
    teacher = load_calibration(done / "iterations/001/identified")
    assert teacher.evidence.held_out == calibration.evidence.held_out
    assert metrics["gap_teacher"] == teacher.evidence.gap_after < metrics["gap_before"]
    with load_gnn(scenario, folder) as simulator:
        assert simulator.scenario is scenario
    assert "teacher" in (done / "iterations/001/report.html").read_text()


@pytest.mark.slow
def test_killed_in_training_it_goes_on_to_what_nobody_disturbed(tmp_path, done):
    """Killed when the trained network would be stored: the checkpoint of the training is there, the stage is not."""

    def run(*killed_at: str) -> int:
        command = [sys.executable, "-m", "tuning_kills", str(tmp_path / "w"), "gnn", json.dumps(TINY), "1", *killed_at]
        return subprocess.run(command, capture_output=True, check=False).returncode

    assert run("taught/network.npz") == -signal.SIGKILL
    assert any((tmp_path / "w/.rsr/train-001").iterdir())
    assert run() == 0
    assert results(tmp_path / "w") == results(done)
    assert bookkeeping.stale(tmp_path / "w") == set()


def test_a_scenario_without_a_stand_in_needs_an_inbox(tmp_path, prefect_server):
    from rsr_flows.gnn import gnn

    with pytest.raises(ConfigError, match="got reality 'stand_in' of scenario cube_toss"):
        gnn(str(tmp_path / "w"), 1, {"scenario": "cube_toss"})
