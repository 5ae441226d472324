"""MJX as a baseline of CLASH: the strikes of MuJoCo where its meshes allow, a named refusal elsewhere."""

import numpy as np
import pytest

from benchmarks.baselines.strikes.mjx import MjxCollider, mjx_base
from rsr.common.errors import CalibrationError
from rsr.learned.clash import relative_errors
from rsr.realities.strikes import StrikeStandIn
from rsr.scenarios.built_in.strike import load_shape, sample_strikes
from rsr.simulators.strikes import Collider

PARAMS = np.array([0.25, 0.3, 0.2, 1.0])


def test_a_block_of_many_corners_is_refused_by_name():
    with pytest.raises(
        CalibrationError, match="got 'semi_cylinder', whose upper face has 49 corners; expected a block"
    ):
        MjxCollider(load_shape("semi_cylinder"))


@pytest.mark.slow
def test_its_strikes_are_those_of_mujoco(square):
    strikes = sample_strikes(square, 12, np.random.default_rng(0))
    expected = Collider(square)(strikes, np.tile(PARAMS, (12, 1))).after
    errors = relative_errors(MjxCollider(square)(strikes, PARAMS), expected, square.gyration_m)
    assert np.median(errors) < 0.03
    assert errors.max() < 0.15, "the two clip faces differently"


@pytest.mark.slow
def test_fitted_to_ten_strikes_it_predicts_others(square):
    recorded = StrikeStandIn(square, 2).record(40)
    fitted = mjx_base(square, recorded.take(slice(0, 10)), 0.3)
    unseen = recorded.take(slice(10, None))
    errors = relative_errors(fitted(unseen.strikes), unseen.after, square.gyration_m)
    assert (errors < 0.1).mean() > 0.3
