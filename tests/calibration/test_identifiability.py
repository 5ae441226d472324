"""Verdicts and intervals: when a parameter counts as identified."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import stdtrit

from rsr.calibration import start_prior
from rsr.calibration.checks.survival import _carried_by_one, _surprising, doubt_warnings
from rsr.calibration.checks.unknown import at_prior_where_unknown
from rsr.calibration.search.refinement import Linearisation
from rsr.calibration.uncertainty.correlated import correlation_warnings
from rsr.calibration.uncertainty.earlier_sessions import doubted
from rsr.calibration.uncertainty.identifiability import (
    IDENTIFIED_SHRINKAGE,
    PRIOR_INFLATION,
    STD_INFLATION,
    Posterior,
    at_bound_warnings,
    estimates,
    posterior,
    prior_only,
    verdict,
    widened,
)
from rsr.scenarios import ParameterSpace
from tests.push_samples import push_cube

FRICTION = push_cube().space["table_friction"]
DELAY = push_cube().space["control_delay"]
NOTHING = np.zeros((7, 7))
"""Systematic error, where there is none."""


@pytest.mark.parametrize(
    ("value", "left", "expected"),
    [
        (0.1, 0.1, "identified"),
        (0.1, 0.3, "weak"),
        (0.1, 0.9, "weak"),
        (0.1, 1.1, "not identifiable"),
        (0.0201, 0.1, "at bound"),
        (1.49, 0.9, "at bound"),
        (0.0201, 1.1, "at bound"),  # first of all, whatever the data say
    ],
)
def test_verdict_of_a_logarithmic_parameter(value, left, expected):
    assert verdict(FRICTION, value, left * FRICTION.prior_std) == expected


def test_verdict_of_a_linear_parameter():
    """A fifth of a unit step of 20 ms is 4 ms."""
    assert verdict(DELAY, 0.08, 0.19) == "identified"
    assert verdict(DELAY, 0.08, 0.5) == "weak"
    assert verdict(DELAY, 0.0, 0.19) == "at bound"
    assert IDENTIFIED_SHRINKAGE * DELAY.prior_std > 0.5, "the second case is weak for its width in ms"


def test_ignorance_is_the_prior():
    space = push_cube().space
    found = prior_only(space, space.prior_std)
    judged = estimates(space, space.nominal, found)
    assert {each.verdict for each in judged.values()} == {"not identifiable"}
    friction = judged["table_friction"]
    assert friction.lower == pytest.approx(0.5 * np.exp(-1.96), rel=1e-4)
    assert (friction.value, friction.upper) == (0.5, 1.5)


def test_intervals_are_cut_off_at_the_bounds():
    space = push_cube().space
    judged = estimates(space, space.nominal, Posterior(np.eye(7) * 100.0, space.prior_std, 20))
    assert [each.lower for each in judged.values()] == pytest.approx(space.lower.tolist())
    assert [each.upper for each in judged.values()] == pytest.approx(space.upper.tolist())


def test_few_episodes_widen_intervals():
    space = push_cube().space
    few, many = (
        estimates(space, space.nominal, Posterior(np.eye(7) * 1e-4, space.prior_std, degrees))["cube_mass"]
        for degrees in (2, 100)
    )
    assert few.upper - few.lower > 2 * (many.upper - many.lower)


def test_two_episodes_leave_no_interval_wider_than_what_was_known_before():
    space = push_cube().space
    names = ("table_friction", "cube_mass")
    before = estimates(space, space.nominal, Posterior(np.diag(np.square(space.prior_std)), space.prior_std, 10**6))
    after = estimates(space, space.nominal, Posterior(np.diag(np.square(0.8 * space.prior_std)), space.prior_std, 1))
    for name in names:
        assert (after[name].lower, after[name].upper) == (before[name].lower, before[name].upper)
    # One that ends far from there keeps as much as the way, for the prior may be right.
    away = space.to_values(space.to_coordinates(space.nominal) + space.prior_std)
    far = estimates(space, away, Posterior(np.diag(np.square(0.8 * space.prior_std)), space.prior_std, 1))
    assert far["cube_mass"].lower < space.nominal[list(space.names).index("cube_mass")]


class Linear:
    """A loss whose residuals are linear in the point, made of independent windows, for exact answers."""

    def __init__(self, sensitivities: np.ndarray, misfits: np.ndarray, episode: np.ndarray) -> None:
        self.scenario = push_cube()
        self.windows = type("Episodes", (), {"episode": episode})
        self.prior = start_prior(push_cube())
        self.slope = Linearisation(np.zeros(7), misfits, sensitivities)

    def misfits(self, points: np.ndarray) -> np.ndarray:
        return (self.slope.misfits + self.slope.sensitivities @ points[0])[None]

    def __call__(self, points: np.ndarray) -> np.ndarray:
        return np.array([0.5 * np.square(self.misfits(each[None])).sum() + 0.5 * each @ each for each in points])


def linear(strength: float, correlated: bool = False, episodes: int = 400) -> Linear:
    rng = np.random.default_rng(0)
    sensitivities = strength * rng.normal(size=(episodes, 20, 7))
    if correlated:
        sensitivities[:] = sensitivities[:, :1]
    shape = (episodes, 1) if correlated else (episodes, 20)
    misfits = np.broadcast_to(rng.normal(size=shape), (episodes, 20)).copy()
    return Linear(sensitivities, misfits, np.arange(episodes))


def test_covariance_is_gauss_newton_where_residuals_are_independent():
    case = linear(strength=1.0)
    found = posterior(case, np.zeros(7), case.slope, NOTHING)
    expected = np.sqrt(np.diag(np.linalg.inv(case.slope.precision))) * push_cube().space.prior_std
    np.testing.assert_allclose(np.sqrt(np.diag(found.covariance)), STD_INFLATION * expected, rtol=0.15)
    assert found.degrees == 399


def unbalanced(rng: np.random.Generator) -> Linear:
    """Twelve episodes, some of which are far more informative than others; the model errs in each its own way."""
    sensitivities = 30.0 * np.exp(rng.normal(size=(12, 1, 7))) * rng.normal(size=(12, 30, 7))
    wrong = np.einsum("erp,ep->er", sensitivities, 0.15 / 30.0 * rng.normal(size=(12, 7)))
    return Linear(sensitivities, rng.normal(size=(12, 30)) + wrong, np.arange(12))


def test_intervals_hold_where_a_few_episodes_dominate():
    """95 % intervals, not widened yet; the sandwich of gradients alone would hold 72 % of the truths: biases."""
    rng, inside = np.random.default_rng(0), []
    for _ in range(200):
        case = unbalanced(rng)
        point = case.slope.step()
        std = np.sqrt(np.diag(posterior(case, point, case.slope, NOTHING).covariance)) / STD_INFLATION / case.prior.std
        inside.append(np.abs(point) < stdtrit(11, 0.975) * std)
    assert 0.85 < np.mean(inside) < 0.97


def test_covariance_grows_with_correlated_rows():
    """Twenty copies of one row are one observation: Gauss-Newton would be sqrt(20) too narrow."""
    case = linear(strength=1.0, correlated=True)
    found = posterior(case, np.zeros(7), case.slope, NOTHING)
    naive = np.sqrt(np.diag(np.linalg.inv(case.slope.precision))) * push_cube().space.prior_std
    np.testing.assert_allclose(np.sqrt(np.diag(found.covariance)) / naive, STD_INFLATION * np.sqrt(20), rtol=0.15)


def test_without_information_the_prior_remains_inflated():
    case = linear(strength=0.0)
    found = posterior(case, np.zeros(7), case.slope, NOTHING)
    np.testing.assert_allclose(np.sqrt(np.diag(found.covariance)), push_cube().space.prior_std)
    np.testing.assert_allclose(found.data_std, STD_INFLATION * PRIOR_INFLATION * push_cube().space.prior_std)


def test_warnings_name_the_remedy():
    space = push_cube().space
    covariance = np.diag(np.square(space.prior_std)) * 0.25
    covariance[3, 4] = covariance[4, 3] = 0.99 * np.sqrt(covariance[3, 3] * covariance[4, 4])
    values = space.vector({"table_friction": 0.1, "control_delay": 0.08})
    found = Posterior(covariance, 0.5 * space.prior_std, 20)
    judged = estimates(space, values, found)
    assert at_bound_warnings(judged) == [
        "contact_softness ended at its bound (0.02 s): the truth may lie beyond. Widen the bound in the scenario if "
        "that is physical, or look for an effect that the model lacks."
    ]
    assert correlation_warnings(push_cube(), found, judged) == [
        "joint_damping and actuator_gain are correlated (0.99, along +joint_damping +actuator_gain): these "
        "recordings determine a combination, not each: joint_damping / actuator_gain = 1 within 11 %. Record steps of "
        "the unloaded arm: frequency gives stiffness, decay gives damping."
    ]


def test_the_combination_that_is_known_has_an_interval():
    """A motor's constant over its resistance is known to 1 %, each alone to 30 %."""
    space, names = push_cube().space, push_cube().space.names
    covariance = 0.01**2 * np.eye(7)
    covariance[np.ix_([3, 4], [3, 4])] += 0.3**2
    values = space.nominal * np.where(np.array(names) == "actuator_gain", 2.0, 1.0)
    found = Posterior(covariance, 0.5 * space.prior_std, 1000)
    (warning,) = correlation_warnings(push_cube(), found, estimates(space, values, found))
    # The difference of two independent errors of 1 %: 1.96 times sqrt(2) %.
    assert "joint_damping / actuator_gain = 0.5 within 2.8 %" in warning
    vague = replace(found, covariance=400.0 * covariance)
    (warning,) = correlation_warnings(push_cube(), vague, estimates(space, values, found))
    assert "within" not in warning, "nobody calls 75 % determined"


def test_three_correlated_parameters_are_one_warning():
    space = push_cube().space
    covariance = np.eye(7)
    for first, second in ((0, 2), (2, 5), (0, 5)):
        covariance[first, second] = covariance[second, first] = 0.95
    found = Posterior(covariance * 0.25, 0.5 * space.prior_std, 20)
    (warning,) = correlation_warnings(push_cube(), found, estimates(space, space.nominal, found))
    assert warning.startswith("table_friction, cube_mass and control_delay are correlated (0.95")
    assert warning.endswith("Record a free slide, which depends on friction but not on mass, or weigh the body.")


def test_widening_keeps_correlations_and_never_narrows():
    covariance = np.diag([0.04, 0.01]) + 0.015 * (1 - np.eye(2))
    found = widened(Posterior(covariance, np.array([0.3, 0.1]), 5), np.array([0.1, 0.2]))
    np.testing.assert_allclose(np.diag(found.covariance), [0.04, 0.04])
    np.testing.assert_allclose(found.covariance[0, 1] / 0.04, 0.015 / 0.02)
    np.testing.assert_allclose(found.data_std, [0.3, 0.2])


def test_seventeen_correlated_parameters_are_named_by_three_in_two_lines():
    """A warning of 17 names "move together" told nobody what to do."""
    names = tuple(f"quite_a_long_parameter_name_{i}" for i in range(17))
    space = ParameterSpace(tuple(replace(FRICTION, name=name) for name in names))
    scenario = replace(push_cube(), space=space, bindings=(), delay_parameter=None)
    weights = np.linspace(0.85, 1.0, 17)
    covariance = 0.25 * (0.05 * np.eye(17) + np.outer(weights, weights))
    found = Posterior(covariance, 0.5 * space.prior_std, 20)
    (warning,) = correlation_warnings(scenario, found, estimates(space, space.nominal, found))
    assert warning.count("quite_a_long") == 6, "three names, and their signs"
    assert ", with 14 more)" in warning
    assert warning.endswith("Measure one of them, or record motions in which they act separately.")
    short = warning.replace("quite_a_long_parameter_name", "com")
    assert len(short) < 240, "two lines of a terminal"


def test_what_did_not_survive_a_check_is_weak():
    space = push_cube().space
    sharp = Posterior(np.eye(7) * 1e-4, np.full(7, 0.01), 20)
    judged = estimates(space, space.nominal, sharp)
    assert judged["cube_mass"].verdict == "identified"
    why = {"cube_mass": "without episode 3 it leaves its interval"}
    found = estimates(space, space.nominal, doubted(sharp, space, why))
    assert found["cube_mass"] == replace(judged["cube_mass"], verdict="weak")
    assert found["table_friction"] == judged["table_friction"]
    assert doubt_warnings(why) == [
        "cube_mass is weak though its interval is narrow: without episode 3 it leaves its interval."
    ]


def test_one_episode_that_carries_a_parameter_alone_is_named():
    rng = np.random.default_rng(0)
    sensitivities = 30.0 * rng.normal(size=(12, 30, 7))
    sensitivities[:, :, 4] = 0.0
    sensitivities[5, :, 4] = 30.0 * rng.normal(size=30)  # only this one tells the fifth parameter
    misfits = rng.normal(size=(12, 30))
    misfits[7] += 12.0 * sensitivities[7, :, 0] / 30.0  # and this one disagrees with all others on the first
    case = Linear(sensitivities, misfits, np.arange(12))
    narrow = Posterior(np.diag(np.square(0.01 * case.prior.std)), np.full(7, 0.05), 11)
    found = _carried_by_one(case, np.zeros(7), case.slope, narrow)
    names = push_cube().space.names
    assert found[names[4]] == "without episode 5 the others do not determine it"
    assert found[names[0]] == "without episode 7 it leaves its interval"
    assert names[2] not in found


@pytest.mark.parametrize("errs", [False, True])
def test_an_estimate_far_from_nominal_is_doubted_only_where_the_model_errs(errs):
    case, point = linear(strength=1.0), np.full(7, 0.1)
    point[0] = -3.0
    case.values = lambda there: case.scenario.space.to_values(
        case.scenario.space.to_coordinates(case.scenario.space.nominal) + case.prior.std * there
    )
    narrow = Posterior(1e-4 * np.eye(7), np.full(7, 0.05), 11, has_shared_error=np.full(7, errs))
    found = _surprising(case, point, narrow)
    assert list(found) == (["table_friction"] if errs else [])
    assert not errs or found["table_friction"].startswith("it is 3.0 prior standard deviations")


def test_a_parameter_that_the_data_do_not_know_has_the_priors_value():
    point, space = np.full(7, 0.5), push_cube().space
    data_std = np.where(np.arange(7) == 3, 2.0, 0.1) * space.prior_std
    for strength, expected in ((1e-4, 0.0), (5.0, 0.5)):  # where the loss says otherwise, it stays
        case = linear(strength=1.0)
        case.slope.sensitivities[..., 3] = strength
        case.slope.misfits[:] -= case.slope.sensitivities @ point
        case.bounds = np.tile([-9.0, 9.0], (7, 1))
        moved = at_prior_where_unknown(case, point, case.slope, Posterior(np.eye(7), data_std, 20))
        assert moved[3] == expected
        np.testing.assert_allclose(np.delete(moved, 3), 0.5, atol=1e-3)


def test_what_parameters_say_together_stays_though_each_alone_is_unknown():
    """Of seven that only their sum is known of, all taken back at once would lose it."""
    point, data_std = np.full(7, 0.5), 2.0 * push_cube().space.prior_std
    case = linear(strength=1.0)
    case.slope.sensitivities[:] = case.slope.sensitivities[..., :1]
    case.slope.misfits[:] -= case.slope.sensitivities @ point
    case.bounds = np.tile([-9.0, 9.0], (7, 1))
    moved = at_prior_where_unknown(case, point, case.slope, Posterior(np.eye(7), data_std, 20))
    assert np.count_nonzero(moved) < 7
    assert moved.sum() == pytest.approx(3.5, rel=0.05)
