"""The analytic law of impact, and models that are averaged."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.baselines.strikes.methods import no_base
from rsr.learned.clash import accuracy, relative_errors
from rsr.learned.clash.law import ImpactLaw, fit_law
from rsr.learned.clash.prediction import Blended, blend, correct
from rsr.learned.clash.residual import noise_covariance, observe
from rsr.realities.strikes import TUNING_SEEDS, StrikeStandIn
from rsr.scenarios.built_in.strike import RecordedStrikes, Strikes, sample_strikes


@pytest.fixture(scope="module")
def law(square):
    """All four numbers lie about one prior deviation off the prior's mean, where a fit to nothing would end."""
    return ImpactLaw(
        square, restitution=0.75, restitution_fall=0.25, friction=0.15, ground_s=0.008, ground_friction=0.4
    )


def head_on(square, speed_m_s=0.5, angle_rad=0.0):
    face = square.struck_faces[0]
    point, normal = face.at(np.zeros(1))
    return Strikes(np.array([speed_m_s]), np.array([angle_rad]), point, normal)


def test_a_head_on_strike_obeys_momentum_and_restitution(square, law):
    strikes = head_on(square)
    exact = replace(law, ground_s=0.0)(strikes)[0]
    along = exact[:2] @ strikes.normal[0]
    assert along == pytest.approx(0.5 * (1 + 0.75) / (1 + square.mass_kg / 4.0), rel=1e-6)
    assert exact[2] == pytest.approx(0, abs=1e-9)
    assert along - law(strikes)[0, :2] @ strikes.normal[0] == pytest.approx(0.4 * 9.81 * 0.008, rel=1e-6)


def test_a_light_striker_gives_less(square, law):
    """A striker as heavy as the block shares its momentum with it; the fitted law keeps the mass that it is told."""
    strikes = head_on(square)
    light = replace(law, ground_s=0.0, striker_mass_kg=square.mass_kg)
    assert light(strikes)[0, :2] @ strikes.normal[0] == pytest.approx(0.5 * (1 + 0.75) / 2, rel=1e-6)
    many = sample_strikes(square, 20, np.random.default_rng(4))
    found = fit_law(square, RecordedStrikes(many, light(many)), 0.4, square.mass_kg)
    assert found.striker_mass_kg == square.mass_kg
    assert found.restitution == pytest.approx(0.75, abs=0.05)


def test_without_friction_there_is_no_impulse_across(square, law):
    smooth = replace(law, friction=0.0, ground_s=0.0)
    strikes = sample_strikes(square, 30, np.random.default_rng(0))
    after = smooth(strikes)
    tangent = np.column_stack([-strikes.normal[:, 1], strikes.normal[:, 0]])
    assert (after[:, :2] * tangent).sum(axis=1) == pytest.approx(0, abs=1e-9)


def test_its_own_strikes_are_explained(square, law):
    strikes = sample_strikes(square, 20, np.random.default_rng(1))
    found = fit_law(square, RecordedStrikes(strikes, law(strikes)), ground_friction=0.4)
    assert found.restitution == pytest.approx(0.75, abs=0.05)
    assert found.restitution_fall == pytest.approx(0.25, abs=0.05)
    assert found.friction == pytest.approx(0.15, abs=0.03)
    assert 0.005 < found.ground_s < 0.009, "restitution may stand in for some of it, not for most"
    assert relative_errors(found(strikes), law(strikes), square.gyration_m).max() < 0.03


def test_models_are_averaged_by_what_they_predict(square, law):
    """Strikes of the law itself: against a base that knows nothing, the law gets nearly all the weight."""
    rng = np.random.default_rng(2)
    strikes = sample_strikes(square, 12, rng)
    recorded = RecordedStrikes(strikes, law(strikes) * rng.normal(1, 0.02, (12, 1)))
    mixed = blend(square, (law, no_base), recorded)
    assert mixed.weights.sum() == pytest.approx(1)
    assert mixed.weights[0] > 0.9
    others = sample_strikes(square, 40, rng)
    assert accuracy(square, mixed(others), law(others)).scaled > 0.95
    mean, std = mixed.intervals(others)
    assert (std > 0).all()
    assert mixed.inside(RecordedStrikes(others, law(others))).mean() > 0.8
    alone = Blended(mixed.members[:1], np.ones(1))
    assert alone(others) == pytest.approx(mixed.members[0](others))
    assert alone.intervals(others)[0] == pytest.approx(mixed.members[0].intervals(others)[0])
    assert mean.shape == (40, 3)


def test_an_average_of_two_wrong_models_is_no_worse_than_the_worse_one(square):
    recorded = StrikeStandIn(square, TUNING_SEEDS[2]).record(60)
    few, others = recorded.take(slice(0, 10)), recorded.take(slice(10, None))
    bases = (fit_law(square, few), no_base)
    errors = [
        relative_errors(correct(square, base, few)(others.strikes), others.after, square.gyration_m) for base in bases
    ]
    mixed = relative_errors(blend(square, bases, few)(others.strikes), others.after, square.gyration_m)
    assert np.median(mixed) < max(map(np.median, errors)) + 1e-9


def test_what_differs_from_strike_to_strike_acts_at_the_impact_point(square):
    """The noise of hard strikes points along what an impulse does there; without any, only measurement is left."""
    strikes = sample_strikes(square, 5, np.random.default_rng(3))
    quiet = noise_covariance(observe(square, strikes, np.zeros((5, 3))))
    loud = noise_covariance(observe(square, strikes, np.tile([1.5, 0.3, 0.5], (5, 1))))
    for one, other in zip(quiet, loud, strict=True):
        assert one == pytest.approx(np.diag(np.diag(one)))
        assert np.linalg.matrix_rank(other - one, tol=1e-9) == 2
        assert np.linalg.eigvalsh(other - one).min() > -1e-12
