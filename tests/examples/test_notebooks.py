"""The examples that read like notebooks run from beginning to end, each in a process and a folder of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import mujoco
import pytest

from tests.sample_workspace import make_workspace

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(name: str, folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-W", "error::UserWarning", str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_arrays_are_calibrated_to_a_tuned_model(tmp_path):
    said = run("calibrate_from_arrays.py", tmp_path)
    assert "4 runs fitted" in said
    assert "RMS error against horizon" in said
    tuned = mujoco.MjModel.from_xml_path(str(tmp_path / "tuned.xml"))
    assert tuned.joint("elbow").damping[0] == pytest.approx(1.6 * 0.4, rel=0.03)
    assert {path.name for path in tmp_path.glob("*.png")} == {"parameters.png", "horizon.png"}


def test_a_campaign_is_looked_at(tmp_path):
    make_workspace(tmp_path / "demo", iterations=2)
    said = run("look_at_a_campaign.py", tmp_path, "demo")
    assert "table_friction: " in said
    assert "joint_position: " in said
    assert {path.name for path in tmp_path.glob("*.*")} == {"loop.png", "parameters.png", "report.html"}


@pytest.mark.slow
def test_a_policy_is_trained_and_exported(tmp_path):
    said = run("train_and_export.py", tmp_path, "4000")
    assert "joint displacements: [[" in said
    assert (tmp_path / "exported" / "policy.onnx").is_file()
