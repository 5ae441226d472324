"""`rsr calibrate` with all methods, with checks and with structures; `rsr evaluate` where sensors are wrong."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rsr.calibration import METHODS, load_calibration
from rsr.cli import main
from rsr.common.files import read_json
from rsr.reports.calibration import disagreements
from rsr.scenarios import load_scenario
from rsr.sessions import write_session
from tests.calibration.pendulum_stand_in import swings
from tests.calibration.test_structure_selection import tosses_of


def test_evaluation_says_what_zeros_do(tmp_path, capsys):
    folder, target = write_session(tmp_path, swings(episodes=2)[0]), tmp_path / "figures.json"
    command = ["evaluate", "--scenario", "double_pendulum", "--sessions", str(folder), "--json", str(target)]
    assert main(command) == 0
    figures = read_json(target)
    assert figures["joint_rmse_rad"] != figures["joint_rmse_rad_as_recorded"] > 0
    assert figures["joint_rmse_rad_as_recorded_nominal"] == figures["joint_rmse_rad_as_recorded"]
    assert "joint_rmse_rad_as_recorded" in capsys.readouterr().out


def test_a_structure_needs_choices(finished, tmp_path, capsys):
    recording = ["--scenario", "push_cube", "--sessions", str(finished.session_dir(1)), "--out", str(tmp_path)]
    assert main(["calibrate", *recording, "--structure"]) == 2
    assert "got no `structure`; expected options and the values to compare" in capsys.readouterr().err


def test_unknown_sensitivity(finished, tmp_path, capsys):
    recording = ["--scenario", "push_cube", "--sessions", str(finished.session_dir(1)), "--out", str(tmp_path)]
    with pytest.raises(SystemExit):
        main(["calibrate", *recording, "--sensitivity", "guess"])
    assert "guess" in capsys.readouterr().err


@pytest.mark.slow
def test_a_structure_is_chosen_kept_and_honoured(tmp_path, capsys):
    scenario = load_scenario("cube_toss")
    session = write_session(tmp_path / "data", tosses_of(scenario))
    file = shutil.copytree(scenario.folder, tmp_path / "tosses") / "scenario.yaml"
    choices = "  condim: [4, 3, 6]\n  integrator: [implicitfast, Euler]\n"
    assert choices in file.read_text()
    file.write_text(file.read_text().replace(choices, "  condim: [4, 3]\n"))  # four structures in place of twelve
    recording = ["--scenario", str(file), "--sessions", str(session)]
    out = tmp_path / "calibration"
    assert (
        main(
            [
                "calibrate",
                *recording,
                "--method",
                "cmaes",
                "--episodes",
                "4",
                "--structure",
                "--budget",
                "60",
                "--out",
                str(out),
            ]
        )
        == 0
    )
    assert "structure: cone elliptic, condim " in capsys.readouterr().out
    assert load_calibration(out).structure["cone"] == "elliptic"
    target = tmp_path / "figures.json"
    judged = ["evaluate", *recording, "--calibration", str(out), "--held-out", "--start", "first"]
    assert main([*judged, "--json", str(target)]) == 0
    assert read_json(target)["gap"] == pytest.approx(load_calibration(out).evidence.gap_after)


@pytest.mark.slow
def test_all_methods_side_by_side(finished, tmp_path, capsys):
    recording = ["--scenario", "push_cube", "--sessions", str(finished.session_dir(1)), "--out", str(tmp_path)]
    options = ["--method", "all", "--episodes", "2", "--sensitivity", "auto", "--budget", "60"]
    assert main(["calibrate", *recording, *options]) == 0
    out = capsys.readouterr().out
    comparison = read_json(tmp_path / "comparison.json")
    assert set(comparison["methods"]) == set(METHODS)
    assert comparison["methods"]["mjx"]["sensitivity"] == "mjx"
    assert comparison["methods"]["cmaes"]["sensitivity"] == ""
    assert all(method in out for method in METHODS)
    assert (tmp_path / "comparison.png").read_bytes().startswith(b"\x89PNG")
    found = {method: load_calibration(Path(tmp_path) / method) for method in METHODS}
    assert comparison["disagreements"] == disagreements(found)
    assert found["mjx"].checks.gradients.startswith("gradients ")
    assert found["mjx"].checks.parity.startswith("MJX ")
