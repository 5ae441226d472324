"""`rsr status`: what it lists, what it says comes next, and that it does not wait for libraries it does not need."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rsr.cli import main
from rsr.common.files import write_json
from rsr.workspace import Workspace

KEYS = {
    "iteration", "kl_x", "kl_y", "gap_before", "gap_after", "success_sim", "success_reality", "params", "verdicts",
}  # fmt: skip
HEAVY = ("mujoco", "torch", "jax", "matplotlib", "scipy", "stable_baselines3", "prefect", "dvc", "pyarrow")


@pytest.fixture
def copy(finished: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """The finished workspace, to be changed; the current folder."""
    root = Path(shutil.copytree(finished.root, tmp_path / "campaign"))
    monkeypatch.chdir(root)
    return Workspace(root)


def test_json_has_a_row_an_iteration_with_the_agreed_keys(finished, capsys):
    assert main(["status", "--workspace", str(finished.root), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["iteration"] for row in rows] == [1, 2]
    assert all(row.keys() >= KEYS for row in rows)
    assert rows == finished.rows()


def test_table_verdict_and_outlook(copy, capsys):
    copy.report_path(1).touch()
    copy.report_path(2).touch()
    assert main(["status"]) == 0
    out = capsys.readouterr().out
    assert "recorded on a simulated stand-in" in out
    assert "Iteration 2: The tuned simulator predicts held-out episodes to 9.0 mm" in out
    assert out.endswith("Nothing is missing. One iteration more: rsr-loop --iterations 3\n")


def test_what_is_missing_is_named_with_the_remedy(copy, capsys):
    shutil.rmtree(copy.policy_dir(2))
    copy.report_path(1).touch()
    main(["status"])
    out = capsys.readouterr().out
    assert "Iteration 2 lacks retrain, report.\n" in out
    assert "Next: rsr-loop --iterations 2; what was versioned, `dvc checkout` or `dvc pull` bring back." in out


def test_next_command_fits_the_current_folder(copy, capsys, monkeypatch):
    monkeypatch.chdir(copy.root.parent)
    main(["status", "--workspace", copy.root.name])
    assert f"Next: rsr-loop --workspace {copy.root.name} --iterations 2;" in capsys.readouterr().out


def test_damaged_metrics(copy, capsys):
    copy.metrics_path(1).write_text("{")
    assert main(["status"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"WorkspaceError {copy.root}: got JSONDecodeError: ")
    assert error.endswith("Restore them with `git checkout -- iterations`, or make them again: `dvc repro`.\n")


def test_found_from_a_folder_below(copy, capsys, monkeypatch):
    monkeypatch.chdir(copy.policy_dir(1))
    main(["status", "--json"])
    assert len(json.loads(capsys.readouterr().out)) == 2


def test_beside_an_empty_chain_the_demo_is_shown(copy, tmp_path, capsys, monkeypatch):
    write_json(tmp_path / "iterations.json", {"chain": {}})
    copy.root.rename(tmp_path / "demo")
    monkeypatch.chdir(tmp_path)
    assert main(["status", "--json"]) == 0
    captured = capsys.readouterr()
    assert [row["iteration"] for row in json.loads(captured.out)] == [1, 2]
    assert captured.err.startswith(f"No iteration yet in {tmp_path}; this is its demo/, a workspace of its own.\n")


def test_empty_chain_says_how_to_begin(tmp_path, capsys, monkeypatch):
    write_json(tmp_path / "iterations.json", {"chain": {}})
    monkeypatch.chdir(tmp_path)
    assert main(["status", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == []
    assert captured.err == f"No iteration yet in {tmp_path}. Begin: rsr-loop --iterations 3\n"


def test_no_workspace(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["status"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        f"WorkspaceError {tmp_path}: got no iterations.json here or in any folder above; expected a workspace. "
        "Change into a workspace, or begin a campaign: `rsr init FOLDER`.\n"
    )


def test_folder_that_was_named_must_be_the_workspace(copy, capsys):
    assert main(["status", "--workspace", "iterations"]) == 2
    assert main(["status", "--workspace", "nowhere"]) == 2
    assert capsys.readouterr().err == (
        "WorkspaceError iterations: got no iterations.json in it; expected a workspace. "
        "Correct the name, or begin a campaign: `rsr init iterations`.\n"
        "WorkspaceError nowhere: got no such folder; expected a workspace. "
        "Correct the name, or begin a campaign: `rsr init nowhere`.\n"
    )


def test_status_starts_without_heavy_libraries(finished):
    code = (
        "import sys; from rsr.cli import main; "
        f"main(['status', '--workspace', {str(finished.root)!r}]); "
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


def test_module_is_the_command(finished):
    command = [sys.executable, "-m", "rsr", "status", "--json", "--workspace", str(finished.root)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert len(json.loads(done.stdout)) == 2


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_read_enough_is_no_error(unbuffered: str):
    """As in `rsr --help | head -1`."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "rsr", "--help"]
    try:
        environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, env=environment, check=False)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")
