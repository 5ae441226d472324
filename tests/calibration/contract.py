"""The contract of a calibrator as a test class: every method's tests inherit it."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from rsr.calibration import Calibration, Effort, Prior, calibrator, start_prior
from rsr.common.progress import ignore
from rsr.config import TuneConfig
from tests.calibration.recordings import recording, stillness
from tests.push_samples import push_cube

QUICK = Effort(budget=60, window_steps=8, max_windows=12)


@cache
def quick_fit(method: str, seed: int = 0, threads: int = 2) -> Calibration:
    fitting = calibrator(TuneConfig(method=method, fit_episodes=4), QUICK.model_copy(update={"threads": threads}))
    return fitting.fit(push_cube(), (recording(episodes=8, steps=50),), start_prior(push_cube()), seed, ignore)


class CalibratorContract:
    method: str

    @pytest.mark.slow
    def test_same_seed_same_result_whatever_the_threads(self):
        first, second = quick_fit(self.method), quick_fit(self.method, threads=1)
        assert first.estimates == second.estimates
        assert first.evidence == second.evidence
        np.testing.assert_array_equal(first.covariance, second.covariance)
        np.testing.assert_array_equal(first.trace, second.trace)

    @pytest.mark.slow
    def test_other_seed_other_split(self):
        assert quick_fit(self.method, seed=1).evidence.fitted != quick_fit(self.method).evidence.fitted

    def test_names_method_scenario_and_every_parameter(self):
        found = quick_fit(self.method)
        assert (found.method, found.scenario) == (self.method, "push_cube")
        assert tuple(found.estimates) == push_cube().space.names
        assert [each.unit for each in found.estimates.values()] == [each.unit for each in push_cube().space]

    def test_values_and_intervals_respect_the_bounds(self):
        for name, each in quick_fit(self.method).estimates.items():
            parameter = push_cube().space[name]
            assert parameter.lower <= each.lower <= each.value <= each.upper <= parameter.upper
        push_cube().space.check(quick_fit(self.method).vector())

    def test_covariance_is_one_and_no_wider_than_the_prior_allows(self):
        fit, space = quick_fit(self.method), push_cube().space
        covariance = fit.covariance
        np.testing.assert_allclose(covariance, covariance.T, atol=1e-12)
        assert (np.linalg.eigvalsh(covariance) > 0).all()
        # The prior's mean square distance from an estimate: its variance, and how far its mean is.
        away = space.to_coordinates(fit.vector()) - space.to_coordinates(space.nominal)
        assert (np.sqrt(np.diag(covariance)) <= np.hypot(space.prior_std, away) * (1 + 1e-9)).all()

    def test_evidence_is_of_held_out_episodes(self):
        evidence = quick_fit(self.method).evidence
        assert sorted(evidence.fitted + evidence.held_out) == list(range(8))
        assert len(evidence.fitted) == 4
        assert set(evidence.channels) == {observed.channel.name for observed in push_cube().observed}
        assert evidence.channels["block_position"] == (evidence.gap_before, evidence.gap_after)
        assert evidence.gap_after < evidence.gap_before
        assert evidence.gap_unit == "m"

    def test_says_how_wrong_the_model_is_and_on_which_windows(self):
        found = quick_fit(self.method)
        for observed in push_cube().observed:
            misfit = found.misfits[observed.channel.name]
            assert misfit.noises == misfit.error / observed.noise
            assert misfit.noises < 30, "the model is right but for its parameters and how windows begin"
        assert found.checks.windows.startswith("12 of 0.4 s from 4 episodes") or "to 0.4 s" in found.checks.windows
        assert "block_position" in found.checks.model_error
        assert not any("cannot express" in warning for warning in found.warnings)

    def test_replays_are_those_of_held_out_episodes(self):
        found = quick_fit(self.method)
        assert found.replays is not None
        np.testing.assert_array_equal(found.replays.episode, found.evidence.held_out)
        errors = [found.replays.before - found.replays.real, found.replays.after - found.replays.real]
        before, after = (np.sqrt(np.mean(np.sum(np.square(error[:, 4:]), axis=-1))) for error in errors)
        np.testing.assert_allclose((before, after), (found.evidence.gap_before, found.evidence.gap_after), rtol=1e-9)

    def test_trace_only_falls_and_counts_steps(self):
        steps, loss = quick_fit(self.method).trace.T
        assert len(steps) >= 1
        assert (np.diff(steps) > 0).all()
        assert (np.diff(loss) <= 0).all()

    def test_where_nothing_moves_nothing_is_identifiable(self):
        prior = start_prior(push_cube())
        fitting = calibrator(TuneConfig(method=self.method, fit_episodes=4), QUICK)
        found = fitting.fit(push_cube(), (stillness(),), prior, 0, ignore)
        assert {each.verdict for each in found.estimates.values()} == {"not identifiable"}
        np.testing.assert_allclose(found.vector(), push_cube().space.nominal)
        assert found.status == "no improvement"
        assert found.warnings == (
            "nothing moves in the 3 fitted episodes, so they carry no information on any parameter: "
            "record episodes in which the robot moves and touches.",
        )

    @pytest.mark.slow
    def test_truth_as_prior_is_kept_or_bettered(self):
        """Whatever the search comes to, a fit that predicts unseen episodes clearly worse than before is not taken."""
        scenario = push_cube()
        truth = scenario.space.to_coordinates(np.array([0.1, 0.25, 0.3, 2.0, 0.45, 0.08, 0.03]))
        fitting = calibrator(TuneConfig(method=self.method, fit_episodes=4), QUICK)
        prior = Prior(truth, scenario.space.prior_std)
        found = fitting.fit(scenario, (recording(episodes=8, steps=50),), prior, 0, ignore)
        assert found.evidence.cross_validated is not None, "four held-out episodes are few"
        assert found.status != "no improvement" or found.evidence.cross_validated >= 1.0
        assert found.status == "no improvement" or found.evidence.cross_validated < 1.1
        if found.status == "no improvement":
            np.testing.assert_allclose(found.vector(), scenario.space.to_values(truth))
            assert found.evidence.gap_after == found.evidence.gap_before
            assert tuple(found.rejected) == scenario.space.names
            assert any(warning.startswith("no improvement: the fit predicts unseen") for warning in found.warnings)

    def test_progress_ends_at_one_and_never_falls(self):
        heard: list[float] = []
        fitting = calibrator(TuneConfig(method=self.method, fit_episodes=2), QUICK.model_copy(update={"budget": 24}))
        fitting.fit(
            push_cube(), (recording(episodes=8, steps=50),), start_prior(push_cube()), 0, lambda s, _: heard.append(s)
        )
        assert heard[-1] == 1.0
        assert all(first <= second for first, second in pairwise(heard))
