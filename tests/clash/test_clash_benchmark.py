"""The benchmark runs and writes what it promises; its figures are judged where machines are quiet."""

import runpy

import numpy as np
import pytest

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
    for key in ("accuracy_semi_cylinder", "accuracy_mujoco_grid", "inside_90_semi_cylinder"):
        assert 0 <= figures[key] <= 1
    assert figures["same_bytes_semi_cylinder"] is True
    assert figures["accuracy_semi_cylinder"] > figures["accuracy_semi_cylinder_untrained_normalised"]
    for key in ("speedup_strike_single", "speedup_strike_batched", "speedup_planning"):
        assert figures[key] > 1
    assert figures["plan_position_ratio_semi_cylinder"] > 0


@pytest.mark.slow
def test_pushing_along_routes(tmp_path):
    figures = figures_of("clash_sequence", tmp_path)
    for rules in ("paper", "narrow"):
        assert figures[f"gain_{rules}_low"] <= figures[f"gain_{rules}"] <= figures[f"gain_{rules}_high"]
        for simulator in ("hybrid", "mujoco"):
            assert 0 <= figures[f"success_{rules}_{simulator}"] <= 1
            assert figures[f"subgoals_{rules}_double_bend_{simulator}"] >= 0
    assert figures["training_seconds_mujoco"] > figures["training_seconds_hybrid"]


@pytest.mark.slow
def test_the_prior_of_residuals(tmp_path):
    figures = figures_of("strike_prior", tmp_path)
    assert np.isfinite(figures["likelihood_before"])
    assert figures["noise"] > 0
    assert figures["lengths_2_3"] > 0
