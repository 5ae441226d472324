"""`cmaes` and `sysid` keep the contract of calibrators; unknown ones and unfit sessions are refused."""

from dataclasses import replace

import numpy as np
import pytest

from rsr.calibration import METHODS, Prior, calibrator, next_prior, start_prior
from rsr.calibration.checks.drift import find_drift
from rsr.calibration.problem import channel_rms, replay
from rsr.common.errors import CalibrationError, ConfigError, ScenarioError
from rsr.common.progress import ignore
from rsr.config import TuneConfig
from rsr.simulators import MujocoSimulator
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


def test_few_recordings_are_all_fitted_and_judged_in_turn():
    """The gap is that of fits which did not see what they are judged on, not that of the estimate, which saw all."""
    scenario, session = push_cube(), recording(episodes=6, steps=50)
    found = calibrator(TuneConfig(method="cmaes"), QUICK).fit(scenario, (session,), start_prior(scenario), 0, ignore)
    evidence = found.evidence
    assert evidence.fitted == evidence.held_out == tuple(range(6))
    assert evidence.crossed
    assert evidence.cross_validated is not None
    assert found.replays is not None
    np.testing.assert_array_equal(found.replays.episode, range(6))
    with MujocoSimulator(scenario) as simulator:
        seen = replay(scenario, simulator, session.episodes, found.vector())
    assert channel_rms(scenario, session.episodes, seen)["block_position"] < evidence.gap_after < evidence.gap_before
    then = find_drift(scenario, found, session.episodes, session.episodes, seed=0).gap_then
    assert then == pytest.approx(evidence.gap_after, rel=0.2), "what was seen is no measure of what is new"


def test_with_what_earlier_sessions_say_some_always_judge():
    first = fit((recording(episodes=8, steps=50),))
    prior = next_prior(push_cube(), first)
    again = calibrator(TuneConfig(method="cmaes"), QUICK).fit(push_cube(), (recording(6, 50, 1),), prior, 0, ignore)
    assert not again.evidence.crossed
    assert (len(again.evidence.fitted), len(again.evidence.held_out)) == (3, 3)


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
