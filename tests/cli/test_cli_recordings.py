"""`rsr calibrate`, `rsr evaluate`, `rsr train` on small recordings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from own_arm import write_own_arm

from rsr.calibration import METHODS, load_calibration, save_calibration
from rsr.cli import main
from rsr.common.files import read_json
from rsr.policies import Policy
from rsr.sessions import Session
from rsr.workspace import Workspace


@pytest.fixture(scope="session")
def session(finished: Workspace) -> Path:
    return finished.session_dir(1)


def renamed(session: Session, name: str) -> Session:
    return replace(session, card=replace(session.card, session=name))


def test_unknown_scenario(session, tmp_path, capsys):
    for command in (
        ["check", str(session)],
        ["calibrate", "--sessions", str(session), "--out", str(tmp_path)],
        ["evaluate", "--sessions", str(session)],
        ["train", "--out", str(tmp_path)],
    ):
        assert main([*command, "--scenario", "push_cubes"]) == 2
        error = capsys.readouterr().err
        assert error.startswith("ConfigError scenario: got scenario 'push_cubes'; expected one of ")
        assert "push_cube" in error.split("expected one of ")[1]
        assert error.endswith("Correct the name in params.yaml or on the command line.\n")


def test_unknown_method(session, tmp_path, capsys):
    command = ["calibrate", "--scenario", "push_cube", "--sessions", str(session), "--out", str(tmp_path)]
    assert main([*command, "--method", "annealing"]) == 2
    error = capsys.readouterr().err
    assert "got calibration method 'annealing'" in error
    assert "cmaes" in error


def test_session_that_is_not_there(capsys):
    assert main(["evaluate", "--scenario", "push_cube", "--sessions", "nowhere"]) == 2
    assert capsys.readouterr().err.startswith("SessionError nowhere: got no such folder;")


def test_gap_of_nominal_parameters(session, tmp_path, capsys):
    target = tmp_path / "gap.json"
    command = ["evaluate", "--scenario", "push_cube", "--sessions", str(session), "--json", str(target)]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "12 episodes, replayed open loop" in out
    figures = read_json(target)
    assert figures["gap"] == figures["gap_nominal"] > 0
    assert figures["block_position_rmse"] == figures["block_position_rmse_nominal"] > 0
    assert figures["start"] == "windows"
    assert (figures["episodes"], figures["calibration"]) == (12, None)


def test_gap_of_a_calibration_on_its_held_out_episodes(session, finished, tmp_path):
    target = tmp_path / "gap.json"
    command = ["evaluate", "--scenario", "push_cube", "--sessions", str(session), "--json", str(target)]
    assert main([*command, "--calibration", str(finished.calibration_dir(1)), "--held-out"]) == 0
    figures = read_json(target)
    assert figures["episodes"] == 8
    assert figures["gap"] != figures["gap_nominal"]


def test_no_episode_was_held_out_of_an_estimate_that_is_fitted_to_all(session, finished, tmp_path, capsys):
    found = load_calibration(finished.calibration_dir(1))
    everyone = tuple(range(12))
    save_calibration(replace(found, evidence=replace(found.evidence, fitted=everyone, held_out=everyone)), tmp_path)
    command = ["evaluate", "--scenario", "push_cube", "--sessions", str(session)]
    assert main([*command, "--calibration", str(tmp_path), "--held-out"]) == 2
    assert "got a calibration that was fitted to all 12 episodes; expected one with" in capsys.readouterr().err
    assert main([*command, "--calibration", str(tmp_path)]) == 0
    assert "as many episodes as the calibration was made from" in capsys.readouterr().err
    assert main([*command, str(finished.session_dir(2)), "--calibration", str(tmp_path)]) == 0
    assert "as many episodes" not in capsys.readouterr().err


def test_held_out_episodes_of_other_sessions(session, finished, capsys):
    command = ["evaluate", "--scenario", "push_cube", "--held-out", "--sessions", str(session)]
    assert main(command) == 2
    assert "got --held-out without --calibration" in capsys.readouterr().err
    command += [str(finished.session_dir(2)), "--calibration", str(finished.calibration_dir(1))]
    assert main(command) == 2
    assert "got 24 episodes; expected the 12 that the calibration was made from" in capsys.readouterr().err


@pytest.mark.slow
def test_calibration_is_written_and_can_be_evaluated(session, tmp_path, capsys):
    recording = ["--scenario", "push_cube", "--sessions", str(session)]
    options = ["--method", "cmaes", "--episodes", "2", "--budget", "60"]
    assert main(["calibrate", *recording, *options, "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "gap on 10 held-out episodes:" in out
    assert out.endswith(f"{tmp_path}\n")
    calibration = load_calibration(tmp_path)
    assert (calibration.method, len(calibration.evidence.fitted)) == ("cmaes", 2)
    target = tmp_path / "gap.json"
    assert main(["evaluate", *recording, "--calibration", str(tmp_path), "--held-out", "--json", str(target)]) == 0
    figures = read_json(target)
    assert figures["gap"] == pytest.approx(calibration.evidence.gap_after)
    assert figures["gap_nominal"] == pytest.approx(calibration.evidence.gap_before)


def test_methods_are_in_the_help(capsys):
    with pytest.raises(SystemExit):
        main(["calibrate", "--help"])
    assert " or ".join(METHODS) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--episodes", "0"), "command line: tune.fit_episodes: got 0; expected greater than or equal to 1."),
        (("--seed", "-1"), "command line: seed: got -1; expected greater than or equal to 0."),
    ],
)
def test_numbers_out_of_range(session, tmp_path, capsys, option, words):
    command = ["calibrate", "--scenario", "push_cube", "--sessions", str(session), "--out", str(tmp_path)]
    assert main([*command, *option]) == 2
    assert capsys.readouterr().err == f"ConfigError {words} Correct this value.\n"


@pytest.mark.slow
def test_trained_policy_is_written(finished, tmp_path, capsys):
    origin = ["--calibration", str(finished.calibration_dir(1))]
    assert main(["train", "--scenario", "push_cube", *origin, "--steps", "8192", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith(f"{tmp_path}")
    assert Policy.load(tmp_path).scenario == "push_cube"


@pytest.mark.slow
def test_a_training_shorter_than_an_episode_says_that_nothing_is_known(tmp_path, capsys):
    scenario = write_own_arm(tmp_path / "arm")
    scenario.write_text(scenario.read_text().replace("episode_steps: 40", "episode_steps: 4000"))
    assert main(["train", "--scenario", str(scenario), "--steps", "64", "--out", str(tmp_path / "policy")]) == 0
    words = f"{tmp_path}/policy, of which nothing is known: no episode had ended yet. Raise --steps\n"
    assert capsys.readouterr().out == words


def test_scenario_without_a_task(tmp_path, capsys):
    assert main(["train", "--scenario", "cube_toss", "--out", str(tmp_path)]) == 2
    assert (
        "got scenario cube_toss, which has no task to learn; expected a task.py beside its YAML"
        in capsys.readouterr().err
    )


def test_unknown_start(session, capsys):
    assert main(["evaluate", "--scenario", "push_cube", "--sessions", str(session), "--start", "last"]) == 2
    assert "got start 'last'; expected one of windows, first" in capsys.readouterr().err
