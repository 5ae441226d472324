"""Encoder biases that differ from episode to episode: found from the beginning, harmless to the parameters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rsr.calibration import Effort, calibrator, start_prior
from rsr.calibration.problem.loss import Loss
from rsr.calibration.problem.windows import choose, cut
from rsr.calibration.search.marginalise import around_biases, with_biases
from rsr.common.progress import ignore
from rsr.config import TuneConfig
from rsr.scenarios import load_scenario
from rsr.simulators import MujocoSimulator, correct_sensors, evaluate_recording
from tests.calibration.pendulum_stand_in import TRUTH, swings
from tests.calibration.recordings import recording


def rms(values) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


@pytest.fixture(scope="module")
def scenario():
    return load_scenario("double_pendulum")


@pytest.fixture(scope="module")
def simulator(scenario):
    with MujocoSimulator(scenario) as simulator:
        yield simulator


@pytest.fixture(scope="module")
def loss(scenario, simulator):
    windows = choose(scenario, cut(scenario, swings()[0].episodes, 150, 75), 48, np.random.default_rng(0))
    return Loss(scenario, simulator, windows, start_prior(scenario))


def test_biases_come_from_the_beginning_which_is_not_compared(scenario, simulator):
    session, biases = swings()
    corrected = correct_sensors(scenario, simulator, session.episodes, scenario.space.vector(TRUTH))
    found = []
    for episode, whole in zip(corrected, session.episodes, strict=True):
        assert len(episode) == len(whole) - len(whole) // 2, "2 s of beginning, but never more than half"
        removed = whole["joint_position"][-len(episode) :] - episode["joint_position"]
        np.testing.assert_allclose(removed, np.tile(removed[0], (len(episode), 1)), atol=1e-12)
        found.append(removed[0])
    assert rms(found - biases) < 0.25 * rms(biases)


def test_compared_rows_do_not_influence_the_biases(scenario, simulator):
    """Whatever happens in the second half of a recording, the same biases are taken off."""
    session, _ = swings()
    other = []
    for episode in session.episodes:
        positions = episode["joint_position"].copy()
        positions[len(episode) // 2 + 1 :] += 0.2
        other.append(replace(episode, values={**episode.values, "joint_position": positions}))
    values = scenario.space.vector(TRUTH)
    for first, second in zip(
        correct_sensors(scenario, simulator, session.episodes, values),
        correct_sensors(scenario, simulator, other, values),
        strict=True,
    ):
        np.testing.assert_array_equal(first["joint_position"][0], second["joint_position"][0])


def test_true_parameters_predict_better_after_bias_correction(scenario):
    session, _ = swings()
    corrected, recorded = (
        evaluate_recording(scenario, session, TRUTH, as_recorded=as_recorded)["joint_rmse_rad"]
        for as_recorded in (False, True)
    )
    assert corrected < 0.4 * recorded
    assert corrected < 0.5 * evaluate_recording(scenario, session, {})["joint_rmse_rad"]


def test_channels_without_bias_are_unchanged(simulator):
    scenario = load_scenario("push_cube")
    episodes = recording().episodes
    corrected = correct_sensors(scenario, simulator, episodes, scenario.space.nominal)
    assert all(first is second for first, second in zip(corrected, episodes, strict=True))


def test_a_bias_does_not_change_the_loss(loss, scenario):
    """The loss at the truth hardly minds biases; as recorded it does."""
    truth = loss.points(scenario.space.vector(TRUTH))[None]
    profiled = around_biases(around_biases(with_biases(loss), truth[0]), truth[0])
    assert profiled(truth)[0] < 0.3 * loss(truth)[0]
    found = loss.windows.starts[:, :2] - profiled.windows.starts[:, :2]
    biases = swings()[1][loss.windows.episode]
    assert rms(found - biases) < 0.25 * rms(biases)


def test_biases_beside_an_orientation():
    """An orientation has four columns, and differs from another by three."""
    pushed = load_scenario("push_cube")
    observed = tuple(replace(each, bias_std=0.01 * (each.kind == "angle")) for each in pushed.observed)
    pushed = replace(pushed, observed=observed)
    windows = choose(pushed, cut(pushed, recording(episodes=4, steps=40).episodes, 8, 4), 8, np.random.default_rng(0))
    with MujocoSimulator(pushed) as simulated:
        whole = with_biases(Loss(pushed, simulated, windows, start_prior(pushed)))
        short = with_biases(replace(whole, windows=windows.shortened(3), biases=None))
    assert whole.biases is not None
    assert short.biases is not None
    np.testing.assert_allclose(whole.biases.shortened(3).slopes, short.biases.slopes, atol=1e-9)


def test_shortened_slopes_are_those_of_shortened_windows(loss):
    whole = with_biases(loss)
    short = with_biases(loss.shortened(20))
    assert whole.biases is not None
    assert short.biases is not None
    np.testing.assert_allclose(whole.shortened(20).biases.slopes, short.biases.slopes, atol=1e-9)


@pytest.mark.slow
def test_parameters_are_recovered_despite_biases(scenario):
    session, _ = swings()
    effort = Effort(budget=120, max_windows=16, window_steps=100)
    found = calibrator(TuneConfig(method="sysid", fit_episodes=3), effort).fit(
        scenario, (session,), start_prior(scenario), 0, ignore
    )
    assert found.evidence.gap_after < 0.3 * found.evidence.gap_before
    for name, each in found.estimates.items():
        if each.verdict == "identified":
            truth = TRUTH.get(name, scenario.space[name].nominal)
            assert each.lower <= truth <= each.upper, name
    assert found.estimates["shoulder_friction"].value == pytest.approx(0.1, rel=0.15)


def test_thinned_windows_keep_their_biases(loss):
    eliminated = with_biases(loss)
    few = eliminated.thinned(6)
    assert eliminated.biases is not None
    assert few.biases is not None
    np.testing.assert_array_equal(few.biases.episode, few.windows.episode)
    np.testing.assert_array_equal(few.biases.slopes, with_biases(loss.thinned(6)).biases.slopes)
    assert np.isfinite(few(few.first[None])).all()
