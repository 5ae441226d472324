"""The benchmark runs and writes what it promises; its figures are judged where machines are quiet."""

import runpy

import numpy as np
import pytest

from benchmarks.baselines.strikes.methods import METHODS
from rsr.learned.clash.residual import PRIOR
from rsr.learned.clash.segment import ROUTES
from tests.policies.test_policy_benchmarks import ROOT, figures_of


def test_what_an_interrupted_run_kept_is_not_measured_again(tmp_path):
    kept = runpy.run_path(str(ROOT / "benchmarks/_common.py"))["kept"]
    measured = []

    def measure():
        measured.append(1)
        return {"share": np.float64(0.5)}

    assert [kept(tmp_path / "parts", "one", measure) for _ in range(3)] == [{"share": 0.5}] * 3
    assert len(measured) == 1
    assert kept(None, "one", measure) == {"share": 0.5}
    assert len(measured) == 2


@pytest.mark.slow
def test_clash(tmp_path):
    figures = figures_of("clash", tmp_path)
    assert all(isinstance(value, int | float) for value in figures.values())
    shares = {
        key: value for key, value in figures.items() if key.startswith(("accuracy_semi", "control_semi", "curve"))
    }
    methods = {key.removeprefix("accuracy_semi_cylinder_") for key in shares}
    assert set(METHODS) - {"adapted"} <= methods
    assert all(value <= 1 for value in shares.values())
    # Coarse, since the training is a tenth: but each line falls if a model or a baseline comes out broken.
    assert figures["accuracy_semi_cylinder"] > figures["accuracy_semi_cylinder_identified"]
    assert figures["accuracy_semi_cylinder"] > 0.6
    assert figures["accuracy_mujoco_grid"] > figures["accuracy_semi_cylinder_paper"]
    assert 0.7 < figures["inside_90_semi_cylinder"] < 1
    assert figures["same_bytes_semi_cylinder"] is True
    assert figures["accuracy_semi_cylinder"] > figures["accuracy_semi_cylinder_untrained_normalised"]
    for key in ("speedup_strike_single", "speedup_strike_batched", "speedup_planning"):
        assert figures[key] > 1
    low, high = (figures[f"plan_position_ratio_semi_cylinder_{end}"] for end in ("low", "high"))
    assert 0 < low <= figures["plan_position_ratio_semi_cylinder"] <= high < 3


@pytest.mark.slow
def test_pushing_along_routes(tmp_path):
    figures = figures_of("clash_sequence", tmp_path)
    for rules in ("paper", "narrow"):
        assert figures[f"gain_{rules}_low"] <= figures[f"gain_{rules}"] <= figures[f"gain_{rules}_high"]
        for simulator in ("hybrid", "mujoco"):
            routes = [figures[f"success_{rules}_{route}_{simulator}"] for route in ROUTES]
            assert figures[f"success_{rules}_{simulator}"] == pytest.approx(np.mean(routes))
            for route in ROUTES:  # whoever completes a route has completed all its segments
                assert (
                    figures[f"subgoals_{rules}_{route}_{simulator}"] >= figures[f"success_{rules}_{route}_{simulator}"]
                )
        gain = figures[f"success_{rules}_hybrid"] - figures[f"success_{rules}_mujoco"]
        assert figures[f"gain_{rules}"] == pytest.approx(gain)
    assert figures["training_seconds_mujoco"] > figures["training_seconds_hybrid"]


@pytest.mark.slow
def test_the_prior_of_residuals(tmp_path):
    figures = figures_of("strike_prior", tmp_path)
    assert figures["likelihood_after"] > figures["likelihood_before"], "three steps uphill"
    learnt = np.array([[figures[f"lengths_{i}_{j}"] for j in range(4)] for i in range(3)])
    assert learnt == pytest.approx(PRIOR.lengths, rel=0.5)
    assert not np.allclose(learnt, PRIOR.lengths)
