"""`rsr calibrate --method clash` and `--method gnn`, and `rsr evaluate` of what they leave behind."""

import json

import pytest

from rsr.calibration import load_calibration
from rsr.cli.app import FAILED, main
from rsr.common.progress import ignore
from rsr.config import ClashConfig
from rsr.pipelines.clash.stages import learn, simulate
from rsr.realities.cubes import CubesStandIn
from rsr.realities.reality import CollectionPlan
from rsr.realities.strikes import StrikeReality
from rsr.scenarios import load_scenario
from rsr.sessions import write_session

BUDGET = ClashConfig(pairs=600, train_steps=120)


@pytest.fixture(scope="module")
def strikes(tmp_path_factory):
    """Folders of two sessions and of a small base model."""
    folder, scenario = tmp_path_factory.mktemp("strikes"), load_scenario("strike_square")
    reality = StrikeReality(scenario, 2)
    sessions = [
        write_session(folder, reality.collect(None, CollectionPlan(f"session-00{seed}", 14, seed), ignore))
        for seed in (1, 2)
    ]
    simulate(scenario, folder / "pairs", BUDGET, 0, ignore)
    learn(folder / "pairs", folder / "base", BUDGET, 0, ignore)
    return folder, sessions


@pytest.fixture(scope="module")
def adapted(strikes):
    folder, sessions = strikes
    options = ["--scenario", "strike_square", "--sessions", str(sessions[0]), "--method", "clash", "--episodes", "8"]
    assert main(["calibrate", *options, "--out", str(folder / "out"), "--base", str(folder / "base")]) == 0
    return folder / "out"


def test_clash_leaves_a_calibration_like_any_other(adapted):
    calibration = load_calibration(adapted)
    assert calibration.method == "clash"
    assert list(calibration.estimates) == list(load_scenario("strike_square").space.names)
    assert calibration.evidence.fitted == tuple(range(8))
    assert calibration.evidence.held_out == tuple(range(8, 14))
    assert calibration.evidence.channels["velocity_after"][1] < calibration.evidence.channels["velocity_after"][0]


def test_evaluate_judges_it_on_strikes_of_another_session(adapted, strikes, tmp_path, capsys):
    _, sessions = strikes
    figures = tmp_path / "figures.json"
    options = ["--scenario", "strike_square", "--sessions", str(sessions[1]), "--calibration", str(adapted)]
    assert main(["evaluate", *options, "--json", str(figures)]) == 0
    found = json.loads(figures.read_text())
    assert found["strikes"] == 14
    assert found["strike_velocity_m_s"] < found["strike_velocity_m_s_nominal"]
    assert found["strike_accuracy"] >= found["strike_accuracy_nominal"]
    assert found["gap"] > 0
    assert found["position_error_mm"] > 0
    assert "strike_accuracy" in capsys.readouterr().out


def test_wrong_recordings_are_refused_before_anything_is_simulated(strikes, tmp_path, capsys):
    folder, sessions = strikes
    wrong = [
        "--scenario",
        "strike",
        "--sessions",
        str(sessions[0]),
        "--method",
        "clash",
        "--out",
        str(tmp_path / "out"),
    ]
    assert main(["calibrate", *wrong]) == FAILED
    assert "got a session of scenario strike_square; expected one of strike" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    base = ["--base", str(folder / "base")]
    cubes = write_session(tmp_path, CubesStandIn(1).record("session-001", 2))
    options = ["--scenario", "two_cubes", "--sessions", str(cubes), "--method", "clash", "--out", str(tmp_path / "out")]
    assert main(["calibrate", *options, *base]) == FAILED
    assert (
        "scenario two_cubes, method clash: got no section `collision`; expected what method clash can do"
        in capsys.readouterr().err
    )


def test_a_base_of_another_block_is_refused(strikes, tmp_path, capsys):
    folder, _ = strikes
    scenario = load_scenario("strike")
    session = write_session(
        tmp_path, StrikeReality(scenario, 2).collect(None, CollectionPlan("session-001", 4, 1), ignore)
    )
    options = ["--scenario", "strike", "--sessions", str(session), "--method", "clash", "--out", str(tmp_path / "out")]
    assert main(["calibrate", *options, "--base", str(folder / "base")]) == FAILED
    assert "got a surrogate of 'square'; expected one of 'semi_cylinder'" in capsys.readouterr().err


@pytest.mark.slow
def test_gnn_leaves_a_simulator_that_evaluate_judges(tmp_path, capsys):
    session = write_session(tmp_path, CubesStandIn(1).record("session-001", 7))
    other = write_session(tmp_path, CubesStandIn(1).record("session-002", 3))
    (tmp_path / "params.yaml").write_text("gnn: {teacher_budget: 24, trajectories: 12, steps: 3, finetune_steps: 0}\n")
    common = ["--scenario", "two_cubes"]
    options = [
        "--sessions",
        str(session),
        "--method",
        "gnn",
        "--episodes",
        "3",
        "--params",
        str(tmp_path / "params.yaml"),
    ]
    assert main(["calibrate", *common, *options, "--out", str(tmp_path / "out")]) == 0
    calibration = load_calibration(tmp_path / "out")
    assert calibration.method == "gnn"
    assert len(calibration.evidence.held_out) == 4
    judged = ["--sessions", str(other), "--calibration", str(tmp_path / "out"), "--json", str(tmp_path / "f.json")]
    assert main(["evaluate", *common, *judged]) == 0
    found = json.loads((tmp_path / "f.json").read_text())
    assert found["struck_position_mm"] > 0
    assert found["struck_position_mm"] != found["struck_position_mm_nominal"]
    assert "gnn:" in capsys.readouterr().out


def test_an_unknown_method_is_refused_with_all_that_there_are(strikes, tmp_path, capsys):
    _, sessions = strikes
    options = ["--scenario", "strike_square", "--sessions", str(sessions[0]), "--out", str(tmp_path / "out")]
    assert main(["calibrate", *options, "--method", "clahs"]) == FAILED
    assert "expected one of mjx, cmaes, sysid, adam, clash, gnn" in capsys.readouterr().err
