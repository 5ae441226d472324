"""Adaptation to a few strikes: better than MuJoCo where it is wrong, no worse where it is right, honest in between."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.baselines.strikes.control import StrikeControl
from rsr.common.errors import CalibrationError
from rsr.common.files import sha256
from rsr.learned.clash import StruckBlock, accuracy, adapt, load_adapted, relative_errors, save_adapted
from rsr.learned.clash.adaptation import glitches, identify
from rsr.learned.clash.comparison import compare, learning_curve, splits
from rsr.learned.clash.law import against_any_law, usual_law
from rsr.learned.clash.prediction import correct
from rsr.learned.clash.residual import covariance, fit_residual, observe, variance
from rsr.realities.strikes import TUNING_SEEDS, StrikeStandIn
from rsr.scenarios.built_in.strike import Definition, RecordedStrikes, sample_strikes


def few_and_others(recorded):
    return recorded.take(slice(0, 10)), recorded.take(slice(10, None))


@pytest.fixture(scope="module")
def stand_ins(square):
    return [StrikeStandIn(square, seed).record(70) for seed in TUNING_SEEDS[:6]]


@pytest.fixture(scope="module")
def adapted(surrogate, stand_ins):
    return adapt(surrogate, stand_ins[1].take(slice(0, 10)))


@pytest.mark.slow
def test_ten_strikes_correct_what_no_parameter_expresses(surrogate, square, stand_ins):
    """Two laws of impact that are not MuJoCo's; the figures proper are in benchmarks/clash.py."""
    gains, inside = [], []
    for recorded in stand_ins:
        few, others = few_and_others(recorded)
        model = adapt(surrogate, few)
        alone = surrogate.predict(others.strikes, model.identified.values)[0]
        gains.append(
            accuracy(square, model(others.strikes), others.after).scaled - accuracy(square, alone, others.after).scaled
        )
        inside.append(model.collision.inside(others).mean())
    assert np.mean(gains) > 0.1
    assert min(gains) > -0.05
    assert 0.8 < np.mean(inside) < 0.97


@pytest.mark.slow
def test_where_mujoco_is_right_little_is_lost(surrogate, square):
    losses = []
    for seed in TUNING_SEEDS[:4]:
        few, others = few_and_others(StrikeControl(square, seed).record(70))
        model = adapt(surrogate, few)
        alone = surrogate.predict(others.strikes, model.identified.values)[0]
        losses.append(
            accuracy(square, alone, others.after).scaled - accuracy(square, model(others.strikes), others.after).scaled
        )
    assert np.mean(losses) < 0.04


def test_without_a_surrogate_the_law_alone_is_corrected_and_stored(square, stand_ins, tmp_path):
    few, others = few_and_others(stand_ins[1])
    model = adapt(StruckBlock(square), few)
    assert model.identified is None
    assert accuracy(square, model(others.strikes), others.after).scaled > 0.8
    save_adapted(tmp_path, model)
    assert not (tmp_path / "surrogate.json").exists()
    again = load_adapted(tmp_path)
    assert again.base.definition == model.base.definition
    assert again(others.strikes) == pytest.approx(model(others.strikes), abs=1e-9)


def test_identification_explains_strikes_of_the_surrogate_itself(surrogate, square):
    strikes = sample_strikes(square, 20, np.random.default_rng(0))
    truth = np.array([0.2, 0.4, 0.25, 0.8])
    recorded = RecordedStrikes(strikes, surrogate.predict(strikes, truth)[0])
    found = identify(surrogate, recorded)
    predicted = surrogate.predict(strikes, found.values)[0]
    assert relative_errors(predicted, recorded.after, square.gyration_m).max() < 0.02
    assert (found.spread >= 1).all()
    kept = identify(surrogate, recorded, ground_friction=0.4)
    assert kept.values[1] == pytest.approx(0.4)
    assert kept.values[2] == pytest.approx(0.25, rel=0.1)


def test_no_strength_is_among_the_choices(square):
    """Pure noise hardly moves predictions; a constant push is found, and to leave it out is ruled out."""
    rng = np.random.default_rng(1)
    strikes = sample_strikes(square, 30, rng)
    base = np.column_stack([np.ones(30), np.zeros((30, 2))])
    noise = rng.normal(0, 0.03, (30, 3))
    at = observe(square, strikes, base)
    alone = fit_residual(square, strikes, base, base + noise)
    pushed = fit_residual(square, strikes, base, base * 1.2 + noise / 3)
    assert 0.0 in alone.mixture[:, 0]
    assert np.sqrt(np.mean(alone.mean(at) ** 2)) < 0.015
    assert pushed.mixture[:, 0].min() > 0
    mean, std = pushed.predict(at)
    assert mean[:, 0] == pytest.approx(0.2, abs=0.03)
    assert mean == pytest.approx(pushed.mean(at))
    assert (std < 0.1).all()


def test_variances_are_the_diagonal_of_the_covariance(square):
    strikes = sample_strikes(square, 8, np.random.default_rng(5))
    at = observe(square, strikes, np.random.default_rng(6).normal(size=(8, 3)))
    for mirrored in (True, False):
        diagonal = np.diag(covariance(at, at, mirrored)).reshape(8, 3)
        assert variance(at, mirrored) == pytest.approx(diagonal)


def test_an_adapted_model_survives_storage(adapted, square, tmp_path):
    save_adapted(tmp_path / "one", adapted)
    stored = load_adapted(tmp_path / "one")
    save_adapted(tmp_path / "other", stored)
    assert sha256(tmp_path / "one") == sha256(tmp_path / "other")
    strikes = sample_strikes(square, 20, np.random.default_rng(3))
    assert stored(strikes) == pytest.approx(adapted(strikes), abs=1e-12)
    assert stored.sliding == adapted.sliding
    assert stored.rejected == adapted.rejected
    card = tmp_path / "one" / "adapted.json"
    written = card.read_text()
    card.write_text(written.replace('"version": 4', '"version": 3'))
    with pytest.raises(CalibrationError, match="of an earlier release"):
        load_adapted(tmp_path / "one")
    card.write_text(written)
    (tmp_path / "one" / "adapted.npz").unlink()
    with pytest.raises(CalibrationError, match="rsr clash adapt"):
        load_adapted(tmp_path / "one")


def test_equal_seeds_adapt_equally(surrogate, stand_ins, adapted, square):
    again = adapt(surrogate, stand_ins[1].take(slice(0, 10)))
    strikes = sample_strikes(square, 20, np.random.default_rng(4))
    assert np.array_equal(again(strikes), adapted(strikes))


GLITCHES = {
    "three times as fast": lambda after: 3 * after,
    "backwards": lambda after: -after,
    "a jump of the yaw": lambda after: np.add(after, [0.0, 0.0, 40.0]),
}


@pytest.mark.parametrize(
    "kind", [kind if kind == "backwards" else pytest.param(kind, marks=pytest.mark.slow) for kind in GLITCHES]
)
def test_a_glitched_strike_is_found_and_left_out(surrogate, square, stand_ins, kind):
    few, others = few_and_others(stand_ins[1])
    spoilt = few.after.copy()
    spoilt[4] = GLITCHES[kind](spoilt[4])
    model = adapt(surrogate, replace(few, after=spoilt))
    assert model.rejected == (4,)
    without = adapt(surrogate, few.take(np.delete(np.arange(10), 4)))
    assert model(others.strikes) == pytest.approx(without(others.strikes))
    assert accuracy(square, model(others.strikes), others.after).scaled > 0.75


def test_three_glitches_of_twelve_are_found(square, stand_ins):
    recorded = stand_ins[2].take(slice(0, 12))
    spoilt = recorded.after.copy()
    spoilt[[1, 6, 10]] *= [[3.0], [-1.0], [2.5]]
    assert glitches(square, replace(recorded, after=spoilt)) == (1, 6, 10)


def test_glitches_that_hide_each_other_are_found(square, stand_ins):
    """Four of ten, alike: each is what the other three would have one expect."""
    recorded = stand_ins[1].take(slice(0, 10))
    spoilt = recorded.after.copy()
    spoilt[[0, 3, 5, 8]] *= 0.4
    assert glitches(square, replace(recorded, after=spoilt)) == (0, 3, 5, 8)


def test_strikes_that_no_impact_explains_are_found_where_they_are_the_majority(square, stand_ins):
    """Six of ten, each spoilt in a way of its own: there is no majority that speaks against them, but momentum does."""
    recorded = stand_ins[1].take(slice(0, 10))
    spoilt = recorded.after.copy()
    spoilt[[0, 4]] *= [[-1.0], [0.2]]
    spoilt[[2, 3], 2] += [40.0, -60.0]
    spoilt[[6, 9], :2] += [[1.5, 0.3], [-0.8, -1.2]]
    assert glitches(square, replace(recorded, after=spoilt)) == (0, 2, 3, 4, 6, 9)


def test_no_honest_strike_is_against_every_law(square, stand_ins):
    for recorded in stand_ins:
        assert not against_any_law(square, recorded, Definition.striker_mass_kg).any()


def test_honest_strikes_are_kept(square, stand_ins):
    """On stand-ins whose law the models cannot express exactly: a misfit that all strikes share is no glitch."""
    assert [glitches(square, recorded.take(slice(0, 12))) for recorded in stand_ins] == [()] * len(stand_ins)


def test_a_centre_of_mass_that_is_off_is_learnt(square):
    """An impulse turns a block by its lever about the true centre: no law of contact, so strikes elsewhere know it."""
    law, strikes = usual_law(square), sample_strikes(square, 50, np.random.default_rng(7))
    moved = replace(strikes, point_m=strikes.point_m - [0.0015, 0.0])
    recorded = RecordedStrikes(strikes, law(moved))
    few, others = few_and_others(recorded)
    corrected = correct(square, law, few)
    missed = np.abs(corrected(others.strikes) - others.after)[:, 2].mean()
    assert missed < 0.6 * np.abs(law(others.strikes) - others.after)[:, 2].mean()


def test_two_strikes_are_too_few(surrogate, stand_ins):
    with pytest.raises(CalibrationError, match="2 strikes"):
        adapt(surrogate, stand_ins[0].take(slice(0, 2)))


def test_before_law_and_adapted_are_judged_on_the_same_unseen_strikes(surrogate, stand_ins):
    recorded = stand_ins[1]
    compared = compare(surrogate, recorded)
    assert [judged.name for judged in compared.methods] == ["before", "law", "adapted"]
    assert compared.judged_on.after == pytest.approx(recorded.after[10:])
    model = adapt(surrogate, recorded.take(slice(0, 10)))
    assert compared["adapted"].predicted == pytest.approx(model(recorded.strikes.take(slice(10, None))))
    assert compared["adapted"].accuracy > compared["before"].accuracy + 0.2
    assert 0.7 < compared["adapted"].inside < 1
    assert compared["before"].inside is None


@pytest.mark.slow
def test_few_strikes_are_judged_in_turns(surrogate, stand_ins):
    parts, how = splits(12)
    assert "in 5 turns" in how
    assert sorted(np.concatenate([unseen for _, unseen in parts])) == list(range(12))
    assert all(not set(fit) & set(unseen) for fit, unseen in parts)
    compared = compare(surrogate, stand_ins[0].take(slice(0, 12)))
    assert len(compared["adapted"].errors) == 12
    own = adapt(surrogate, stand_ins[0].take(slice(0, 12)))(compared.judged_on.strikes)
    assert not np.allclose(own, compared["adapted"].predicted), "judged by the model that was fitted to them"


@pytest.mark.slow
def test_the_learning_curve_rises(surrogate, stand_ins):
    curve = learning_curve(surrogate, stand_ins[1])
    assert list(curve) == [3, 5, 10, 20]
    assert curve[20] > curve[3]
    assert list(learning_curve(surrogate, stand_ins[1].take(slice(0, 12)))) == [3, 5]
