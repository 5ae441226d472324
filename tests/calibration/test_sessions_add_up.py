"""Sessions of an unchanged robot count together; a parameter that changed is named, and begins anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_identifiability import Linear

from rsr.calibration import Effort, Knowledge, Prior, calibrator, next_prior, start_calibration, start_prior
from rsr.calibration.checks.change import changed_parameters
from rsr.calibration.storage import load_calibration, save_calibration
from rsr.calibration.uncertainty.identifiability import Posterior, posterior
from rsr.calibration.uncertainty.knowledge import covariance_of, without
from rsr.config import TuneConfig
from rsr.progress import ignore
from tests.calibration.contract import quick_fit
from tests.calibration.recordings import recording, stillness
from tests.push_samples import push_cube

SPACE = push_cube().space
TRUTH = SPACE.prior_std * np.array([0.5, -0.3, 0.2, 0.0, -0.4, 0.1, 0.3])
"""Distance from nominal, unconstrained coordinates."""
ROWS, EPISODES, STRENGTH = 20, 24, 4.0


def session(seed: int, prior: Prior, truth: np.ndarray) -> Linear:
    """Recordings of a linear robot; points are distances from the prior's mean in its units."""
    rng = np.random.default_rng(seed)
    sensitivities = STRENGTH * rng.normal(size=(EPISODES, ROWS, 7)) / np.sqrt(ROWS)
    away = (truth - (prior.mean - start_prior(push_cube()).mean)) / prior.std
    misfits = rng.normal(size=(EPISODES, ROWS)) - sensitivities @ away
    case = Linear(sensitivities, misfits, np.arange(EPISODES))
    case.prior = prior
    case.slope = replace(case.slope, prior=prior.precision)
    return case


def fitted(case: Linear) -> tuple[np.ndarray, Posterior]:
    """Estimate in coordinates, and posterior."""
    point = case.slope.step()
    return case.prior.mean + case.prior.std * point, posterior(case, point, case.slope, np.zeros(7))


def chain(seed: int, sessions: int) -> list[tuple[np.ndarray, Posterior]]:
    prior, found = start_prior(push_cube()), []
    for number in range(sessions):
        estimate, known = fitted(session(100 * seed + number, prior, TRUTH))
        found.append((estimate, known))
        prior = Prior(estimate, SPACE.prior_std, known.knowledge)
    return found


def test_three_sessions_know_what_one_of_all_their_episodes_knows():
    """Of linear losses the recursion is exact: estimate and precision are those of all episodes at once."""
    start, cases = start_prior(push_cube()), []
    prior = start
    for number in range(3):
        cases.append(session(number, start, TRUTH))
        estimate, known = fitted(session(number, prior, TRUTH))
        prior = Prior(estimate, SPACE.prior_std, known.knowledge)
    joined = [np.concatenate([getattr(each.slope, name) for each in cases]) for name in ("sensitivities", "misfits")]
    case = Linear(*joined, np.arange(3 * EPISODES))
    at_once, whole = fitted(case)
    np.testing.assert_allclose(estimate, at_once, rtol=1e-9)
    np.testing.assert_allclose(known.knowledge.precision, whole.knowledge.precision, rtol=1e-9)
    assert known.knowledge.episodes == 3 * EPISODES
    assert known.degrees == 3 * EPISODES - 1
    # The scatter is estimated from each session's own episodes: alike within chance.
    np.testing.assert_allclose(np.diag(known.covariance), np.diag(whole.covariance), rtol=0.35)


def test_intervals_narrow_with_sessions_and_hold():
    inside, ratios = [], []
    for seed in range(40):
        found = chain(seed, 3)
        widths = [np.sqrt(np.diag(known.covariance)) for _, known in found]
        ratios.append(widths[2] / widths[0])
        inside.append(np.abs(found[2][0] - start_prior(push_cube()).mean - TRUTH) < 1.96 * widths[2])
    assert np.mean(ratios) < 0.7
    assert np.mean(inside) >= 0.95


class Judged:
    """Held-out episodes, of which the new estimate predicts so much better."""

    def __init__(self, gain: float) -> None:
        self.log_ratios = -gain + 0.05 * np.random.default_rng(0).normal(size=(16, 2))


def moved(seed: int, truth: np.ndarray, gain: float = 0.2) -> dict[str, float]:
    estimate, known = chain(seed, 2)[-1]
    prior = Prior(estimate, SPACE.prior_std, known.knowledge)
    case = session(10_000 + seed, prior.alone(), truth)
    return changed_parameters(case, known.knowledge, case.slope.step(), case.slope, Judged(gain))


def test_change_of_one_parameter_is_named_and_no_other():
    changed = TRUTH + np.log(1.4) * np.eye(7)[0]
    found = [moved(seed, changed) for seed in range(20)]
    assert sum("table_friction" in each for each in found) >= 16  # four of five
    assert sum(len(each) for each in found) <= 21
    assert all(each["table_friction"] > 0 for each in found if each)


def test_unchanged_robot_raises_no_alarm():
    assert not any(moved(seed, TRUTH) for seed in range(100))


def test_estimate_that_predicts_no_better_is_no_change():
    assert not moved(0, TRUTH + np.log(1.4) * np.eye(7)[0], gain=0.0)


def test_forgetting_one_parameter_keeps_what_is_known_of_the_others():
    known = chain(0, 2)[-1][1].knowledge
    mask = np.arange(7) == 2
    left = without(known, mask, SPACE.prior_std)
    np.testing.assert_allclose(
        np.diag(np.linalg.inv(left.precision))[~mask], np.diag(np.linalg.inv(known.precision))[~mask]
    )
    np.testing.assert_allclose(np.diag(covariance_of(left))[~mask], np.diag(covariance_of(known))[~mask])
    assert np.linalg.inv(left.precision)[2, 2] == pytest.approx(SPACE.prior_std[2] ** 2)
    assert covariance_of(left)[2, 2] > SPACE.prior_std[2] ** 2


def test_knowledge_is_stored_and_becomes_the_next_prior(tmp_path):
    scenario, found = push_cube(), quick_fit("cmaes")
    assert isinstance(found.knowledge, Knowledge)
    save_calibration(found, tmp_path)
    read = load_calibration(tmp_path)
    np.testing.assert_array_equal(read.knowledge.precision, found.knowledge.precision)
    prior = next_prior(scenario, read)
    np.testing.assert_allclose(scenario.space.to_values(prior.mean), found.vector())
    np.testing.assert_allclose(prior.std, scenario.space.prior_std)
    np.testing.assert_array_equal(prior.knowledge.scatter, found.knowledge.scatter)
    assert prior.knowledge.episodes == len(found.evidence.fitted)


FITTING = calibrator(TuneConfig(method="cmaes", fit_episodes=8), Effort(budget=120, max_windows=24))


def test_session_in_which_nothing_moves_takes_nothing_away():
    scenario, found = push_cube(), quick_fit("cmaes")
    still = FITTING.fit(scenario, (stillness(),), next_prior(scenario, found), 0, ignore)
    np.testing.assert_array_equal(still.knowledge.precision, found.knowledge.precision)
    np.testing.assert_allclose(still.vector(), found.vector())
    for name, each in still.estimates.items():
        known_before = found.estimates[name].verdict == "identified" or name in found.checks.doubts
        assert known_before or each.verdict != "identified"


@pytest.mark.slow
def test_recorded_sessions_add_up_until_the_friction_changes():
    scenario, before = push_cube(), start_calibration(push_cube())
    widths = []
    for number in range(3):
        session = recording(episodes=16, steps=60, seed=number)
        before = FITTING.fit(scenario, (session,), next_prior(scenario, before), number, ignore)
        widths.append(np.sqrt(np.diag(before.covariance)))
        assert not before.checks.changed
        assert before.knowledge.episodes == 8 * (number + 1)
    assert widths[2].mean() < 0.85 * widths[0].mean()
    worn = recording(episodes=16, steps=60, seed=3, truth=(("table_friction", 0.2),))
    found = FITTING.fit(scenario, (worn,), next_prior(scenario, before), 3, ignore)
    assert found.checks.changed["table_friction"] > 0
    assert found.estimates["table_friction"].value > 1.5 * before.estimates["table_friction"].value
    assert any("table_friction has changed since" in each for each in found.warnings)
