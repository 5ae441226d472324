"""The benchmark runs and writes what it promises; its figures are judged where machines are quiet."""

import pytest

from tests.policies.test_policy_benchmarks import figures_of


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
