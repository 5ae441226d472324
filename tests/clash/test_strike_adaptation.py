"""Adaptation to a few strikes: better than MuJoCo where it is wrong, no worse where it is right, honest in between."""

import numpy as np
import pytest

from rsr.clash import accuracy, adapt, load_adapted, relative_errors, save_adapted
from rsr.clash.comparison import compare, learning_curve, splits
from rsr.clash.finetuning import finetune, finetune_gated
from rsr.clash.identification import identify
from rsr.clash.methods import METHODS
from rsr.clash.residual import covariance, fit_residual, seen, variance
from rsr.errors import CalibrationError
from rsr.files import sha256
from rsr.realities.strikes import TUNING_SEEDS, StrikeControl, StrikeStandIn
from rsr.scenarios.strike import RecordedStrikes, sample_strikes

PARAMS = np.array([0.3, 0.3, 0.3, 1.0])


def few_and_others(recorded):
    return recorded.take(slice(0, 10)), recorded.take(slice(10, None))


@pytest.fixture(scope="module")
def stand_ins(square):
    return [StrikeStandIn(square, seed).record(70) for seed in TUNING_SEEDS[:6]]


@pytest.fixture(scope="module")
def adapted(surrogate, stand_ins):
    return adapt(surrogate, stand_ins[1].take(slice(0, 10)))


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
    at = seen(square, strikes, base)
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
    at = seen(square, strikes, np.random.default_rng(6).normal(size=(8, 3)))
    for mirrored in (True, False):
        diagonal = np.diag(covariance(at, at, mirrored)).reshape(8, 3)
        assert variance(at, mirrored) == pytest.approx(diagonal)


def test_fine_tuning_is_gated(surrogate, square):
    """Strikes of the surrogate itself need no step; a hundred would only fit what was measured badly."""
    rng = np.random.default_rng(2)
    strikes = sample_strikes(square, 10, rng)
    after = surrogate.predict(strikes, PARAMS)[0] + rng.normal(0, 0.03, (10, 3))
    recorded = RecordedStrikes(strikes, after)
    before = surrogate.predict(strikes, PARAMS)[0]
    tuned, steps = finetune_gated(surrogate, recorded, PARAMS)
    assert steps <= 10
    assert np.abs(finetune(surrogate, recorded, PARAMS).predict(strikes, PARAMS)[0] - before).max() > 1e-4
    assert np.array_equal(surrogate.predict(strikes, PARAMS)[0], before)
    assert (steps == 0) == np.array_equal(tuned.predict(strikes, PARAMS)[0], before)


def test_an_adapted_model_survives_storage(adapted, square, tmp_path):
    save_adapted(tmp_path / "one", adapted)
    stored = load_adapted(tmp_path / "one")
    save_adapted(tmp_path / "other", stored)
    assert sha256(tmp_path / "one") == sha256(tmp_path / "other")
    strikes = sample_strikes(square, 20, np.random.default_rng(3))
    assert stored(strikes) == pytest.approx(adapted(strikes), abs=1e-12)
    assert stored.sliding == adapted.sliding
    (tmp_path / "one" / "adapted.npz").unlink()
    with pytest.raises(CalibrationError, match="rsr clash adapt"):
        load_adapted(tmp_path / "one")


def test_equal_seeds_adapt_equally(surrogate, stand_ins, adapted, square):
    again = adapt(surrogate, stand_ins[1].take(slice(0, 10)))
    strikes = sample_strikes(square, 20, np.random.default_rng(4))
    assert np.array_equal(again(strikes), adapted(strikes))


def test_two_strikes_are_too_few(surrogate, stand_ins):
    with pytest.raises(CalibrationError, match="2 strikes"):
        adapt(surrogate, stand_ins[0].take(slice(0, 2)))


def test_all_methods_are_judged_on_the_same_unseen_strikes(surrogate, stand_ins):
    compared = compare({"default": surrogate}, stand_ins[1])
    names = {judged.name for judged in compared.methods}
    assert names == set(METHODS) - {"paper", "paper_normalised"}
    assert len(compared.judged_on) == 60
    assert all(len(judged.errors) == 60 for judged in compared.methods)
    assert compared["adapted"].accuracy > compared["untrained_normalised"].accuracy
    assert compared["adapted"].inside is not None
    assert compared["mujoco_grid"].inside is None


def test_few_strikes_are_judged_in_turns(surrogate, stand_ins):
    parts, how = splits(12)
    assert "in 5 turns" in how
    assert sorted(np.concatenate([unseen for _, unseen in parts])) == list(range(12))
    assert all(not set(fit) & set(unseen) for fit, unseen in parts)
    compared = compare({"default": surrogate}, stand_ins[0].take(slice(0, 12)), names=("identified", "analytic"))
    assert len(compared["identified"].errors) == 12


def test_the_learning_curve_rises(surrogate, stand_ins):
    curve = learning_curve(surrogate, stand_ins[1])
    assert list(curve) == [3, 5, 10, 20]
    assert curve[20] > curve[3]
    assert list(learning_curve(surrogate, stand_ins[1].take(slice(0, 12)))) == [3, 5]
