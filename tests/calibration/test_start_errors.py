"""Windows begin in measured states: what their errors explain is no evidence about the parameters."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from rsr.calibration import start_prior
from rsr.calibration.identifiability import posterior
from rsr.calibration.loss import Loss
from rsr.calibration.nuisance import StartSlopes
from rsr.calibration.refine import Slope
from rsr.calibration.sensitivity import exact_slope
from rsr.calibration.starts import free_of_starts, with_start_errors
from rsr.calibration.windows import choose, cut
from rsr.progress import ignore
from rsr.scenarios.smoothing import noise_left, smooth
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
def freed(loss, truth):
    return with_start_errors(loss, truth)


def random_slopes(rng: np.random.Generator) -> StartSlopes:
    return StartSlopes(rng.normal(size=(5, 4 * 6, 3)), (2, 3, 1), noise=0.4)


def test_what_is_left_is_what_the_most_probable_error_leaves():
    """The least of misfit and the error's own improbability, in closed form, against least squares."""
    rng = np.random.default_rng(0)
    slopes, scaled = random_slopes(rng), rng.normal(size=(2, 5, 24))
    left = np.square(slopes.removed(scaled)).sum(axis=2)
    for k, w in np.ndindex(2, 5):
        rows = np.concatenate([slopes.slopes[w], slopes.noise * np.eye(3)])
        wanted = np.concatenate([scaled[k, w], np.zeros(3)])
        assert left[k, w] == pytest.approx(np.linalg.lstsq(rows, wanted, rcond=None)[1][0], rel=1e-9)


def test_shorter_windows_and_fewer_of_them():
    rng = np.random.default_rng(1)
    slopes = random_slopes(rng)
    values = rng.normal(size=(5, 4, 6))
    flat = np.concatenate([values[:, :, a:b].reshape(5, -1) for a, b in ((0, 2), (2, 5), (5, 6))], axis=1)
    short = np.concatenate([values[:, :2, a:b].reshape(5, -1) for a, b in ((0, 2), (2, 5), (5, 6))], axis=1)
    whole = StartSlopes(flat[..., None], slopes.widths, slopes.noise)
    np.testing.assert_array_equal(whole.shortened(2).slopes[..., 0], short)
    chosen = np.array([3, 0])
    scaled = rng.normal(size=(1, 5, 24))
    np.testing.assert_allclose(
        slopes.take(chosen).removed(scaled[:, chosen]), slopes.removed(scaled)[:, chosen], atol=1e-12
    )


def test_cubes_that_begin_inside_the_table_no_longer_count(loss, freed, truth):
    """At the true parameters most of the cube's misfit came from how windows begin, and nothing of the arm's did."""
    joints = slice(0, 6 * STEPS)
    cube = slice(6 * STEPS, None)
    before, after = (np.square(each.misfits(truth[None])[0]) for each in (loss, freed))
    assert after[:, cube].sum() < 0.6 * before[:, cube].sum()
    assert after[:, joints].sum() == pytest.approx(before[:, joints].sum(), rel=0.3)


def test_exact_starts_leave_nothing_to_gain(truth):
    """Without noise the elimination takes little: it is no licence to ignore what parameters say."""
    scenario = push_cube()
    every = cut(scenario, recording(6, steps=60, noise=0.0).episodes, STEPS, stride=6)
    windows = choose(scenario, every, 40, np.random.default_rng(0))
    with MujocoSimulator(scenario, 1) as simulator:
        loss = Loss(scenario, simulator, windows, start_prior(scenario))
        freed = with_start_errors(loss, truth)
        wrong = truth.copy()
        wrong[scenario.space.names.index("actuator_gain")] += 1.0
        rise = [float(each(wrong[None])[0] - each(truth[None])[0]) for each in (loss, freed)]
    assert rise[1] > 0.25 * rise[0] > 0


def test_how_far_starts_pull_is_what_becomes_uncertain(loss, truth):
    """An estimate that suits kicked cubes moves once kicks are explained, and its interval reaches as far."""
    loss = loss.thinned(24)
    pulled = truth.copy()
    pulled[push_cube().space.names.index("contact_softness")] += 1.0
    found = free_of_starts(loss, pulled, 0, ignore)
    away = np.abs(pulled - truth)[-1]
    assert found.pull[-1] < -0.2 * away, "back towards the truth"
    known = found.posterior(pulled, exact=False, seed=0)
    units = push_cube().space.prior_std
    assert (known.data_std >= np.abs(found.pull) * units - 1e-12).all()


def test_freed_losses_shorten_thin_and_travel(freed, truth):
    few = freed.thinned(7)
    rows = np.linspace(0, len(freed.windows) - 1, 7).round().astype(int)
    np.testing.assert_allclose(few.misfits(truth[None])[0], freed.misfits(truth[None])[0][rows], atol=1e-9)
    half = freed.shortened(STEPS // 2)
    assert half.misfits(truth[None]).shape[2] == STEPS // 2 * 12
    assert np.isfinite(half(truth[None])).all()


def test_an_estimate_that_was_pulled_is_as_uncertain_as_it_was_pulled(freed, truth):
    rng = np.random.default_rng(0)
    sharp = Slope(
        truth, freed.misfits(truth[None])[0], 3.0 * rng.normal(size=(*freed.misfits(truth[None])[0].shape, 7))
    )
    pull = np.array([0.5, 0, 0, 0, 0, 0, -0.3])
    still, shifted = (posterior(freed, truth, sharp, each) for each in (np.zeros(7), pull))
    units = push_cube().space.prior_std
    np.testing.assert_allclose(shifted.covariance - still.covariance, np.outer(pull * units, pull * units), atol=1e-9)
    np.testing.assert_allclose(
        np.square(shifted.data_std) - np.square(still.data_std), np.square(pull * units), atol=1e-9
    )


def test_exact_slopes_are_those_of_the_freed_loss(freed, truth):
    """The drive acts smoothly on the arm: there exact sensitivities and wide differences agree."""
    slope = exact_slope(freed, truth)
    np.testing.assert_array_equal(slope.misfits, freed.misfits(truth[None])[0])
    column = push_cube().space.names.index("actuator_gain")
    step = 0.02 * np.eye(7)[column]
    ahead, behind = freed.misfits(np.stack([truth + step, truth - step]))
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
    """They begin at the reference value, and no noise is known of them."""
    scenario = push_cube()
    assert (scenario.start_std > 0).all()
    blind = replace(scenario, observed=scenario.observed[:1])
    assert list(np.flatnonzero(blind.start_std)) == [*range(6, 12), *range(18, 24)]
