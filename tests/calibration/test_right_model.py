"""Where the model is right: whole runs instead of short windows, in units of the noise; elsewhere no such fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rsr.api.arrays import session_from_arrays
from rsr.calibration import start_prior
from rsr.calibration.problem.loss import Loss
from rsr.calibration.problem.sensitivity import exact_linearisation
from rsr.calibration.problem.windows import Windows, cut
from rsr.calibration.search.marginalise import reweighted
from rsr.calibration.search.refinement import refine
from rsr.calibration.search.right_model import longest_right, promising
from rsr.calibration.uncertainty.bootstrap import horizon_shift
from rsr.calibration.uncertainty.identifiability import posterior
from rsr.common.progress import ignore
from rsr.scenarios import Scenario, load_scenario
from rsr.sessions import Episode, Session
from rsr.simulators import MujocoSimulator
from tests.own_arm import write_own_arm

TRUTH = {"damping": 1.6, "gain": 0.8}
ROWS, RUNS, SHORT, NOISE = 60, 8, 8, 0.002


@pytest.fixture(scope="module")
def scenario(tmp_path_factory) -> Scenario:
    own = load_scenario(str(write_own_arm(tmp_path_factory.mktemp("own"))))
    return replace(own, other_channels=tuple(each for each in own.other_channels if each.name == own.command))


@pytest.fixture(scope="module")
def simulator(scenario):
    with MujocoSimulator(scenario, threads=1) as simulator:
        yield simulator


def recorded(
    scenario: Scenario, simulator: MujocoSimulator, bent: float = 0.0, gain: float = TRUTH["gain"], seed: int = 0
) -> Session:
    """Runs from rest; `bent` turns the commands that the robot really obeys, which no parameter expresses."""
    rng, truth = np.random.default_rng(seed), {**TRUTH, "gain": gain}
    times, speeds, phases = 0.05 * np.arange(ROWS)[:, None], *rng.uniform(1.0, 5.0, (2, RUNS, 1, 3))
    commands = 0.4 * (np.sin(speeds * times + phases) - np.sin(phases))
    before = np.repeat(commands[:, :1], scenario.history_steps, axis=1)
    obeyed = np.concatenate([before, commands + bent * np.square(commands)], axis=1)
    states = simulator.rollout(np.zeros((RUNS, 6)), obeyed, scenario.space.vector(truth))[:, :ROWS]
    angles = scenario.measure(states)["q"] + NOISE * rng.normal(size=(RUNS, ROWS, 3))
    runs = [{"q": q, "q_set": u} for q, u in zip(angles, commands, strict=True)]
    return session_from_arrays(scenario, runs, "arm")


def searched(scenario: Scenario, simulator: MujocoSimulator, episodes: list[Episode]) -> tuple[Loss, np.ndarray]:
    """A loss on short windows, and a point beside the truth, as a search would leave them."""
    loss = Loss(scenario, simulator, cut(scenario, episodes, SHORT, SHORT // 2), start_prior(scenario))
    point = refine(loss, loss.points(scenario.space.vector(TRUTH)) + 0.2, 0, ignore)[0]
    return reweighted(loss, point), point


def lengths_of(scenario: Scenario, episodes: list[Episode]):
    def windows(steps: int) -> Windows:
        return cut(scenario, episodes, steps, SHORT // 2).apart()

    return (ROWS - 1 - scenario.history_steps, 28, 14), windows


def test_a_right_model_is_fitted_by_whole_runs_and_says_more(scenario, simulator):
    episodes = list(recorded(scenario, simulator).episodes)
    loss, point = searched(scenario, simulator, episodes)
    assert promising(loss, point, 0)
    found = longest_right(loss, point, *lengths_of(scenario, episodes), 0, ignore)
    assert found is not None
    assert len(found.loss.windows) == RUNS
    assert found.loss.windows.inside.sum() > 0.9 * RUNS * (ROWS - 1 - scenario.history_steps)
    truth = loss.points(scenario.space.vector(TRUTH))
    left = posterior(found.loss, found.point, exact_linearisation(found.loss, found.point), np.zeros((2, 2)))
    std = np.sqrt(np.diag(left.covariance)) / loss.prior.std
    assert (np.abs(found.point - truth) < 3 * std).all()
    assert found.loss.rows_as_one < 2.0
    # Refits to the first half of every run move it as little as its interval says.
    assert (np.abs(horizon_shift(found.loss, found.point, 0)) < 3 * std).all()


@pytest.mark.slow
def test_a_wrong_model_keeps_short_windows(scenario, simulator):
    episodes = list(recorded(scenario, simulator, bent=0.5).episodes)
    loss, point = searched(scenario, simulator, episodes)
    assert longest_right(loss, point, *lengths_of(scenario, episodes), 0, ignore) is None


def test_windows_apart_do_not_overlap_and_begin_first(scenario, simulator):
    windows = cut(scenario, list(recorded(scenario, simulator).episodes), 20, 4)
    apart = windows.apart()
    for index in range(RUNS):
        rows = apart.first_row[apart.episode == index]
        assert rows[0] == windows.first_row[windows.episode == index].min()
        assert (np.diff(rows) >= 20).all()
    assert apart.overlap == 1.0
