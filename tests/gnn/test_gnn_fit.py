"""A fit from recordings to a learned simulator, on simulated tosses: files, choice, evidence, repeatability."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pushes_at_hand import pushed

from rsr.calibration import Evidence, start_calibration
from rsr.common.errors import CalibrationError
from rsr.common.files import read_json
from rsr.common.progress import ignore
from rsr.config import GnnConfig
from rsr.learned.gnn.calibration import (
    GnnFit,
    HeldOutTrajectories,
    LearningProblem,
    fit_gnn,
    load_gnn,
    of_one_length,
    split_known,
)
from rsr.learned.gnn.storage import new_network, save_network
from rsr.pipelines.gnn.stages import as_gnn
from rsr.scenarios import load_scenario
from rsr.sessions import Card, Episode, Session
from rsr.simulators import MujocoSimulator, evaluate_recording

TOSSES, FRAMES = 7, 50
SMALL = GnnConfig(trajectories=12, steps=3, finetune_steps=2)


@pytest.fixture(scope="module")
def scenario():
    return load_scenario("cube_toss")


@pytest.fixture(scope="module")
def session(scenario) -> Session:
    """Tosses of a cube that slides better than the scenario thinks; the last two are one throw."""
    rng = np.random.default_rng(0)
    states = np.zeros((TOSSES, 13))
    states[:, 2] = 0.14
    quaternions = rng.normal(size=(TOSSES, 4))
    states[:, 3:7] = quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)
    states[:, 7:] = rng.normal(size=(TOSSES, 6)) * [0.6, 0.6, 0.1, 3, 3, 3]
    states[-1] = states[-2]
    with MujocoSimulator(scenario, threads=1) as simulator:
        truth = scenario.space.vector({"friction": 0.1})
        tossed = simulator.rollout(states, np.zeros((TOSSES, FRAMES, 0)), truth)
    time_s = scenario.control_dt_s * np.arange(FRAMES + 1)
    episodes = tuple(
        Episode(
            *(index, time_s),
            scenario.measure(rows) | {"linear_velocity": rows[:, 7:10], "angular_velocity": rows[:, 10:]},
            {"physical_toss": str(min(index, TOSSES - 2))},
        )
        for index, rows in enumerate(tossed)
    )
    card = Card("tosses", "cube_toss", "simulated", simulated=True, control_dt_s=scenario.control_dt_s)
    return Session(card, scenario.channels, episodes)


@pytest.fixture(scope="module")
def problem(scenario, session) -> LearningProblem:
    return LearningProblem(scenario, (session,), scenario.space.nominal, range(4), SMALL, 3)


@pytest.fixture(scope="module")
def fitted(problem, tmp_path_factory) -> tuple[GnnFit, list[float]]:
    """A fit and the progress that it reported."""
    seen: list[float] = []
    out = tmp_path_factory.mktemp("fitted")
    return fit_gnn(problem, out, lambda fraction, words="": seen.append(fraction)), seen


def test_a_fit_leaves_a_simulator_and_its_evidence(scenario, session, fitted):
    fit, seen = fitted
    assert set(fit.errors) == {"nominal", "teacher", "network", "fine-tuned"}
    assert fit.errors["nominal"] == fit.errors["teacher"]
    assert seen == sorted(seen)
    assert seen[-1] == 1
    record = read_json(fit.folder / "gnn.json")
    assert record["errors"] == fit.errors
    assert record["chosen"] == fit.chosen == min(record["scores"], key=record["scores"].get)
    assert sorted(path.name for path in fit.folder.iterdir()) == ["gnn.json", "network"]
    with fit.simulator() as simulator:
        judged = evaluate_recording(
            scenario, session, scenario.space.nominal, episodes=range(4, TOSSES), simulator=simulator
        )
    assert judged["position_error_percent"] == pytest.approx(fit.errors[fit.chosen]["position_error_percent"])


@pytest.mark.slow
def test_of_three_recordings_each_is_left_out_once_to_choose_by(scenario, session, tmp_path):
    still = SMALL.model_copy(update={"finetune_steps": 0})
    nominal = scenario.space.nominal
    fit_gnn(LearningProblem(scenario, (session,), nominal, range(3), still, 0), tmp_path / "still", ignore)
    fit = fit_gnn(LearningProblem(scenario, (session,), nominal, range(3), SMALL, 0), tmp_path / "tuned", ignore)
    scores = read_json(tmp_path / "tuned" / "gnn.json")["scores"]
    assert set(scores) == {"network", "fine-tuned"}
    assert fit.chosen in fit.errors
    network, judges = load_gnn(scenario, tmp_path / "still").network, HeldOutTrajectories(scenario, session, nominal)
    assert scores["network"] == pytest.approx(np.mean([judges.score(network, [index]) for index in range(3)]))
    twice = fit_gnn(LearningProblem(scenario, (session,), nominal, range(2), SMALL, 0), tmp_path / "two", ignore)
    assert twice.chosen == "network"  # of two, one alone would be learnt from


def test_recordings_of_different_lengths_are_all_learnt_from():
    """Of the longest alone, one recording that is a little longer would silence all others."""
    push = pushed(1.0)
    pushes = [push.with_poses(push.poses[:frames]) for frames in (5, 20, 20, 22, 21)]
    assert [len(each) for each in of_one_length(pushes)] == [20] * 4
    assert [len(each) for each in of_one_length(pushes[2:])] == [20] * 3


@pytest.mark.slow
def test_repeats_of_a_fitted_throw_judge_nothing(scenario, session, tmp_path):
    fit = fit_gnn(
        LearningProblem(scenario, (session,), scenario.space.nominal, [0, 1, TOSSES - 2], SMALL, 0), tmp_path, ignore
    )
    judged = evaluate_recording(scenario, session, scenario.space.nominal, episodes=range(2, TOSSES - 2))
    assert fit.errors["teacher"]["position_error_percent"] == pytest.approx(judged["position_error_percent"])


@pytest.mark.slow
def test_equal_arguments_give_equal_bytes(problem, fitted, tmp_path):
    files = ("gnn.json", "network/network.json", "network/network.npz")
    one, other = fitted[0].folder, fit_gnn(problem, tmp_path, ignore).folder
    assert all((one / name).read_bytes() == (other / name).read_bytes() for name in files)


def test_repeats_of_a_throw_stay_on_one_side(scenario, session):
    for seed in range(8):
        learnt, kept_back = split_known(scenario, session.episodes, range(1, TOSSES), seed)
        assert sorted(learnt + kept_back) == list(range(1, TOSSES))
        assert ({TOSSES - 2, TOSSES - 1} <= set(learnt)) != ({TOSSES - 2, TOSSES - 1} <= set(kept_back))


@pytest.mark.parametrize("known", [[0], [TOSSES - 2, TOSSES - 1], range(TOSSES)])
def test_too_few_to_fit_or_to_judge_by(scenario, session, tmp_path, known):
    with pytest.raises(CalibrationError, match="at least 2, and at least one episode held out"):
        fit_gnn(LearningProblem(scenario, (session,), scenario.space.nominal, known, SMALL, 0), tmp_path, ignore)


def test_a_folder_without_a_network_is_refused(scenario, tmp_path):
    with pytest.raises(CalibrationError, match=r"network\.json and network\.npz"):
        load_gnn(scenario, tmp_path)


@pytest.mark.parametrize(("gap_before", "status"), [(1e-9, "no improvement"), (1e9, "converged")])
def test_a_network_that_predicts_no_better_than_before_says_so(scenario, session, tmp_path, gap_before, status):
    save_network(new_network(dt_s=scenario.control_dt_s), tmp_path / "network")
    before = {each.channel.name: (gap_before, gap_before) for each in scenario.observed}
    evidence = Evidence(gap_before, gap_before, "m", before, tuple(range(4)), (4, 5))
    teacher = replace(start_calibration(scenario), evidence=evidence, warnings=("of the teacher",))
    found = as_gnn(scenario, (session,), teacher, tmp_path)
    assert (found.status, found.evidence.held_out) == (status, (4, 5))
    assert len(found.warnings) == (2 if status == "no improvement" else 1)
