"""The loss: zero where the simulator is right, batched as one by one, robust, finite, and its slopes."""

from dataclasses import replace

import numpy as np
import pytest

from rsr.calibration import Prior, start_prior
from rsr.calibration.problem.loss import Loss, robust
from rsr.calibration.problem.model_error import ROBUST_SCALES, assumed_scales
from rsr.calibration.problem.sensitivity import jacobian
from rsr.calibration.problem.windows import Windows
from rsr.calibration.search.refinement import linearise, refine
from rsr.common.progress import ignore
from rsr.simulators import MujocoSimulator
from tests.calibration.recordings import TRUTH
from tests.push_samples import push_cube, pushes

STEPS = 8


@pytest.fixture(scope="module")
def simulator():
    with MujocoSimulator(push_cube()) as simulator:
        yield simulator


@pytest.fixture(scope="module")
def loss(simulator):
    """A loss whose windows the simulator itself made: starts are exact and nothing is noisy."""
    scenario, history = push_cube(), push_cube().history_steps
    starts, commands = pushes(count=6, steps=40)
    truth = scenario.space.vector(TRUTH)
    states = simulator.rollout(starts, commands, truth)
    rows = np.arange(8, 32, STEPS)
    cut = [commands[:, row : row + history + STEPS] for row in rows]
    begun = np.concatenate([states[:, row] for row in rows])
    sent = np.concatenate(cut)
    real = scenario.measure(simulator.rollout(begun, sent, truth)[:, 1:])
    windows = Windows(begun, sent, real, np.tile(np.arange(6), len(rows)), np.repeat(rows, 6))
    return Loss(scenario, simulator, windows, start_prior(scenario))


@pytest.fixture(scope="module")
def truth(loss):
    return loss.points(push_cube().space.vector(TRUTH))


def test_data_misfit_vanishes_at_the_truth(loss, truth):
    assert np.abs(loss.misfits(truth[None])).max() < 1e-9
    np.testing.assert_allclose(loss(truth[None]), 0.5 * np.sum(truth**2))


def test_population_equals_one_by_one(loss, truth):
    rng = np.random.default_rng(0)
    points = np.clip(truth + 0.3 * rng.normal(size=(5, len(truth))), *loss.bounds.T)
    np.testing.assert_array_equal(loss(points), [loss(point[None])[0] for point in points])
    np.testing.assert_array_equal(loss.residuals(points)[3], loss.residuals(points[3:4])[0])


def test_a_few_windows_are_spread_over_all(loss, truth):
    few = loss.thinned(5)
    assert len(few.windows) == 5
    assert set(few.windows.first_row) == set(loss.windows.first_row)
    rows = np.linspace(0, len(loss.windows) - 1, 5).round().astype(int)
    point = 0.5 * truth[None]
    np.testing.assert_array_equal(few.misfits(point)[0], loss.misfits(point)[0][rows])
    assert loss.thinned(10**6) is loss


def test_points_and_values_are_inverse_and_bounded(loss):
    space = push_cube().space
    np.testing.assert_allclose(loss.values(np.zeros(len(space))), space.nominal)
    values = space.vector(TRUTH)
    np.testing.assert_allclose(loss.values(loss.points(values)), values)
    np.testing.assert_array_equal(loss.values(loss.bounds[:, 0] - 1e-9), space.lower)
    np.testing.assert_array_equal(loss.values(loss.bounds[:, 1] + 1e-9), space.upper)


def test_prior_counts_distance_in_its_own_units(loss, truth):
    std = push_cube().space.prior_std
    mean = push_cube().space.to_coordinates(push_cube().space.vector(TRUTH))
    informed = replace(loss, prior=Prior(mean, std / 2))
    away = np.zeros(len(std))
    away[0] = 1.0
    np.testing.assert_allclose(informed(np.zeros((1, len(std)))), 0.0, atol=1e-12)
    np.testing.assert_allclose(informed.residuals(away[None])[0, -len(std) :], away)


def test_robust_residuals_are_a_pseudo_huber_loss():
    scaled = np.linspace(-20, 20, 81)
    expected = ROBUST_SCALES**2 * (np.sqrt(1 + np.square(scaled / ROBUST_SCALES)) - 1)
    np.testing.assert_allclose(0.5 * np.square(robust(scaled)), expected, rtol=1e-12)
    assert (np.diff(robust(scaled)) > 0).all()
    assert np.isfinite(robust(np.array([np.nan, np.inf, -np.inf, 1e300]))).all()


def test_scales_hold_noise_and_model_error():
    scales = assumed_scales(push_cube())
    assert scales["block_position"] == pytest.approx(np.sqrt(10) * push_cube().observed_channel("block_position").noise)


def test_differences_stay_inside_the_bounds(loss):
    """Nominal delay and softness lie on their lower bounds."""
    slopes = jacobian(loss, np.zeros(7), 0.1)
    assert slopes.shape == (len(loss.windows) * STEPS * 12 + 7, 7)
    assert np.isfinite(slopes).all()
    np.testing.assert_allclose(slopes[-7:], np.eye(7), atol=1e-9)


def test_regressed_slope_agrees_with_differences_where_the_loss_is_smooth(loss, truth):
    """The arm's own parameters act smoothly on the arm, whatever the cube does."""
    slope = linearise(loss, truth, np.eye(7) * 0.02**2, np.random.default_rng(0))
    exact = jacobian(loss, truth, 0.02)[:-7].reshape(slope.sensitivities.shape)
    joints = slice(0, 6 * STEPS)
    for name in ("actuator_gain", "control_delay"):
        column = push_cube().space.names.index(name)
        pair = (each[:, joints, column].ravel() for each in (slope.sensitivities, exact))
        assert np.corrcoef(*pair)[0, 1] > 0.95


def test_refining_approaches_the_truth(loss, truth):
    away = np.clip(truth + np.array([0.3, -0.2, 0.3, 0.2, 0.2, -0.3, 0.1]), *loss.bounds.T)
    point, slope = refine(loss, away, 0, ignore)
    assert loss(point[None])[0] < 0.5 * loss(away[None])[0]
    assert (point >= loss.bounds[:, 0]).all()
    assert (point <= loss.bounds[:, 1]).all()
    assert (np.linalg.eigvalsh(slope.precision) >= 1 - 1e-9).all()
