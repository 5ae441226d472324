"""Domain randomisation: parameters drawn as a calibration leaves them open."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rsr.calibration import draw_parameters, load_calibration, save_calibration, start_calibration
from rsr.common.errors import CalibrationError
from tests.push_samples import push_cube

COUNT = 4000


def narrow(share: float = 0.1):
    """A calibration whose standard deviations are a share of the prior's, two of its parameters correlated."""
    start = start_calibration(push_cube())
    covariance = share**2 * start.covariance
    covariance[0, 2] = covariance[2, 0] = 0.8 * np.sqrt(covariance[0, 0] * covariance[2, 2])
    return replace(start, covariance=covariance)


def coordinates(values: np.ndarray) -> np.ndarray:
    return push_cube().space.to_coordinates(values)


def test_draws_follow_the_posterior():
    calibration = narrow()
    drawn = coordinates(draw_parameters(push_cube(), calibration, COUNT, np.random.default_rng(0)))
    free = [0, 1, 2, 3, 4]  # the others' nominal lies on a bound, which cuts their draws
    mean = coordinates(calibration.vector())
    std = np.sqrt(np.diag(calibration.covariance))
    np.testing.assert_array_less(np.abs(drawn.mean(0) - mean)[free], 5 * std[free] / np.sqrt(COUNT))
    np.testing.assert_allclose(drawn.std(0)[free], std[free], rtol=0.05)
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 2])[0, 1] - 0.8) < 0.03


def test_draws_stay_within_the_bounds():
    space = push_cube().space
    drawn = draw_parameters(push_cube(), start_calibration(push_cube()), 500, np.random.default_rng(1), factor=3.0)
    assert (drawn >= space.lower).all()
    assert (drawn <= space.upper).all()
    assert drawn[:, space.names.index("control_delay")].std() > 0.01


def test_factor_stretches_and_zero_draws_the_estimate():
    calibration = narrow()
    estimate = draw_parameters(push_cube(), calibration, 5, np.random.default_rng(2), factor=0.0)
    np.testing.assert_allclose(estimate, np.tile(calibration.vector(), (5, 1)))
    spread = [
        coordinates(draw_parameters(push_cube(), calibration, COUNT, np.random.default_rng(3), factor))[:, 0].std()
        for factor in (1.0, 2.0)
    ]
    np.testing.assert_allclose(spread[1] / spread[0], 2.0, rtol=0.05)


def test_equal_seeds_equal_draws_and_a_covariance_may_be_singular():
    calibration = replace(narrow(), covariance=np.zeros_like(narrow().covariance))
    np.testing.assert_allclose(
        draw_parameters(push_cube(), calibration, 2, np.random.default_rng(4)), np.tile(calibration.vector(), (2, 1))
    )
    first, again = (draw_parameters(push_cube(), narrow(), 7, np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def bimodal():
    """A posterior that no Gaussian describes: table friction is 0.2 or 1.0."""
    start = start_calibration(push_cube())
    modes = coordinates(np.array([push_cube().space.vector({"table_friction": value}) for value in (0.2, 1.0)]))
    return replace(start, samples=np.repeat(modes, 5, axis=0))


def test_samples_are_drawn_where_there_are_any():
    drawn = draw_parameters(push_cube(), bimodal(), 200, np.random.default_rng(0))[:, 0]
    near = [np.isclose(drawn, value) for value in (0.2, 1.0)]
    assert (near[0] | near[1]).all()
    assert 60 < near[0].sum() < 140


def test_factor_scales_samples_around_the_estimate():
    drawn = draw_parameters(push_cube(), bimodal(), 10, np.random.default_rng(0), factor=0.0)
    np.testing.assert_allclose(drawn, np.tile(push_cube().space.nominal, (10, 1)))


def test_samples_survive_storage_and_do_not_outlive_their_calibration(tmp_path):
    save_calibration(bimodal(), tmp_path)
    np.testing.assert_array_equal(load_calibration(tmp_path).samples, bimodal().samples)
    save_calibration(start_calibration(push_cube()), tmp_path)
    assert load_calibration(tmp_path).samples is None


def test_damaged_samples_are_named(tmp_path):
    save_calibration(bimodal(), tmp_path)
    (tmp_path / "posterior.npz").write_bytes(b"no archive")
    with pytest.raises(CalibrationError, match=r"posterior\.npz: got a damaged file"):
        load_calibration(tmp_path)


def test_samples_of_another_scenario_are_refused():
    wrong = replace(start_calibration(push_cube()), samples=np.zeros((10, 3)))
    with pytest.raises(CalibrationError, match=r"got posterior samples of shape \(10, 3\); expected \[N, 7\]"):
        draw_parameters(push_cube(), wrong, 2, np.random.default_rng(0))
