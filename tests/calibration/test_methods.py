"""`cmaes` and `sysid` keep the contract of calibrators; unknown ones and unfit sessions are refused."""

from dataclasses import replace

import numpy as np
import pytest

from rsr.calibration import METHODS, Prior, calibrator, start_prior
from rsr.common.errors import CalibrationError, ConfigError, ScenarioError
from rsr.common.progress import ignore
from rsr.config import TuneConfig
from tests.calibration.contract import QUICK, CalibratorContract
from tests.calibration.recordings import recording
from tests.push_samples import push_cube


class TestCmaes(CalibratorContract):
    method = "cmaes"


@pytest.mark.slow
class TestSysid(CalibratorContract):
    method = "sysid"


def fit(sessions, prior=None):
    fitting = calibrator(TuneConfig(method="cmaes", fit_episodes=4), QUICK)
    return fitting.fit(push_cube(), sessions, prior or start_prior(push_cube()), 0, ignore)


def test_unknown_method():
    with pytest.raises(ConfigError) as error:
        calibrator(TuneConfig(method="annealing"))
    assert str(error.value) == (
        f"tune.method: got calibration method 'annealing'; expected one of {', '.join(METHODS)}. "
        "Correct it in params.yaml or on the command line."
    )


def test_session_without_episodes():
    with pytest.raises(CalibrationError) as error:
        fit((replace(recording(), episodes=()),))
    assert str(error.value) == (
        "sessions to calibrate on: got no episode; expected at least 2 episodes of different trials: one to fit, one "
        "to hold out. Record more episodes, or name a further session."
    )


def test_session_of_another_scenario():
    stranger = replace(recording(), card=replace(recording().card, scenario="cube_toss"))
    with pytest.raises(CalibrationError) as error:
        fit((stranger,))
    assert str(error.value) == (
        "session session-001: got a session of scenario cube_toss; expected one of scenario push_cube. "
        "Name the scenario that it was recorded for."
    )


def test_prior_outside_the_bounds():
    prior = start_prior(push_cube())
    mean = prior.mean.copy()
    mean[0] = np.log(2.0)
    with pytest.raises(ScenarioError) as error:
        fit((recording(),), Prior(mean, prior.std))
    assert str(error.value) == (
        "parameters: got table_friction = 2 1; expected a value in [0.02, 1.5]. "
        "Correct the value, or widen the bounds in the scenario's YAML file if they are wrong."
    )
