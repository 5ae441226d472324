"""The walk of docs/ingest.md, as a new user walks it: what is printed is followed, and nothing else is known."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import yaml

from rsr.sessions import read_session

PROJECT = Path(__file__).resolve().parents[2]
MAKE_RUN = PROJECT / "examples" / "newcomer_csv" / "make_run.py"
MINUTES = 5
NOISE_RAD = np.deg2rad(0.02)


def run(*arguments: str, where: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=where,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def ingest(where: Path) -> subprocess.CompletedProcess[str]:
    return run("-m", "rsr", "ingest", "run.csv", "--scenario", "double_pendulum", where=where)


def test_the_printed_hints_alone_lead_to_a_correct_session(tmp_path):
    begin = time.monotonic()
    assert run(str(MAKE_RUN), "run.csv", where=tmp_path).returncode == 0
    asked = ingest(tmp_path)
    assert asked.returncode == 2
    assert "Add these lines to mappings/double_pendulum.yaml" in asked.stderr
    assert not (tmp_path / "data").exists()

    lines = asked.stderr.split("  channels:\n")[1]  # what a person copies from the message
    (tmp_path / "mappings").mkdir()
    (tmp_path / "mappings" / "double_pendulum.yaml").write_text("channels:\n" + lines.replace("\n  ", "\n")[2:])
    stored = ingest(tmp_path)
    assert stored.returncode == 0, stored.stderr
    folder = tmp_path / stored.stdout.strip()
    assert run("-m", "rsr", "check", str(folder), where=tmp_path).returncode == 0
    assert time.monotonic() - begin < 60 * MINUTES

    mapping = yaml.safe_load((tmp_path / "mappings" / "double_pendulum.yaml").read_text())
    assert mapping["channels"]["joint_position"]["columns"] == ["shoulder", "elbow"]
    assert abs(mapping["channels"]["joint_position"]["delay_s"] - 0.040) < 2e-4
    delay_s = abs(mapping["channels"]["joint_position"]["delay_s"] - 0.040)
    (episode,) = read_session(folder).episodes
    with np.load(tmp_path / "run_truth.npz") as truth:
        for column in (0, 1):
            true = np.interp(episode.time_s + 0.040, truth["time_s"], truth["angle"][:, column])
            speed = np.interp(episode.time_s + 0.040, truth["time_s"], truth["velocity"][:, column])
            wrong = episode["joint_position"][:, column] - true
            assert np.sqrt(np.mean(wrong**2)) < 2 * NOISE_RAD
            assert np.abs(wrong).max() < 5 * NOISE_RAD + delay_s * np.abs(speed).max()
            assert np.abs(episode["joint_velocity"][:, column] - speed).max() < 5 * np.deg2rad(1.0)


def test_in_a_terminal_the_same_is_asked_and_enter_takes_the_suggestion(tmp_path):
    assert run(str(MAKE_RUN), "run.csv", where=tmp_path).returncode == 0
    terminal, inside = pty.openpty()
    command = [sys.executable, "-m", "rsr", "ingest", "run.csv", "--scenario", "double_pendulum"]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    os.write(terminal, b"deg\n\n")
    done = subprocess.run(command, cwd=tmp_path, env=environment, stdin=inside, stderr=inside, stdout=subprocess.PIPE)
    shown = os.read(terminal, 1 << 16).decode()
    os.close(terminal)
    os.close(inside)
    assert done.returncode == 0, shown
    assert "channels.joint_position.unit [deg]:" in shown
    mapping = yaml.safe_load((tmp_path / "mappings" / "double_pendulum.yaml").read_text())
    assert mapping["channels"]["joint_position"]["unit"] == "deg"
    assert abs(mapping["channels"]["joint_position"]["delay_s"] - 0.040) < 2e-4


def test_the_next_recording_needs_nothing(tmp_path):
    assert run(str(MAKE_RUN), "run.csv", where=tmp_path).returncode == 0
    (tmp_path / "mappings").mkdir()
    answers = {"channels": {"joint_position": {"unit": "deg", "delay_s": 0.04}}}
    (tmp_path / "mappings" / "double_pendulum.yaml").write_text(yaml.safe_dump(answers))
    assert ingest(tmp_path).stdout.strip() == "data/double_pendulum/session-001"
    again = ingest(tmp_path)
    assert "a session already; nothing was written" in again.stderr
    rows = (tmp_path / "run.csv").read_text().splitlines(keepends=True)
    (tmp_path / "run.csv").write_text("".join(rows[:2000]))
    assert ingest(tmp_path).stdout.strip() == "data/double_pendulum/session-002"


def test_the_page_shows_what_is_printed(tmp_path):
    """Whatever the page quotes of the first answer is in the answer, apart from where its lines break."""
    assert run(str(MAKE_RUN), "run.csv", where=tmp_path).returncode == 0
    printed = " ".join(ingest(tmp_path).stderr.replace("#", " ").split())
    page = (PROJECT / "docs" / "ingest.md").read_text()
    quoted = page.split("< /dev/null\n")[1].split("\n\n")[0].replace("#", " ")
    before, after = quoted.split("ConfigError")
    for part in (before, after):
        assert " ".join(part.split()) in printed
