"""The wheel, installed where there is no checkout and used in a folder with nothing of ours in it."""

from __future__ import annotations

import signal
import subprocess
import zipfile
from pathlib import Path

import pytest
from checkout import copy_project
from fresh_venv import fresh_venv, install, site_packages, surroundings
from ports import free_port

from rsr.common.files import read_json
from rsr.sessions import write_session
from tests.calibration.pendulum_stand_in import swings

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    copy_project(source)
    python = fresh_venv(source / ".venv")
    command = [python, "-m", "pip", "--quiet", "wheel", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", folder, source], check=True, env=surroundings(python))
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def venv(wheel, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("venv")
    install(fresh_venv(folder), wheel)
    return folder


@pytest.fixture
def elsewhere(tmp_path) -> Path:
    """A user's folder, whose own modules are called as ours are in the repository."""
    for name in ("tasks", "flows", "deployments"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong module')\n")
    return tmp_path


def run(venv: Path, folder: Path, *command: str) -> str:
    program, *arguments = command
    done = subprocess.run(
        [venv / "bin" / program, *arguments],
        cwd=folder,
        env=surroundings(venv / "bin" / "python"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_three_packages_of_our_own_names_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {name for name in tops if not name.endswith(".dist-info")} == {"rsr", "rsr_tasks", "rsr_flows"}
    assert {"rsr/py.typed", "rsr_flows/deployments/prefect.yaml"} <= set(names)


@pytest.mark.parametrize("program", ["rsr", "rsr-loop", "rsr-serve"])
def test_every_command_tells_what_it_does(venv, elsewhere, program):
    assert "--" in run(venv, elsewhere, program, "--help")


def test_recordings_are_calibrated(venv, elsewhere):
    session = write_session(elsewhere / "data", swings(episodes=2)[0])
    recording = ["--scenario", "double_pendulum", "--sessions", str(session)]
    run(venv, elsewhere, "rsr", "calibrate", *recording, "--method", "cmaes", "--episodes", "1", "--out", "found")
    assert read_json(elsewhere / "found" / "calibration.json")["method"] == "cmaes"


def test_the_server_comes_up_and_keeps_what_it_knows_in_the_users_folder(venv, elsewhere):
    before = installed(venv)
    environment = {k: v for k, v in surroundings(venv / "bin" / "python").items() if k != "PREFECT_HOME"}
    command = [venv / "bin" / "rsr-serve", "--port", str(free_port())]
    said = []
    with subprocess.Popen(command, cwd=elsewhere, env=environment, stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stdout is not None
        for line in serving.stdout:
            said.append(line)
            if line.startswith("Ready:"):
                serving.send_signal(signal.SIGTERM)
    assert serving.returncode == 128 + signal.SIGTERM, "".join(said)
    assert any(line.startswith("Ready:") for line in said)
    assert (elsewhere / ".prefect" / "prefect.db").exists()
    assert installed(venv) == before


def installed(venv: Path) -> set[Path]:
    return {path for path in site_packages(venv).rglob("*") if "__pycache__" not in path.parts}
