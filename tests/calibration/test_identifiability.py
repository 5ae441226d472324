"""Verdicts and intervals: what counts as known."""

import numpy as np
import pytest
from scipy.special import stdtrit

from rsr.calibration import together
from rsr.calibration.identifiability import (
    IDENTIFIED_SHRINKAGE,
    INFLATION,
    PRIOR_DOUBT,
    Posterior,
    at_bound,
    estimates,
    ignorance,
    posterior,
    verdict,
    widened,
)
from rsr.calibration.refine import Slope
from tests.push_samples import push_cube

FRICTION = push_cube().space["table_friction"]
DELAY = push_cube().space["control_delay"]


@pytest.mark.parametrize(
    ("value", "left", "expected"),
    [
        (0.1, 0.1, "identified"),
        (0.1, 0.3, "weak"),
        (0.1, 0.9, "weak"),
        (0.1, 1.1, "not identifiable"),
        (0.0201, 0.1, "at bound"),
        (1.49, 0.9, "at bound"),
        (0.0201, 1.1, "not identifiable"),
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
    found = ignorance(space, space.prior_std)
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


class Linear:
    """A loss whose residuals are linear in the point, made of independent windows, for exact answers."""

    def __init__(self, sensitivities: np.ndarray, misfits: np.ndarray, episode: np.ndarray) -> None:
        self.scenario = push_cube()
        self.windows = type("Owners", (), {"episode": episode})
        self.prior = type("Prior", (), {"std": push_cube().space.prior_std})
        self.slope = Slope(np.zeros(7), misfits, sensitivities)

    def misfits(self, points: np.ndarray) -> np.ndarray:
        return (self.slope.misfits + self.slope.sensitivities @ points[0])[None]


def linear(strength: float, correlated: bool = False, episodes: int = 400) -> Linear:
    rng = np.random.default_rng(0)
    sensitivities = strength * rng.normal(size=(episodes, 20, 7))
    if correlated:
        sensitivities[:] = sensitivities[:, :1]
    shape = (episodes, 1) if correlated else (episodes, 20)
    misfits = np.broadcast_to(rng.normal(size=shape), (episodes, 20))
    return Linear(sensitivities, misfits, np.arange(episodes))


def test_sandwich_is_gauss_newton_where_residuals_are_independent():
    case = linear(strength=1.0)
    found = posterior(case, np.zeros(7), case.slope, np.zeros(7))
    expected = np.sqrt(np.diag(np.linalg.inv(case.slope.precision))) * push_cube().space.prior_std
    np.testing.assert_allclose(np.sqrt(np.diag(found.covariance)), INFLATION * expected, rtol=0.15)
    assert found.degrees == 399


def unbalanced(rng: np.random.Generator) -> Linear:
    """Twelve episodes, some of which tell much more of a parameter than others; the model errs in each its own way."""
    sensitivities = 30.0 * np.exp(rng.normal(size=(12, 1, 7))) * rng.normal(size=(12, 30, 7))
    wrong = np.einsum("erp,ep->er", sensitivities, 0.15 / 30.0 * rng.normal(size=(12, 7)))
    return Linear(sensitivities, rng.normal(size=(12, 30)) + wrong, np.arange(12))


def test_intervals_hold_where_a_few_episodes_tell_most():
    """95 % intervals, not widened yet; the sandwich of gradients alone would hold 72 % of the truths: zeros."""
    rng, inside = np.random.default_rng(0), []
    for _ in range(200):
        case = unbalanced(rng)
        point = case.slope.step()
        std = np.sqrt(np.diag(posterior(case, point, case.slope, np.zeros(7)).covariance)) / INFLATION / case.prior.std
        inside.append(np.abs(point) < stdtrit(11, 0.975) * std)
    assert 0.85 < np.mean(inside) < 0.97


def test_sandwich_sees_that_rows_repeat_each_other():
    """Twenty copies of one row are one witness: Gauss-Newton would be sqrt(20) too narrow."""
    case = linear(strength=1.0, correlated=True)
    found = posterior(case, np.zeros(7), case.slope, np.zeros(7))
    naive = np.sqrt(np.diag(np.linalg.inv(case.slope.precision))) * push_cube().space.prior_std
    np.testing.assert_allclose(np.sqrt(np.diag(found.covariance)) / naive, INFLATION * np.sqrt(20), rtol=0.15)


def test_without_information_the_prior_remains_and_is_doubted():
    case = linear(strength=0.0)
    found = posterior(case, np.zeros(7), case.slope, np.zeros(7))
    np.testing.assert_allclose(np.sqrt(np.diag(found.covariance)), push_cube().space.prior_std)
    np.testing.assert_allclose(found.data_std, INFLATION * PRIOR_DOUBT * push_cube().space.prior_std)


def test_warnings_name_the_remedy():
    space = push_cube().space
    covariance = np.diag(np.square(space.prior_std)) * 0.25
    covariance[3, 4] = covariance[4, 3] = 0.99 * np.sqrt(covariance[3, 3] * covariance[4, 4])
    values = space.vector({"table_friction": 0.1, "control_delay": 0.08})
    found = Posterior(covariance, 0.5 * space.prior_std, 20)
    judged = estimates(space, values, found)
    assert at_bound(judged) == [
        "contact_softness ended at its bound (0.02 s): the truth may lie beyond. Widen the bound in the scenario if "
        "that is physical, or look for an effect that the model lacks."
    ]
    assert together.warnings(push_cube(), covariance, judged) == [
        "joint_damping and actuator_gain move together (correlation 0.99, along +joint_damping +actuator_gain): these "
        "recordings fix their combination, not each. Record steps of the unloaded arm: frequency tells stiffness, "
        "decay tells damping."
    ]


def test_three_that_move_together_are_one_warning():
    space = push_cube().space
    covariance = np.eye(7)
    for first, second in ((0, 2), (2, 5), (0, 5)):
        covariance[first, second] = covariance[second, first] = 0.95
    found = Posterior(covariance * 0.25, 0.5 * space.prior_std, 20)
    (warning,) = together.warnings(push_cube(), found.covariance, estimates(space, space.nominal, found))
    assert warning.startswith("table_friction, cube_mass and control_delay move together (correlation 0.95")
    assert warning.endswith("Record a free slide, which tells friction without the mass, or weigh the body.")


def test_widening_keeps_correlations_and_never_narrows():
    covariance = np.diag([0.04, 0.01]) + 0.015 * (1 - np.eye(2))
    found = widened(Posterior(covariance, np.array([0.3, 0.1]), 5), np.array([0.1, 0.2]))
    np.testing.assert_allclose(np.diag(found.covariance), [0.04, 0.04])
    np.testing.assert_allclose(found.covariance[0, 1] / 0.04, 0.015 / 0.02)
    np.testing.assert_allclose(found.data_std, [0.3, 0.2])
