"""The examples that read like notebooks run from beginning to end, each in a process and a folder of its own."""

from __future__ import annotations

import re
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


def table_of(text: str) -> dict[str, list[float]]:
    """Read value and interval of both parameters where they are printed first."""
    rows = {name: re.search(rf"^ *{name} .*$", text, re.MULTILINE) for name in ("damping", "gain")}
    return {name: [float(each) for each in re.findall(r"\d\.\d+", row.group())] for name, row in rows.items()}


@pytest.mark.slow
def test_arrays_are_calibrated_to_a_tuned_model(tmp_path):
    said = run("calibrate_from_arrays.py", tmp_path)
    assert "8 runs fitted" in said
    assert "RMS error against horizon" in said
    assert "warning" not in said  # the model is right: whatever it warned of would be a false alarm
    tutorial = (EXAMPLES.parent / "docs" / "first-calibration.md").read_text()
    assert table_of(said) == {name: pytest.approx(row, rel=0.01) for name, row in table_of(tutorial).items()}
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
