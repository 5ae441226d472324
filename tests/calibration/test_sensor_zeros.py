"""Encoder zeros that differ from episode to episode: found from the beginning, harmless to the parameters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rsr.calibration import Effort, calibrator, start_prior
from rsr.calibration.loss import Loss
from rsr.calibration.windows import choose, cut
from rsr.calibration.zeros import around_zeros, with_zeros
from rsr.config import TuneConfig
from rsr.progress import ignore
from rsr.scenarios import load_scenario
from rsr.simulators import MujocoSimulator, evaluate_recording, put_right
from tests.calibration.pendulum_twin import TRUTH, swings
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


def test_zeros_come_from_the_beginning_which_is_not_judged(scenario, simulator):
    session, zeros = swings()
    righted = put_right(scenario, simulator, session.episodes, scenario.space.vector(TRUTH))
    found = []
    for episode, whole in zip(righted, session.episodes, strict=True):
        assert len(episode) == len(whole) - len(whole) // 2, "2 s of beginning, but never more than half"
        removed = whole["joint_position"][-len(episode) :] - episode["joint_position"]
        np.testing.assert_allclose(removed, np.tile(removed[0], (len(episode), 1)), atol=1e-12)
        found.append(removed[0])
    assert rms(found - zeros) < 0.25 * rms(zeros)


def test_what_is_judged_has_no_part_in_the_zeros(scenario, simulator):
    """Whatever happens in the second half of a recording, the same zeros are taken off."""
    session, _ = swings()
    other = []
    for episode in session.episodes:
        positions = episode["joint_position"].copy()
        positions[len(episode) // 2 + 1 :] += 0.2
        other.append(replace(episode, values={**episode.values, "joint_position": positions}))
    values = scenario.space.vector(TRUTH)
    for first, second in zip(
        put_right(scenario, simulator, session.episodes, values),
        put_right(scenario, simulator, other, values),
        strict=True,
    ):
        np.testing.assert_array_equal(first["joint_position"][0], second["joint_position"][0])


def test_true_parameters_predict_better_once_zeros_are_right(scenario):
    session, _ = swings()
    righted, recorded = (
        evaluate_recording(scenario, session, TRUTH, as_recorded=as_recorded)["joint_rmse_rad"]
        for as_recorded in (False, True)
    )
    assert righted < 0.4 * recorded
    assert righted < 0.5 * evaluate_recording(scenario, session, {})["joint_rmse_rad"]


def test_channels_that_are_right_are_left_alone(simulator):
    scenario = load_scenario("push_cube")
    episodes = recording().episodes
    righted = put_right(scenario, simulator, episodes, scenario.space.nominal)
    assert all(first is second for first, second in zip(righted, episodes, strict=True))


def test_a_shifted_zero_is_no_evidence(loss, scenario):
    """The loss at the truth hardly minds zeros; as recorded it does."""
    truth = loss.points(scenario.space.vector(TRUTH))[None]
    profiled = around_zeros(around_zeros(with_zeros(loss), truth[0]), truth[0])
    assert profiled(truth)[0] < 0.3 * loss(truth)[0]
    found = loss.windows.starts[:, :2] - profiled.windows.starts[:, :2]
    zeros = swings()[1][loss.windows.episode]
    assert rms(found - zeros) < 0.25 * rms(zeros)


def test_zeros_beside_an_orientation():
    """An orientation has four columns, and differs from another by three."""
    pushed = load_scenario("push_cube")
    observed = tuple(replace(each, zero_std=0.01 * (each.kind == "angle")) for each in pushed.observed)
    pushed = replace(pushed, observed=observed)
    windows = choose(pushed, cut(pushed, recording(episodes=4, steps=40).episodes, 8, 4), 8, np.random.default_rng(0))
    with MujocoSimulator(pushed) as simulated:
        whole = with_zeros(Loss(pushed, simulated, windows, start_prior(pushed)))
        short = with_zeros(replace(whole, windows=windows.shortened(3), zeros=None))
    assert whole.zeros is not None
    assert short.zeros is not None
    np.testing.assert_allclose(whole.zeros.shortened(3).slopes, short.zeros.slopes, atol=1e-9)


def test_shortened_slopes_are_those_of_shortened_windows(loss):
    whole = with_zeros(loss)
    short = with_zeros(loss.shortened(20))
    assert whole.zeros is not None
    assert short.zeros is not None
    np.testing.assert_allclose(whole.shortened(20).zeros.slopes, short.zeros.slopes, atol=1e-9)


def test_parameters_come_back_although_zeros_are_wrong(scenario):
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


def test_a_few_windows_keep_their_zeros(loss):
    zeroed = with_zeros(loss)
    few = zeroed.thinned(6)
    assert zeroed.zeros is not None
    assert few.zeros is not None
    np.testing.assert_array_equal(few.zeros.episode, few.windows.episode)
    np.testing.assert_array_equal(few.zeros.slopes, with_zeros(loss.thinned(6)).zeros.slopes)
    assert np.isfinite(few(few.first[None])).all()
