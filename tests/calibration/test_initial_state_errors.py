"""Windows begin in measured states: what their errors explain is no evidence about the parameters."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from rsr.calibration import start_prior
from rsr.calibration.problem.loss import Loss
from rsr.calibration.problem.nuisances import InitialStateSlopes
from rsr.calibration.problem.sensitivity import exact_linearisation
from rsr.calibration.problem.windows import choose, cut
from rsr.calibration.search.marginalise import marginalise_initial_states, with_initial_states
from rsr.calibration.search.refinement import Linearisation
from rsr.calibration.uncertainty.identifiability import posterior
from rsr.common.progress import ignore
from rsr.scenarios.channels.smoothing import noise_left, smooth
from rsr.simulators import MujocoSimulator
from tests.calibration.recordings import TRUTH, recording
from tests.push_samples import push_cube

STEPS = 12


@pytest.fixture(scope="module")
def loss():
    scenario = push_cube()
    every = cut(scenario, recording(6, steps=60).episodes, STEPS, stride=6)
    windows = choose(scenario, every, 40, np.random.default_rng(0))
    with MujocoSimulator(scenario, 1) as simulator:
        yield Loss(scenario, simulator, windows, start_prior(scenario))


@pytest.fixture(scope="module")
def truth(loss):
    return np.clip(loss.points(push_cube().space.vector(TRUTH)), *loss.bounds.T)


@pytest.fixture(scope="module")
def marginal(loss, truth):
    return with_initial_states(loss, truth)


def random_slopes(rng: np.random.Generator) -> InitialStateSlopes:
    return InitialStateSlopes(rng.normal(size=(5, 4 * 6, 3)), (2, 3, 1))


def test_whitened_differences_are_the_minimum_over_errors():
    """The least of misfit and the error's own improbability, in closed form, against least squares."""
    rng = np.random.default_rng(0)
    slopes, scaled = random_slopes(rng), rng.normal(size=(2, 5, 24))
    left = np.square(slopes.whiten(scaled)).sum(axis=2)
    for k, w in np.ndindex(2, 5):
        rows = np.concatenate([slopes.slopes[w], np.eye(3)])
        wanted = np.concatenate([scaled[k, w], np.zeros(3)])
        assert left[k, w] == pytest.approx(np.linalg.lstsq(rows, wanted, rcond=None)[1][0], rel=1e-9)


def test_shorter_windows_and_fewer_of_them():
    rng = np.random.default_rng(1)
    slopes = random_slopes(rng)
    values = rng.normal(size=(5, 4, 6))
    flat = np.concatenate([values[:, :, a:b].reshape(5, -1) for a, b in ((0, 2), (2, 5), (5, 6))], axis=1)
    short = np.concatenate([values[:, :2, a:b].reshape(5, -1) for a, b in ((0, 2), (2, 5), (5, 6))], axis=1)
    whole = InitialStateSlopes(flat[..., None], slopes.widths)
    np.testing.assert_array_equal(whole.shortened(2).slopes[..., 0], short)
    chosen = np.array([3, 0])
    scaled = rng.normal(size=(1, 5, 24))
    np.testing.assert_allclose(
        slopes.take(chosen).whiten(scaled[:, chosen]), slopes.whiten(scaled)[:, chosen], atol=1e-12
    )


def test_penetration_at_the_start_is_explained_by_initial_state_errors(loss, marginal, truth):
    """At the true parameters most of the cube's misfit came from how windows begin, and nothing of the arm's did."""
    joints = slice(0, 6 * STEPS)
    cube = slice(6 * STEPS, None)
    before, after = (np.square(each.misfits(truth[None])[0]) for each in (loss, marginal))
    assert after[:, cube].sum() < 0.6 * before[:, cube].sum()
    assert after[:, joints].sum() == pytest.approx(before[:, joints].sum(), rel=0.3)


def test_exact_initial_states_leave_nothing_to_gain(truth):
    """Without noise the elimination takes little: it is no licence to ignore what parameters say."""
    scenario = push_cube()
    every = cut(scenario, recording(6, steps=60, noise=0.0).episodes, STEPS, stride=6)
    windows = choose(scenario, every, 40, np.random.default_rng(0))
    with MujocoSimulator(scenario, 1) as simulator:
        loss = Loss(scenario, simulator, windows, start_prior(scenario))
        marginal = with_initial_states(loss, truth)
        wrong = truth.copy()
        wrong[scenario.space.names.index("actuator_gain")] += 1.0
        rise = [float(each(wrong[None])[0] - each(truth[None])[0]) for each in (loss, marginal)]
    assert rise[1] > 0.25 * rise[0] > 0


@pytest.mark.slow
def test_bias_of_the_estimate_is_added_to_its_uncertainty(loss, truth):
    """An estimate biased by initial-state errors moves once they are eliminated, and its interval reaches as far."""
    loss = loss.thinned(24)
    biased = truth.copy()
    biased[push_cube().space.names.index("contact_softness")] += 1.0
    found = marginalise_initial_states(loss, biased, 0, ignore)
    away = np.abs(biased - truth)[-1]
    assert found.estimate_bias[-1] < -0.2 * away, "back towards the truth"
    marginal = found.posterior(biased, exact=False, seed=0)
    units = push_cube().space.prior_std
    assert (marginal.data_std >= np.abs(found.estimate_bias) * units - 1e-12).all()


def test_marginalised_losses_can_be_shortened_and_thinned(marginal, truth):
    few = marginal.thinned(7)
    rows = np.linspace(0, len(marginal.windows) - 1, 7).round().astype(int)
    np.testing.assert_allclose(few.misfits(truth[None])[0], marginal.misfits(truth[None])[0][rows], atol=1e-9)
    half = marginal.shortened(STEPS // 2)
    assert half.misfits(truth[None]).shape[2] == STEPS // 2 * 12
    assert np.isfinite(half(truth[None])).all()


def test_a_biased_estimate_is_as_uncertain_as_its_bias(marginal, truth):
    rng = np.random.default_rng(0)
    sharp = Linearisation(
        truth, marginal.misfits(truth[None])[0], 3.0 * rng.normal(size=(*marginal.misfits(truth[None])[0].shape, 7))
    )
    bias = np.array([0.5, 0, 0, 0, 0, 0, -0.3])
    systematic = np.outer(bias, bias)
    still, shifted = (posterior(marginal, truth, sharp, each) for each in (0.0 * systematic, systematic))
    units = push_cube().space.prior_std
    np.testing.assert_allclose(shifted.covariance - still.covariance, np.outer(bias * units, bias * units), atol=1e-9)
    np.testing.assert_allclose(
        np.square(shifted.data_std) - np.square(still.data_std), np.square(bias * units), atol=1e-9
    )


def test_exact_slopes_are_those_of_the_marginal_loss(marginal, truth):
    """The drive acts smoothly on the arm: there exact sensitivities and wide differences agree."""
    slope = exact_linearisation(marginal, truth)
    np.testing.assert_array_equal(slope.misfits, marginal.misfits(truth[None])[0])
    column = push_cube().space.names.index("actuator_gain")
    step = 0.02 * np.eye(7)[column]
    ahead, behind = marginal.misfits(np.stack([truth + step, truth - step]))
    joints = slice(0, 6 * STEPS)
    pair = ((ahead - behind)[:, joints] / 0.04, slope.sensitivities[:, joints, column])
    assert np.corrcoef(*(each.ravel() for each in pair))[0, 1] > 0.99


@pytest.mark.parametrize("step_s", [0.05, 0.002])
def test_noise_left_by_smoothing(step_s):
    """Straight lines with noise: velocities come out as wrong as was said, positions better."""
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><joint type='slide'/><geom size='.1'/></body></worldbody></mujoco>"
    )
    time_s = step_s * np.arange(4000)
    noise = np.array([0.001])
    rng = np.random.default_rng(0)
    measured = (0.5 * time_s + rng.normal(0.0, noise, len(time_s)))[:, None]
    qpos, qvel = smooth(model, time_s, measured, noise)
    expected = noise_left(noise, step_s)
    assert np.median(np.abs(qvel - 0.5)) / 0.6745 == pytest.approx(expected[1], rel=0.25)
    assert (qpos[:, 0] - 0.5 * time_s).std() < expected[0]


def test_coordinates_that_nobody_observes_are_not_wrong():
    """They begin at the reference value, and have no noise."""
    scenario = push_cube()
    assert (scenario.start_std > 0).all()
    blind = replace(scenario, observed=scenario.observed[:1])
    assert list(np.flatnonzero(blind.start_std)) == [*range(6, 12), *range(18, 24)]
