"""A week in a lab with nobody at the keyboard: real server, worker, automations and steps, small budgets."""

from __future__ import annotations

import pytest

from tests.policies.test_policy_benchmarks import figures_of


@pytest.mark.slow
def test_a_week_goes_by_without_a_hand(tmp_path):
    figures = figures_of("week", tmp_path)
    assert figures["nights"] == 2
    assert figures["automation_runs"] == 2, "one after the approval, one after the drop"
    assert figures["iterations"] == 2
    assert figures["drift_noticed"]
    assert figures["recalibrated"]
    assert figures["lost"] == figures["runs_failed"] == 0
