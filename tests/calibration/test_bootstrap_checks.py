"""Refits to resampled episodes: as wide as the interval where it is right, and they widen it where it is not."""

from __future__ import annotations

import numpy as np
import pytest

from rsr.calibration import Effort, calibrator, start_prior
from rsr.calibration.problem.loss import Loss
from rsr.calibration.problem.windows import choose, cut
from rsr.calibration.uncertainty import bootstrap
from rsr.calibration.uncertainty.bootstrap import refits
from rsr.common.progress import ignore
from rsr.config import TuneConfig
from rsr.simulators import MujocoSimulator
from tests.calibration.recordings import TRUTH, recording
from tests.push_samples import push_cube


@pytest.fixture(scope="module")
def loss():
    scenario = push_cube()
    windows = choose(scenario, cut(scenario, recording().episodes, 6, 4), 10, np.random.default_rng(0))
    with MujocoSimulator(scenario) as simulator:
        yield Loss(scenario, simulator, windows, start_prior(scenario))


def test_refits_scatter_around_the_point_and_repeat(loss):
    point = loss.points(push_cube().space.vector(TRUTH))
    found = refits(loss, point, 3, 0, ignore)
    np.testing.assert_array_equal(found[:1], refits(loss, point, 1, 0, ignore))
    assert found.shape == (3, len(point))
    lower, upper = loss.bounds.T
    assert ((found >= lower - 1e-9) & (found <= upper + 1e-9)).all()
    delay = push_cube().space.names.index("control_delay")
    assert np.abs(found[:, delay] - point[delay]).max() < 0.2, "well identified whatever is drawn"
    assert (found.std(axis=0) > 0).all()


@pytest.mark.slow
def test_bootstrap_widens_and_is_stored():
    settings = TuneConfig(method="cmaes", fit_episodes=6, bootstrap=2)
    effort = Effort(budget=24, window_steps=6, max_windows=8)
    plain, checked = (
        calibrator(each, effort).fit(push_cube(), (recording(),), start_prior(push_cube()), 0, ignore)
        for each in (settings.model_copy(update={"bootstrap": 0}), settings)
    )
    assert plain.checks.bootstrap == {}
    assert tuple(checked.checks.bootstrap) == push_cube().space.names
    for index, (name, ratio) in enumerate(checked.checks.bootstrap.items()):
        grown = np.sqrt(checked.covariance[index, index] / plain.covariance[index, index])
        np.testing.assert_allclose(grown, max(1.0, ratio), err_msg=name)
    np.testing.assert_array_equal(plain.vector(), checked.vector())


def test_disagreement_is_warned_of():
    said = bootstrap.warnings({"mass": 2.0, "friction": 1.1}, {"mass": 0.5, "friction": -4.0})
    assert said == [
        "mass: refits to resampled episodes scatter 2.0 times wider than the interval said, which was widened to them. "
        "Episodes disagree: record more of them.",
        "friction moves by 4.0 standard deviations if windows are half as long: the model lacks an effect that grows "
        "with time, or one that matters at first. Look at the replays before you trust it.",
    ]
