"""What sessions of one robot tell together, and what has changed since the earlier ones."""

from dataclasses import replace

import numpy as np
import pytest

from rsr.calibration import Effort, calibrator, next_prior, start_prior
from rsr.calibration.fitting import _Outcome, _with_earlier
from rsr.calibration.interface import Knowledge
from rsr.calibration.problem import HeldOut
from rsr.calibration.uncertainty.earlier_sessions import CHANGED, change_warnings, changes, joined, without
from rsr.calibration.uncertainty.identifiability import Posterior, prior_only
from rsr.common.progress import ignore
from rsr.config import TuneConfig
from rsr.scenarios import load_scenario
from rsr.simulators import MujocoSimulator
from tests.calibration.test_right_model import TRUTH, recorded
from tests.own_arm import write_own_arm
from tests.push_samples import push_cube

SPACE = push_cube().space
PRIOR = start_prior(push_cube())
UNITS = PRIOR.std


def session(std: float, shared: float = 0.0) -> Posterior:
    """A session that tells all parameters equally well, in units of the prior; its scatter and its model error."""
    told = np.diag(np.square(std * UNITS))
    return Posterior(
        told + np.diag(np.square(shared * UNITS)), std * UNITS, 20, shared=np.diag(np.square(shared * UNITS))
    )


def earlier(std: float, mean: float, shared: float = 0.0) -> Knowledge:
    one = session(std, shared)
    assert one.shared is not None
    return Knowledge(PRIOR.mean + mean * UNITS, one.covariance, one.shared, one.data_std, one.degrees)


def std_of(found: Posterior) -> np.ndarray:
    return np.sqrt(np.diag(found.covariance)) / UNITS


def test_two_equal_sessions_are_averaged_and_know_more():
    mean, both = joined(earlier(0.1, 1.0), PRIOR, PRIOR.mean + 1.1 * UNITS, session(0.1))
    np.testing.assert_allclose((mean - PRIOR.mean) / UNITS, 1.05, atol=0.01)
    np.testing.assert_allclose(std_of(both), 0.1 / np.sqrt(2.0), rtol=0.01)


def test_shared_model_error_does_not_average_out():
    _, both = joined(earlier(0.1, 1.0, 0.3), PRIOR, PRIOR.mean + 1.0 * UNITS, session(0.1, 0.3))
    assert both.shared is not None
    np.testing.assert_allclose(np.sqrt(np.diag(both.shared)) / UNITS, 0.3, rtol=0.06)
    assert (std_of(both) > 0.3 * 0.94).all()


def test_directions_that_the_model_s_error_seems_to_spare_are_not_trusted_together():
    """Each session's error lies along another diagonal: by their narrow directions both would be known exactly."""
    size, blocks = 0.36, ([[1.0, 0.99], [0.99, 1.0]], [[1.0, -0.99], [-0.99, 1.0]])
    shared = [np.zeros((len(UNITS), len(UNITS))) for _ in blocks]
    for each, block in zip(shared, blocks, strict=True):
        each[:2, :2] = size * np.array(block)
        each *= np.outer(UNITS, UNITS)
    first, second = earlier(0.1, 1.0), session(0.1)
    known = replace(first, covariance=first.covariance + shared[0], shared=shared[0])
    _, both = joined(
        known, PRIOR, PRIOR.mean + UNITS, replace(second, covariance=second.covariance + shared[1], shared=shared[1])
    )
    assert (std_of(both)[:2] > 0.5 * np.sqrt(size)).all(), "0.1, where sessions were weighed by whole covariances"


def test_a_session_that_tells_nothing_changes_nothing():
    known = earlier(0.1, 1.5)
    mean, both = joined(known, PRIOR, PRIOR.mean, session(1.0))
    np.testing.assert_allclose(mean, known.mean)
    np.testing.assert_allclose(std_of(both), 0.1)
    np.testing.assert_allclose(both.data_std, 0.1 * UNITS)
    # Its estimate is the prior's mean whatever the truth is, so it contradicts nothing.
    assert changes(SPACE, earlier(0.01, 4.0), PRIOR, PRIOR.mean, session(1.0)) == {}


@pytest.mark.parametrize("std", [0.1, 0.5, 0.8, 0.95])
def test_sessions_that_agree_lead_nowhere_else_and_know_more_each_time(std):
    known = earlier(std, 1.0)
    for _ in range(8):
        mean, both = joined(known, PRIOR, PRIOR.mean + 1.0 * UNITS, session(std))
        np.testing.assert_allclose((mean - PRIOR.mean) / UNITS, 1.0, atol=1e-9)
        assert (np.diag(both.covariance) <= np.diag(known.covariance) * (1 + 1e-9)).all()
        known = replace(known, mean=mean, covariance=both.covariance)


def test_sessions_that_disagree_widen_each_other():
    mean, both = joined(earlier(0.1, 0.0), PRIOR, PRIOR.mean + 1.0 * UNITS, session(0.1))
    between = (mean - PRIOR.mean) / UNITS
    assert ((between > 0.2) & (between < 0.8)).all()
    assert (std_of(both) > 0.4).all(), "it reaches to both"


def test_a_parameter_that_changed_is_named_and_forgotten():
    known, far = earlier(0.1, 0.0), np.zeros(7)
    far[1] = 1.5 * CHANGED * np.hypot(0.1, 0.1)
    mean = PRIOR.mean + far * UNITS
    changed = changes(SPACE, known, PRIOR, mean, session(0.1))
    now = 0.5 * np.exp(far[1] * UNITS[1])
    assert changed == {"finger_friction": f"0.5 before, {now:.4g} now, 6.0 standard deviations apart"}
    assert change_warnings(changed)[0].startswith("finger_friction has changed since earlier sessions (0.5 before, ")
    assert changes(SPACE, known, PRIOR, PRIOR.mean + 0.5 * far * UNITS, session(0.1)) == {}
    few = replace(session(0.1), degrees=2)
    assert changes(SPACE, known, PRIOR, mean, few) == {}, "two or three episodes hardly know how far they scatter"
    both, found = joined(without(known, PRIOR, SPACE, changed), PRIOR, mean, session(0.1))
    np.testing.assert_allclose((both - PRIOR.mean) / UNITS, far, atol=0.02)
    np.testing.assert_allclose(std_of(found)[1], 0.1, rtol=0.02)
    np.testing.assert_allclose(std_of(found)[0], 0.1 / np.sqrt(2.0), rtol=0.02)


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    own = load_scenario(str(write_own_arm(tmp_path_factory.mktemp("own"))))
    return replace(own, other_channels=tuple(each for each in own.other_channels if each.name == own.command))


@pytest.mark.slow
def test_three_sessions_of_a_simulated_arm_and_a_change_before_the_third(arm):
    fitting = calibrator(TuneConfig(method="cmaes", fit_episodes=4), Effort(budget=120, max_windows=32))
    prior, fits = start_prior(arm), []
    with MujocoSimulator(arm, threads=1) as simulator:
        for number, gain in enumerate((1.0, 1.0, 1.3)):
            recording = recorded(arm, simulator, gain=gain * TRUTH["gain"], seed=number)
            fits.append(fitting.fit(arm, (recording,), prior, number, ignore))
            prior = next_prior(arm, fits[-1])
    widths = [np.sqrt(np.diag(each.covariance)) for each in fits]
    assert (widths[1] <= widths[0] * 1.2).all()
    assert [fits[1].estimates[name].verdict for name in TRUTH] == ["identified"] * len(TRUTH)
    assert not any("has changed" in each for each in fits[1].warnings)
    (warning,) = [each for each in fits[2].warnings if "has changed" in each]
    assert warning.startswith("gain has changed since earlier sessions (0.8")
    gain = fits[2].estimates["gain"]
    assert gain.lower <= 1.3 * TRUTH["gain"] <= gain.upper


@pytest.fixture(scope="module")
def judges(arm):
    """Sixteen runs of the simulated arm that no fit sees."""
    with MujocoSimulator(arm, threads=1) as simulator:
        episodes = [each for seed in (10, 11) for each in recorded(arm, simulator, seed=seed).episodes]
        yield HeldOut(arm, simulator, episodes, (), tuple(range(len(episodes))))


def arms(judges: HeldOut, std: float, **values: float) -> tuple[Knowledge, _Outcome]:
    """What the truth's values were known to, and a session's own fit that says something else of them."""
    space = judges.scenario.space
    truth = space.to_coordinates(space.vector(TRUTH))
    own = Posterior(std**2 * np.eye(2), np.full(2, std), 20)
    values_now = space.vector({**TRUTH, **values})
    replays = judges.replays(values_now)
    known = Knowledge(truth, 0.1**2 * np.eye(2), np.zeros((2, 2)), np.full(2, 0.1), 20)
    return known, _Outcome(values_now, own, "converged", replays, replays, np.zeros((0, 2)))


def test_a_session_that_predicts_worse_leaves_the_values_and_says_so(judges):
    known, outcome = arms(judges, 0.2, gain=1.2)
    found = _with_earlier(outcome, start_prior(judges.scenario), known, judges)
    assert found.status == "no improvement"
    assert judges.scenario.space.mapping(found.values) == pytest.approx(TRUTH)
    assert set(found.rejected) == set(TRUTH)
    assert found.judged.startswith("no improvement: the fit predicts unseen episodes worse (")
    assert "so the values of earlier sessions were kept" in found.judged
    np.testing.assert_array_equal(found.posterior.covariance, known.covariance)
    np.testing.assert_array_equal(found.posterior.data_std, known.data_std)


def test_a_session_in_which_nothing_moves_changes_nothing(judges):
    known, outcome = arms(judges, 0.2)
    space, prior = judges.scenario.space, start_prior(judges.scenario)
    nominal = replace(outcome, values=space.nominal, posterior=prior_only(space, prior.std), status="no improvement")
    found = _with_earlier(nominal, prior, known, judges)
    assert space.mapping(found.values) == pytest.approx(TRUTH)
    np.testing.assert_allclose(found.posterior.covariance, known.covariance, atol=1e-12)
    assert (found.judged, found.rejected) == ("", {})


def test_a_changed_parameter_is_taken_only_if_that_predicts(judges):
    known, outcome = arms(judges, 0.05, gain=1.5)
    found = _with_earlier(outcome, start_prior(judges.scenario), known, judges)
    assert found.status == "no improvement", "these runs were recorded with the old gain"
    assert judges.scenario.space.mapping(found.values) == pytest.approx(TRUTH)
    assert not any("has changed" in each for each in found.warnings)
