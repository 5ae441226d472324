"""Baselines of CLASH: all methods that the benchmark compares run on the same strikes and differ as they should."""

import numpy as np
import pytest

from benchmarks.baselines.strikes.finetuning import finetune, finetune_gated
from benchmarks.baselines.strikes.methods import METHODS, MethodInputs
from benchmarks.baselines.strikes.mujoco import ExpertRollout, PlainRollout
from benchmarks.baselines.strikes.paper import distil_as_paper, load_paper_surrogate, save_paper_surrogate
from rsr.learned.clash import accuracy, adapt, load_pairs
from rsr.realities.strikes import TUNING_SEEDS, StrikeStandIn
from rsr.scenarios.built_in.strike import RecordedStrikes, sample_strikes

PARAMS = np.array([0.3, 0.3, 0.3, 1.0])


@pytest.fixture(scope="module")
def papers(square, strikes_folder):
    pairs = load_pairs(strikes_folder)
    return {name: distil_as_paper(square, pairs, name, steps=200)[0] for name in ("paper", "normalised")}


@pytest.mark.slow
def test_every_method_predicts_strikes_that_it_was_not_fitted_to(surrogate, papers, square):
    recorded = StrikeStandIn(square, TUNING_SEEDS[1]).record(40)
    few, others = recorded.take(slice(0, 10)), recorded.take(slice(10, None))
    inputs = MethodInputs(surrogate, papers, few, ground_friction=0.3)
    found = {name: method(inputs)(others.strikes) for name, method in METHODS.items()}
    shares = {name: accuracy(square, predicted, others.after).scaled for name, predicted in found.items()}
    assert shares["adapted"] > shares["untrained_normalised"] + 0.2
    assert shares["adapted"] > shares["paper"] + 0.2
    assert shares["mujoco_grid"] > shares["paper"]
    assert np.array_equal(found["with_surrogate"], adapt(surrogate, few)(others.strikes))


def test_a_surrogate_of_the_paper_survives_storage(papers, square, tmp_path):
    strikes = sample_strikes(square, 5, np.random.default_rng(1))
    for name, surrogate in papers.items():
        save_paper_surrogate(tmp_path / name, surrogate)
        stored = load_paper_surrogate(tmp_path / name)
        assert stored.scaled == (name == "normalised")
        assert stored.predict(strikes, PARAMS)[0] == pytest.approx(surrogate.predict(strikes, PARAMS)[0], rel=1e-5)


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


def test_an_experts_loop_ends_where_fine_steps_all_the_way_end(square):
    strikes = sample_strikes(square, 4, np.random.default_rng(8))
    expected = PlainRollout(square, PARAMS)(strikes)
    for coarse_step_s in (0.002, 0.004):
        rests = ExpertRollout(square, PARAMS, coarse_step_s)(strikes)
        apart = np.linalg.norm((rests - expected)[:, :2], axis=1)
        # When within a step the two meet moves speeds by a percent or two, and slides by twice that.
        assert (apart < 0.003 + 0.05 * np.linalg.norm(expected[:, :2], axis=1)).all()
