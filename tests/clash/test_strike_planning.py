"""Sliding, the hybrid simulator of strikes and plans made in it."""

from dataclasses import replace

import numpy as np
import pytest

from rsr.common.errors import CalibrationError
from rsr.common.rotations import wrapped
from rsr.learned.clash import SlidingModel, StruckBlock, adapt, fit_sliding
from rsr.learned.clash.planning import HybridStrikes, plan
from rsr.realities.strikes import StrikeStandIn
from rsr.scenarios.built_in.strike import RecordedStrikes, sample_strikes
from rsr.simulators.strikes import Slide


@pytest.fixture(scope="module")
def recorded(square):
    return StrikeStandIn(square, 2).record(60)


@pytest.fixture(scope="module")
def model(surrogate, recorded):
    return adapt(surrogate, recorded.take(slice(0, 10)))


def stepped(model: SlidingModel, velocity: np.ndarray, step_s: float = 1e-5) -> np.ndarray:
    """The same slide by stepping the equations of motion."""
    linear, turning = velocity[:2].copy(), model.gyration_m * velocity[2]
    place, turned = np.zeros(2), 0.0
    while np.hypot(np.linalg.norm(linear), turning) > 1e-3:
        slip = np.hypot(np.linalg.norm(linear), model.support * turning)
        drop = model.friction * 9.81 * step_s / slip
        linear, turning = linear * (1 - drop), turning * (1 - drop * model.support**2)
        place, turned = place + step_s * linear, turned + step_s * turning / model.gyration_m
    return np.append(place, turned)


@pytest.mark.parametrize("velocity", [(0.5, 0.1, 5.0), (0.3, -0.2, -20.0), (0.4, 0.0, 0.0)])
@pytest.mark.parametrize("support", [0.6, 1.0, 1.3])
def test_the_formula_is_the_solution_of_the_equations_of_motion(velocity, support):
    model = SlidingModel(0.028, friction=0.35, support=support)
    found = model(np.array([velocity]))[0]
    assert found == pytest.approx(stepped(model, np.array(velocity)), rel=0.01, abs=2e-4)


def test_a_sliding_model_is_recovered_from_where_blocks_came_to_rest(square):
    truth = SlidingModel(square.gyration_m, friction=0.4, support=0.75, rate=0.1, deflection=-0.1)
    rng = np.random.default_rng(0)
    after = rng.uniform([-0.6, -0.6, -10], [0.6, 0.6, 10], (15, 3))
    recorded = RecordedStrikes(sample_strikes(square, 15, rng), after, truth(after))
    found = fit_sliding(square, recorded)
    assert found.friction == pytest.approx(0.4, rel=0.03)
    assert found.support == pytest.approx(0.75, rel=0.05)
    assert fit_sliding(square, replace(recorded, rest=None)) is None


@pytest.mark.parametrize("friction", [0.15, 0.5])
def test_friction_that_differs_from_strike_to_strike_is_found_in_the_mean(square, friction):
    """Friction differs by shares, so the longest slides must not decide alone."""
    rng = np.random.default_rng(4)
    after = rng.uniform([0.1, -0.2, -8], [0.7, 0.2, 8], (40, 3))
    differing = friction * np.exp(0.08 * rng.normal(size=40))
    means = np.exp(np.log(differing).reshape(4, 10).mean(axis=1))
    # Support and lead lie one prior deviation from where the search begins: the slides must move them.
    rows = [SlidingModel(square.gyration_m, share, 0.7, 0.07, -0.9 * share) for share in differing]
    rest = np.concatenate([model(after[row : row + 1]) for row, model in enumerate(rows)])
    recorded = RecordedStrikes(sample_strikes(square, 40, rng), after, rest)
    found = [fit_sliding(square, recorded.take(slice(first, first + 10))) for first in range(0, 40, 10)]
    assert [model.friction for model in found] == pytest.approx(means, rel=0.05)
    leads = [-model.deflection / model.friction for model in found]
    assert all(0.75 < lead < 0.95 for lead in leads), "ten slides pull it most of the way from the prior's 0.6"
    assert [model.support for model in found] == pytest.approx([0.7] * 4, abs=0.05)


@pytest.mark.slow
def test_identified_sliding_predicts_turns_better_than_mujoco(model, recorded, square):
    """Torsional friction, which the paper names as unsolved: same velocities, two slides."""
    others = recorded.take(slice(10, None))
    errors = {
        name: np.abs(wrapped(slide(others.after)[:, 2] - others.rest[:, 2]))
        for name, slide in (("identified", model.sliding), ("mujoco", Slide(square, model.identified.values)))
    }
    assert errors["identified"].mean() < 0.7 * errors["mujoco"].mean()


def test_the_hybrid_predicts_where_strikes_end(model, recorded):
    others = recorded.take(slice(10, None))
    rollout = HybridStrikes(model).rollout(others.strikes)
    far = np.linalg.norm(others.rest[:, :2], axis=1)
    missed = np.linalg.norm((rollout.rest - others.rest)[:, :2], axis=1)
    assert np.median(missed / far) < 0.2
    assert rollout.handled.all()
    single = HybridStrikes(model)(others.strikes.take(slice(3, 4)))
    assert single[0] == pytest.approx(rollout.rest[3], abs=1e-6)


def test_a_strike_that_misses_moves_nothing(model, square):
    strikes = sample_strikes(square, 2, np.random.default_rng(1))
    gone = replace(strikes, angle_rad=np.array([0.0, np.pi]))
    rollout = HybridStrikes(model).rollout(gone)
    assert list(rollout.handled) == [True, False]
    assert not rollout.rest[1].any()


@pytest.mark.parametrize("method", ["cmaes", "cem"])
def test_plans_reach_targets_that_can_be_reached(model, square, method):
    hybrid = HybridStrikes(model)
    target = hybrid(sample_strikes(square, 1, np.random.default_rng(2)))[0]
    found = plan(square, hybrid, target, method=method, population=24, seed=1)
    assert np.linalg.norm(found.expected[:2] - target[:2]) < 0.005
    assert abs(wrapped(found.expected[2] - target[2])) < 0.1
    assert hybrid(found.strike)[0] == pytest.approx(found.expected, abs=1e-6)
    again = plan(square, hybrid, target, method=method, population=24, seed=1)
    assert again.cost == found.cost


def test_a_slide_is_inverted_to_the_velocity_that_it_began_with(square):
    model = SlidingModel(square.gyration_m, friction=0.4, support=0.75, rate=0.1, deflection=-0.1)
    velocity = np.random.default_rng(0).uniform([-0.6, -0.6, -15], [0.6, 0.6, 15], (50, 3))
    assert model.velocities(model(velocity)) == pytest.approx(velocity, abs=2e-3)


def test_places_of_rest_alone_predict_others_as_well_as_with_velocities(recorded, square):
    few, others = recorded.take(slice(0, 10)), recorded.take(slice(10, None))
    missed = []
    for known in (few, replace(few, after=np.full((10, 3), np.nan))):
        far = HybridStrikes(adapt(StruckBlock(square), known))(others.strikes) - others.rest
        missed.append(np.sqrt((far[:, :2] ** 2).sum(axis=1).mean()))
    assert missed[1] < 1.2 * missed[0]


def test_without_resting_places_there_is_no_slide(surrogate, recorded):
    model = adapt(surrogate, replace(recorded.take(slice(0, 10)), rest=None))
    with pytest.raises(CalibrationError, match="got recordings without rest_x"):
        HybridStrikes(model)
    assert np.isfinite(model(recorded.strikes)).all()
