"""From sessions to a calibration: what all methods have in common, around the one search in which they differ."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from rsr.calibration import identifiability, together
from rsr.calibration.checking import Subject, check
from rsr.calibration.contract import Calibration, Checks, Prior, Status
from rsr.calibration.evidence import HeldOut, Replayed, split
from rsr.calibration.identifiability import Posterior
from rsr.calibration.loss import Loss
from rsr.calibration.racing import Race, race
from rsr.calibration.refine import linearise, refine
from rsr.calibration.search import Found, Search
from rsr.calibration.starts import free_of_starts
from rsr.calibration.windows import Windows, choose, cut
from rsr.calibration.zeros import ROUNDS, around_zeros, with_zeros
from rsr.errors import CalibrationError
from rsr.progress import Advance, part_of
from rsr.randomness import derive_seed, generator
from rsr.scenarios import Scenario
from rsr.scenarios.structure import structured
from rsr.sessions import Episode, Session
from rsr.simulators import MujocoSimulator

_SEARCHED, _REFINED, _FREED = 0.55, 0.7, 0.9
"""Shares of the time after the search, after averaging over ripples and after doing so without errors of the starts."""


class Effort(BaseModel):
    """How much a fit simulates. With the defaults one of push_cube takes some forty seconds of one core's time.

    Args:
        budget: points that the search may evaluate.
        window_steps: control steps in a window; by default those of the scenario.
        max_windows: windows that every point is evaluated on.
        gap_horizon_steps: control steps that held-out episodes are replayed between restarts; by default those of the
            scenario.
        threads: of the simulator; they do not change the result.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    budget: int = Field(default=960, ge=1)
    window_steps: int | None = Field(default=None, ge=1)
    max_windows: int = Field(default=192, ge=1)
    gap_horizon_steps: int | None = Field(default=None, ge=1)
    threads: int = Field(default=2, ge=1)


@dataclass(frozen=True)
class _Outcome:
    """What a fit came to: parameters [P], replays of the held-out episodes before and after, and the rest."""

    values: np.ndarray
    posterior: Posterior
    status: Status
    before: Replayed
    after: Replayed
    trace: np.ndarray
    warnings: tuple[str, ...] = ()
    checks: Checks = field(default_factory=Checks)


@dataclass(frozen=True)
class WindowCalibrator:
    """The `Calibrator` of every method that minimises `Loss` over windows.

    Args:
        fit_episodes: episodes to fit, drawn by seed, half of all at most; the others judge.
        resamples: sets of episodes to fit again, to check the intervals.
        races: let the structures race that the scenario leaves open.
    """

    method: str
    search: Search
    fit_episodes: int
    effort: Effort
    resamples: int = 0
    races: bool = False

    def fit(
        self, scenario: Scenario, sessions: tuple[Session, ...], prior: Prior, seed: int, advance: Advance
    ) -> Calibration:
        """See `Calibrator.fit`."""
        episodes = _episodes(scenario, sessions)
        scenario.space.check(scenario.space.to_values(prior.mean))
        fitted, held_out = split(scenario, episodes, self.fit_episodes, generator(seed, "split"))
        chosen = [episodes[index] for index in fitted]
        ran = self._raced(scenario, chosen, prior, seed, advance)
        scenario = structured(scenario, ran.chosen)
        windows = self._windows(scenario, chosen, seed)
        with MujocoSimulator(scenario, self.effort.threads) as simulator:
            judges = HeldOut(scenario, simulator, episodes, fitted, held_out, self.effort.gap_horizon_steps)
            loss = with_zeros(Loss(scenario, simulator, windows, prior))
            outcome = self._fitted(loss, judges, seed, advance) if len(windows) else _nothing_moves(loss, judges)
        advance(1.0, outcome.status)
        return replace(_calibration(scenario, self.method, judges, outcome), structure=ran.chosen, race=ran.scores)

    def _raced(self, scenario: Scenario, episodes: list[Episode], prior: Prior, seed: int, advance: Advance) -> Race:
        if not self.races:
            return Race({}, {})
        if not scenario.structure:
            raise CalibrationError(
                got="no `structure`",
                expected="options and the values to compare",
                where=f"scenario {scenario.name}",
                next_step="Add `structure` to the scenario's YAML file, or calibrate without it.",
            )
        return race(scenario, episodes, prior, seed, part_of(advance, 0.0, 0.0))

    def _windows(self, scenario: Scenario, episodes: list[Episode], seed: int) -> Windows:
        steps = self.effort.window_steps or scenario.window_steps
        every = cut(scenario, episodes, steps, stride=max(1, steps // 2))
        return choose(scenario, every, self.effort.max_windows, generator(seed, "windows"))

    def _fitted(self, loss: Loss, judges: HeldOut, seed: int, advance: Advance) -> _Outcome:
        """Search, average over ripples, and keep the result if it predicts the held-out episodes better."""
        loss, found = self._searched(loss, seed, part_of(advance, 0.0, _SEARCHED))
        fitted_seed, seed = seed, derive_seed(seed, "refine")
        point, slope = refine(loss, found.point, seed, part_of(advance, _SEARCHED, _REFINED))
        freed, origin = free_of_starts(loss, point, seed, part_of(advance, _REFINED, _FREED)), np.zeros(len(point))
        before, after = (judges.replays(loss.values(each)) for each in (origin, point))
        status: Status = found.status
        known = judges.evidence(before, after)
        if known.gap_after >= known.gap_before:
            point, after, status = origin, before, "no improvement"
            slope = linearise(loss, origin, np.linalg.inv(slope.precision), np.random.default_rng(seed))
        episodes = [judges.episodes[index] for index in judges.fitted]
        known_now = freed.posterior(point, exact=found.sensitivity == "mjx", seed=seed)
        subject = Subject(loss, episodes, point, slope, known_now, found.sensitivity)
        checked = check(subject, self.resamples, fitted_seed, part_of(advance, _FREED, 1.0))
        return _Outcome(
            loss.values(point), checked.posterior, status, before, after, found.trace, checked.warnings, checked.checks
        )

    def _searched(self, loss: Loss, seed: int, advance: Advance) -> tuple[Loss, Found]:
        """Search; where zeros differ from episode to episode, search again around those that were found."""
        rounds = ROUNDS if loss.zeros else 1
        for turn in range(rounds - 1):
            part = part_of(advance, turn / rounds, (turn + 1) / rounds)
            found = self.search(loss, self.effort.budget, derive_seed(seed, "search"), part)
            loss = around_zeros(loss, found.point)
        last = part_of(advance, 1 - 1 / rounds, 1.0)
        found = self.search(loss, self.effort.budget, derive_seed(seed, "search"), last)
        return (around_zeros(loss, found.point) if loss.zeros else loss), found


def _nothing_moves(loss: Loss, judges: HeldOut) -> _Outcome:
    """What recordings say in which nothing moves: nothing."""
    values = loss.values(np.zeros(len(loss.prior.mean)))
    replays = judges.replays(values)
    warning = (
        f"nothing moves in the {len(judges.fitted)} fitted episodes, so no parameter can be told from them: "
        "record episodes in which the robot moves and touches."
    )
    silence = identifiability.ignorance(loss.scenario.space, loss.prior.std)
    return _Outcome(values, silence, "no improvement", replays, replays, np.zeros((0, 2)), (warning,))


def _calibration(scenario: Scenario, method: str, judges: HeldOut, outcome: _Outcome) -> Calibration:
    estimates = identifiability.estimates(scenario.space, outcome.values, outcome.posterior)
    return Calibration(
        scenario=scenario.name,
        method=method,
        estimates=estimates,
        covariance=outcome.posterior.covariance,
        status=outcome.status,
        evidence=judges.evidence(outcome.before, outcome.after),
        trace=outcome.trace,
        warnings=(
            *outcome.warnings,
            *identifiability.at_bound(estimates),
            *together.warnings(scenario, outcome.posterior.covariance, estimates),
        ),
        replays=judges.kept(outcome.before, outcome.after),
        checks=outcome.checks,
    )


def _episodes(scenario: Scenario, sessions: tuple[Session, ...]) -> tuple[Episode, ...]:
    """All episodes, one session after the other, if they belong to the scenario."""
    for session in sessions:
        if session.card.scenario != scenario.name:
            raise CalibrationError(
                got=f"a session of scenario {session.card.scenario}",
                expected=f"one of scenario {scenario.name}",
                where=f"session {session.card.session}",
                next_step="Name the scenario that it was recorded for.",
            )
    return tuple(episode for session in sessions for episode in session.episodes)
