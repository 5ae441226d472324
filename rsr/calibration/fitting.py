"""From sessions to a calibration: what all methods have in common, around the one search in which they differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from rsr.calibration import identifiability
from rsr.calibration.contract import Calibration, Prior, Status
from rsr.calibration.evidence import HeldOut, split
from rsr.calibration.identifiability import Posterior
from rsr.calibration.loss import Loss
from rsr.calibration.refine import linearise, refine
from rsr.calibration.search import Search
from rsr.calibration.windows import Windows, choose, cut
from rsr.errors import CalibrationError
from rsr.progress import Advance
from rsr.randomness import derive_seed, generator
from rsr.scenarios import Scenario
from rsr.sessions import Episode, Session
from rsr.simulators import MujocoSimulator

_SEARCHED = 0.7
"""Share of the time that the search takes; the rest averages over ripples and replays."""


class Effort(BaseModel):
    """How much a fit simulates. With the defaults one of push_cube takes a quarter of a minute on two cores.

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
    max_windows: int = Field(default=64, ge=1)
    gap_horizon_steps: int | None = Field(default=None, ge=1)
    threads: int = Field(default=2, ge=1)


@dataclass(frozen=True)
class _Outcome:
    """What a fit came to: parameters [P], replays of the held-out episodes before and after, and the rest."""

    values: np.ndarray
    posterior: Posterior
    status: Status
    before: list[np.ndarray]
    after: list[np.ndarray]
    trace: np.ndarray
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class WindowCalibrator:
    """The `Calibrator` of every method that minimises `Loss` over windows.

    Args:
        fit_episodes: episodes to fit, drawn by seed, half of all at most; the others judge.
    """

    method: str
    search: Search
    fit_episodes: int
    effort: Effort

    def fit(
        self, scenario: Scenario, sessions: tuple[Session, ...], prior: Prior, seed: int, advance: Advance
    ) -> Calibration:
        """See `Calibrator.fit`."""
        episodes = _episodes(scenario, sessions)
        scenario.space.check(scenario.space.to_values(prior.mean))
        fitted, held_out = split(scenario, episodes, self.fit_episodes, generator(seed, "split"))
        windows = self._windows(scenario, [episodes[index] for index in fitted], seed)
        with MujocoSimulator(scenario, self.effort.threads) as simulator:
            judges = HeldOut(scenario, simulator, episodes, fitted, held_out, self.effort.gap_horizon_steps)
            loss = Loss(scenario, simulator, windows, prior)
            outcome = self._fitted(loss, judges, seed, advance) if len(windows) else _nothing_moves(loss, judges)
        advance(1.0, outcome.status)
        return _calibration(scenario, self.method, judges, outcome)

    def _windows(self, scenario: Scenario, episodes: list[Episode], seed: int) -> Windows:
        steps = self.effort.window_steps or scenario.window_steps
        every = cut(scenario, episodes, steps, stride=max(1, steps // 2))
        return choose(scenario, every, self.effort.max_windows, generator(seed, "windows"))

    def _fitted(self, loss: Loss, judges: HeldOut, seed: int, advance: Advance) -> _Outcome:
        """Search, average over ripples, and keep the result if it predicts the held-out episodes better."""
        found = self.search(loss, self.effort.budget, derive_seed(seed, "search"), _part(advance, 0.0, _SEARCHED))
        seed = derive_seed(seed, "refine")
        point, slope = refine(loss, found.point, seed, _part(advance, _SEARCHED, 0.95))
        origin = np.zeros(len(point))
        before, after = (judges.replays(loss.values(each)) for each in (origin, point))
        status: Status = found.status
        known = judges.evidence(before, after)
        if known.gap_after >= known.gap_before:
            point, after, status = origin, before, "no improvement"
            slope = linearise(loss, origin, np.linalg.inv(slope.precision), np.random.default_rng(seed))
        known_now = identifiability.posterior(loss, point, slope)
        return _Outcome(loss.values(point), known_now, status, before, after, found.trace)


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
        warnings=(*outcome.warnings, *identifiability.warnings(scenario.space, outcome.posterior, estimates)),
        replays=judges.kept(outcome.before, outcome.after),
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


def _part(advance: Advance, start: float, end: float) -> Advance:
    """Progress of one part of the work as progress of the whole."""
    return lambda share, words: advance(start + (end - start) * share, words)
