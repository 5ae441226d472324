"""The loop as a flow: a real Prefect server, real DVC, real git, toy steps."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from own_arm import write_own_arm
from toy import TABLE_NAME
from toy.bare import find_faults, fingerprint, run_bare_loop

from rsr.common.errors import WorkspaceError
from rsr.config import LoopConfig, StopConfig
from rsr_tasks.campaign import finished, opened
from rsr_tasks.locking import held
from rsr_tasks.watcher import LOOP_VARIABLE

_STEPS = ("collect", "tune", "infogap", "retrain", "evaluate", "report")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Check the results of a loop of two iterations."""
    root = tmp_path_factory.mktemp("reference") / "workspace"
    run_bare_loop(root, 2)
    return fingerprint(root)


def command(root: Path, *options: str, **environment: str) -> subprocess.CompletedProcess:
    """Run the loop's command line in a process of its own."""
    arguments = [sys.executable, "-m", "loop_of", TABLE_NAME, "--workspace", str(root), *options]
    return subprocess.run(arguments, env={**os.environ, **environment}, capture_output=True, text=True, check=False)


def offspring(root: Path) -> list[int]:
    """Processes that a loop in this workspace started."""
    found = []
    for process in psutil.process_iter():
        try:
            found += [process.pid] if process.environ().get(LOOP_VARIABLE, "").endswith(f":{root}") else []
        except psutil.Error:
            continue
    return found


class TestFlow:
    def test_gives_what_the_bare_steps_give_and_then_finds_nothing_to_do(self, tmp_path, prefect_server, undisturbed):
        from rsr_flows.rsr_loop import rsr_loop

        root = tmp_path / "workspace"
        rows = rsr_loop(str(root), 2, TABLE_NAME, "push_cube")
        assert [row["iteration"] for row in rows] == [1, 2]
        assert fingerprint(root) == undisturbed
        assert find_faults(root, 2) == []

        states = rsr_loop(str(root), 2, TABLE_NAME, return_state=True)
        assert states.is_completed()
        assert fingerprint(root) == undisturbed

    def test_stops_when_the_gap_is_at_its_floor(self, tmp_path, prefect_server):
        from rsr_flows.rsr_loop import rsr_loop

        with opened(tmp_path, TABLE_NAME, LoopConfig(stop=StopConfig(gap_m=0.2))) as campaign:
            rows = rsr_loop(str(tmp_path), 3, TABLE_NAME)
            assert len(rows) == 1
            assert rows[0]["gap_after"] <= 0.2 < rows[0]["gap_before"]
            assert finished(campaign, 3)

    def test_shows_its_figures_in_prefect(self, tmp_path, prefect_server):
        from prefect.artifacts import Artifact

        from rsr_flows.rsr_loop import rsr_loop

        rsr_loop(str(tmp_path / "workspace"), 1, TABLE_NAME, "push_cube")
        figures = json.loads(Artifact.get("rsr-loop").data)
        assert figures[0]["kl_x"] == pytest.approx(0.0325, rel=0.01)
        page = Artifact.get("rsr-loop-001").data
        assert page.startswith("# Iteration 1\n")
        assert "friction" in page
        assert f"`{tmp_path}/workspace/iterations/001/report.html`" in page

    def test_a_failing_step_ends_it_and_the_next_run_goes_on(self, tmp_path, prefect_server, monkeypatch):
        from rsr_flows.rsr_loop import rsr_loop

        audit = tmp_path / "audit"
        monkeypatch.setenv("TOY_AUDIT", str(audit))
        for step in _STEPS:
            monkeypatch.setenv("TOY_FAULT", f"{step}@1:half:raise")
            with pytest.raises(RuntimeError, match=f"toy fault in {step} 1"):
                rsr_loop(str(tmp_path / "workspace"), 1, TABLE_NAME, "push_cube")
        monkeypatch.delenv("TOY_FAULT")
        rsr_loop(str(tmp_path / "workspace"), 1, TABLE_NAME)
        assert find_faults(tmp_path / "workspace", 1) == []
        assert audit.read_text().split() == ["start@0", *(f"{step}@1" for step in _STEPS for _ in range(2))]

    def test_a_second_flow_on_the_workspace_is_refused(self, tmp_path, prefect_server):
        from rsr_flows.rsr_loop import rsr_loop

        with opened(tmp_path, TABLE_NAME, LoopConfig()):
            refused = command(tmp_path, "--iterations", "1")
            assert refused.returncode == 1
            assert f"got a workspace in which a loop is running (process {os.getpid()} on" in refused.stderr
            assert "Traceback" not in refused.stderr
            rsr_loop(str(tmp_path), 1, TABLE_NAME)
        assert find_faults(tmp_path, 1) == []


@pytest.mark.slow
def test_killed_in_every_step_in_turn_it_ends_as_if_undisturbed(tmp_path, prefect_server, undisturbed):
    root, audit = tmp_path / "workspace", tmp_path / "audit"
    faults = ["start@0:half", *(f"{step}@1:half" for step in _STEPS), "collect@2:after"]
    for fault in faults:
        variables = {"PREFECT_API_URL": prefect_server, "TOY_FAULT": f"{fault}:kill", "TOY_AUDIT": str(audit)}
        done = command(root, "--iterations", "2", **variables)
        assert done.returncode == 128 + signal.SIGKILL, fault + done.stderr
    done = command(root, "--iterations", "2", PREFECT_API_URL=prefect_server, TOY_AUDIT=str(audit))
    assert done.returncode == 0, done.stderr
    assert find_faults(root, 2) == []
    assert fingerprint(root) == undisturbed
    ran = audit.read_text().split()
    assert ran.count("collect@2") == 1, "a finished recording is not made twice"
    assert ran.count("tune@1") == 2


@pytest.mark.slow
def test_two_loops_at_once_do_not_damage_anything(tmp_path, prefect_server, undisturbed):
    arguments = [
        sys.executable,
        "-m",
        "loop_of",
        TABLE_NAME,
        "--workspace",
        str(tmp_path / "workspace"),
        "--iterations",
        "2",
    ]
    environment = {**os.environ, "PREFECT_API_URL": prefect_server}
    loops = [subprocess.Popen(arguments, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    ends = sorted((loop.communicate()[1], loop.returncode)[::-1] for loop in loops)
    assert ends[0][0] == 0, ends
    code, said = ends[1]
    assert code == 0 or (code == 1 and "got a workspace in which a loop is running (process" in said), ends
    assert find_faults(tmp_path / "workspace", 2) == []
    assert fingerprint(tmp_path / "workspace") == undisturbed


@pytest.mark.slow
def test_without_configuration_it_uses_an_embedded_server_and_leaves_nothing_running(tmp_path, undisturbed):
    root, home = tmp_path / "workspace", tmp_path / "home"
    home.mkdir()
    variables = {"HOME": str(home), "PREFECT_API_URL": ""}
    # Waits until nobody holds its output open any more, so for Prefect's server, too.
    killed = command(root, "--iterations", "2", TOY_FAULT="tune@2:half:kill", **variables)
    assert killed.returncode == 128 + signal.SIGKILL, killed.stderr
    assert offspring(root) == []

    done = command(root, "--iterations", "2", **variables)
    assert done.returncode == 0, done.stderr
    assert "Finished in" in done.stdout
    assert "Traceback" not in done.stderr
    assert "| INFO" not in done.stderr
    assert offspring(root) == []
    assert fingerprint(root) == undisturbed
    assert (root / ".prefect").is_dir()
    assert not (home / ".prefect").exists()


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """One iteration, done."""
    root = tmp_path_factory.mktemp("done") / "workspace"
    run_bare_loop(root, 1)
    return root


class TestCommandLine:
    def test_says_when_there_is_nothing_to_do_without_loading_anything_heavy(self, root):
        code = (
            "import sys; from rsr_flows._command import main; "
            f"code = main(['--workspace', {str(root)!r}, '--iterations', '1'], {TABLE_NAME!r}); "
            "print(code, sorted({'prefect', 'torch', 'mujoco', 'pyarrow'} & sys.modules.keys()))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.startswith(f"Nothing to do: {root} is up to date through iteration 1.\n")
        assert f"Reports: {root}/iterations/*/report.html" in done.stdout
        assert done.stdout.endswith("0 []\n")

    def test_another_seed_than_the_campaigns(self, root):
        done = command(root, "--seed", "4")
        assert done.returncode == 1
        assert done.stderr == (
            f"ConfigError {root}: got --seed 4; expected 0, as in this workspace's params.yaml. "
            "Leave the option out (what a campaign began with is edited in its folder, the scenario in scenario/), or "
            "name a new workspace.\n"
        )

    def test_a_task_that_does_not_fit_its_robot_is_refused_before_anything_is_made(self, tmp_path, capsys):
        from rsr_flows import _command

        own = write_own_arm(tmp_path / "arm").parent
        task = (own / "task.py").read_text()
        (own / "task.py").write_text(
            task.replace("(0.1,) * 3, (-2.0,) * 3, (2.0,) * 3", "(0.1,) * 2, (-2.0,) * 2, (2.0,) * 2")
        )
        begun = ["--workspace", str(tmp_path / "campaign"), "--scenario", str(own)]
        assert _command.main(begun) == 1
        assert "got 2 numbers; expected 3, one a command" in capsys.readouterr().err
        assert not (tmp_path / "campaign" / "scenario").exists()

    def test_seeds_of_a_new_workspace(self, tmp_path, monkeypatch):
        from rsr_flows import _command

        monkeypatch.setattr(_command, "_bring_up_to_date", lambda *_: None)
        begun = ["--workspace", str(tmp_path), "--scenario", "push_cube", "--seed", "3", "--stand-in-seed", "5"]
        assert _command.main(begun, TABLE_NAME) == 0
        with opened(tmp_path, TABLE_NAME) as campaign:
            settings = campaign.workspace.settings()
        assert (settings.seed, settings.reality.seed) == (3, 5)

    def test_a_negative_seed(self, tmp_path):
        done = command(tmp_path / "workspace", "--seed", "-1")
        assert done.stderr == (
            "ConfigError command line: seed: got -1; expected greater than or equal to 0. Correct this value.\n"
        )
        assert not (tmp_path / "workspace").exists()

    def test_no_iterations(self, tmp_path):
        done = command(tmp_path / "workspace", "--iterations", "0")
        assert done.returncode == 2
        assert "got 0; expected a whole number from 1" in done.stderr

    def test_a_folder_that_is_no_workspace(self, tmp_path):
        (tmp_path / "thesis.tex").write_text("mine")
        done = command(tmp_path)
        assert done.returncode == 1
        assert done.stderr == (
            f"WorkspaceError {tmp_path}: got a folder without a campaign; "
            "expected a campaign: a workspace with its own git and DVC repository. "
            "Begin one: `rsr init NEW_FOLDER` asks for its settings.\n"
        )
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]

    @pytest.mark.parametrize("there", [[], ["params.yaml"]])
    def test_a_folder_without_a_campaign_is_not_filled_with_one_unasked(self, tmp_path, there):
        for name in there:
            (tmp_path / name).write_text("scenario: push_t\n")
        arguments = [sys.executable, "-m", "rsr_flows.rsr_loop", "--workspace", str(tmp_path)]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert done.stderr == (
            f"WorkspaceError {tmp_path}: got a folder without a campaign; "
            "expected a campaign: a workspace with its own git and DVC repository. "
            f"Begin one: `rsr init {tmp_path}` asks for its settings.\n"
        )
        assert [path.name for path in tmp_path.iterdir()] == there

    def test_the_module_is_the_command(self, tmp_path):
        arguments = [sys.executable, "-m", "rsr_flows.rsr_loop", "--help"]
        done = subprocess.run(arguments, capture_output=True, text=True, check=True, cwd=tmp_path)
        assert all(option in done.stdout for option in ("--workspace", "--iterations", "--seed", "--stand-in-seed"))


def test_a_flow_in_another_thread_is_refused(tmp_path, prefect_server):
    from rsr_flows.rsr_loop import rsr_loop

    with held(tmp_path), ThreadPoolExecutor(1) as pool:
        refused = pool.submit(rsr_loop, str(tmp_path), 1, TABLE_NAME, "push_cube")
        with pytest.raises(WorkspaceError, match="expected one loop at a time"):
            refused.result()
