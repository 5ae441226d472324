"""From a stored policy to a recorded session on the command line, without torch; and a kill on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from rsr.calibration import save_calibration, start_calibration
from rsr.cli.app import FAILED, main
from rsr.policies import Normaliser, Policy
from rsr.scenarios import load_scenario, task_of
from rsr.sessions import check_session, read_session

ROOT = Path(__file__).parents[2]
STAND_IN_FILE = ROOT / "examples" / "robots" / "stand_in.yaml"
EPISODES = ("--episodes", "8")
WITHOUT_TRAINING = """
import sys
from rsr.cli.app import main
code = main(sys.argv[1:])
heavy = {"torch", "stable_baselines3", "onnx", "jax", "prefect", "dvc"} & set(sys.modules)
assert not heavy, heavy
assert "onnxruntime" in sys.modules
sys.exit(code)
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("lab")
    task = task_of(load_scenario("push_cube"))
    weight = np.zeros((2, task.observation_size), np.float32)
    weight[[0, 1], task.columns("fingertip on the way")] = -10.0
    normaliser = Normaliser(np.zeros(task.observation_size), np.ones(task.observation_size), 100.0)
    Policy(task, normaliser, ((weight, np.zeros(2, np.float32)),)).save(folder / "policy")
    save_calibration(start_calibration(load_scenario("push_cube")), folder / "calibration")
    out = folder / "exported"
    given = ["--policy", str(folder / "policy"), "--calibration", str(folder / "calibration"), "--out", str(out)]
    assert main(["export", *given, "--session", str(folder / "policy")]) == 0
    return out


def deploy(exported: Path, data: Path, *more: str) -> list[str]:
    given = ["--policy", str(exported), "--robot", str(STAND_IN_FILE), "--out", str(data), "--session", "session-001"]
    return ["deploy", *given, "--fast", *more]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", WITHOUT_TRAINING, *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    return subprocess.run(command, env=environment, check=False, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--session", "../elsewhere"), "got the name '../elsewhere'; expected letters, digits"),
        (("--session", "a session"), "got the name 'a session'"),
        (("--episodes", "0"), "got 0 episodes; expected at least one"),
    ],
)
def test_what_cannot_be_a_session_is_refused_before_anything_moves(exported, tmp_path, capsys, more, says):
    assert main(deploy(exported, tmp_path, *more)) == FAILED
    assert says in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.rglob("*")) == []


def test_the_runner_needs_onnxruntime_alone(exported, tmp_path):
    done = run(*deploy(exported, tmp_path, "--episodes", "2", "--seed", "4"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"{tmp_path}/push_cube/session-001"
    session = read_session(tmp_path / "push_cube" / "session-001")
    check_session(session, load_scenario("push_cube").channels)
    assert (session.card.reality, len(session.episodes)) == ("robot", 2)
    assert session.card.policy_sha256 is not None


def kill_while_recording(exported: Path, data: Path, finished: int) -> Path:
    """Start a recording of many episodes and kill it once some are finished; returns its journal."""
    command = [sys.executable, "-m", "rsr", *deploy(exported, data, *EPISODES)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    child = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    journal = data / "push_cube" / ".session-001.recording"
    try:
        deadline = time.monotonic() + 120
        while len(list(journal.glob("episode-*.npz"))) < finished:
            assert child.poll() is None, "it records"
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    return journal


def test_a_killed_recording_keeps_every_finished_episode(exported, tmp_path, capsys):
    journal = kill_while_recording(exported, tmp_path, finished=2)
    kept = len(list(journal.glob("episode-*.npz")))
    assert kept >= 2
    assert main(["recover", str(journal)]) == 0
    assert capsys.readouterr().out == f"{tmp_path}/push_cube/session-001: {kept} episodes\n"
    session = read_session(tmp_path / "push_cube" / "session-001")
    check_session(session, load_scenario("push_cube").channels)
    assert len(session.episodes) == kept


def test_the_same_command_goes_on_after_a_kill(exported, tmp_path):
    journal = kill_while_recording(exported, tmp_path, finished=1)
    before = {file.name: file.read_bytes() for file in journal.glob("episode-*.npz")}
    assert 1 <= len(before) < 8
    assert main(deploy(exported, tmp_path, *EPISODES)) == 0
    session = read_session(tmp_path / "push_cube" / "session-001")
    check_session(session, load_scenario("push_cube").channels)
    assert len(session.episodes) == 8
    assert not journal.exists()


def test_a_policy_that_was_changed_is_not_run(exported, tmp_path, capsys):
    changed = tmp_path / "changed"
    changed.mkdir()
    for file in exported.iterdir():
        (changed / file.name).write_bytes(file.read_bytes())
    with (changed / "policy.onnx").open("ab") as stream:
        stream.write(b"\0")
    assert main(deploy(changed, tmp_path, "--episodes", "1")) == FAILED
    assert "One of the two files was changed or replaced" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "push_cube").exists()


def test_a_calibration_of_another_scenario_is_refused(exported, tmp_path, capsys):
    save_calibration(start_calibration(load_scenario("push_t")), tmp_path / "calibration")
    policy = exported.parent / "policy"
    given = ["--policy", str(policy), "--calibration", str(tmp_path / "calibration"), "--out", str(tmp_path / "out")]
    assert main(["export", *given]) == FAILED
    assert "got a calibration of scenario push_t; expected one of push_cube" in " ".join(
        capsys.readouterr().err.split()
    )
    assert not (tmp_path / "out").exists()


def test_recover_of_nothing(tmp_path, capsys):
    assert main(["recover", str(tmp_path / ".x.recording")]) == FAILED
    assert "expected a journal as it was written" in " ".join(capsys.readouterr().err.split())
