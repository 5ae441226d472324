import pytest
from test_policy_benchmarks import figures_of


@pytest.mark.slow
def test_deployment(tmp_path):
    figures = figures_of("deployment", tmp_path, "--steps", "2000", "--episodes", "1")
    assert figures["parity_max_error"] < 1e-5
    assert (figures["same_outcome"], figures["episodes"]) == (1.0, 3)
    assert 0 < figures["microseconds_per_action"] < 50_000
    assert all(0 <= figures[f"success_{name}"] <= 1 for name in ("stored", "exported", "robot"))
