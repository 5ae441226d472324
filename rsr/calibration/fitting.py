"""From sessions to a calibration: what all methods have in common, around the one search in which they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from rsr.calibration.checks import (
    MARGIN,
    USUAL_WINDOWS,
    FittedProblem,
    at_prior_where_unknown,
    check,
    described,
    doubt_warnings,
    expressed,
    misfits,
)
from rsr.calibration.estimate import Longer, estimate
from rsr.calibration.interface import Calibration, Checks, Knowledge, Misfit, Prior, Status
from rsr.calibration.problem import (
    FEW,
    SHARES,
    Acceptance,
    Division,
    HeldOut,
    Loss,
    Replayed,
    Windows,
    best_share,
    choose,
    cut,
    folds,
    gap_warning,
    split,
    words,
)
from rsr.calibration.search import Search, StructureSelection, linearise, reweighted, select_structure, with_biases
from rsr.calibration.uncertainty import Posterior, correlation_warnings, earlier_sessions, identifiability
from rsr.common import Advance, CalibrationError, derive_seed, generator, ignore, part_of
from rsr.scenarios import Scenario, structured
from rsr.sessions import Episode, Session
from rsr.simulators import MujocoSimulator

_ESTIMATED = 0.9
"""Share of the time after which the estimate is there, and checks begin."""
FOLD_SHARE = 1 / 3
"""Of the budget, for each of the fits that cross-validation needs."""


class Effort(BaseModel):
    """Effort of a fit. With the defaults one of push_cube takes some eighty seconds of processor time.

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
    max_windows: int = Field(default=USUAL_WINDOWS, ge=1)
    gap_horizon_steps: int | None = Field(default=None, ge=1)
    threads: int = Field(default=2, ge=1)


@dataclass(frozen=True)
class _Outcome:
    """The outcome of a fit: parameters [P], replays of the held-out episodes before and after, and the rest."""

    values: np.ndarray
    posterior: Posterior
    status: Status
    before: Replayed
    after: Replayed
    trace: np.ndarray
    warnings: tuple[str, ...] = ()
    checks: Checks = field(default_factory=Checks)
    misfits: Mapping[str, Misfit] = field(default_factory=dict)
    rejected: Mapping[str, float] = field(default_factory=dict)
    cross_validated: float | None = None
    judged: str = ""
    """What became of the fit, in words."""


@dataclass(frozen=True)
class WindowCalibrator:
    """The `Calibrator` of every method that minimises `Loss` over windows.

    Args:
        fit_episodes: episodes to fit, drawn by seed; the others are held out, at least ten or half of all. Where there
            are no more and nothing earlier is known, all are fitted, and held out in turn.
        resamples: sets of episodes to fit again, to check the intervals.
        selects_structure: select among the structures that the scenario leaves open, by successive halving.
        division: which episodes may be fitted, and which judge.
    """

    method: str
    search: Search
    fit_episodes: int
    effort: Effort
    resamples: int = 0
    selects_structure: bool = False
    division: Division = field(default_factory=Division)

    def fit(
        self, scenario: Scenario, sessions: tuple[Session, ...], prior: Prior, seed: int, advance: Advance
    ) -> Calibration:
        """See `Calibrator.fit`."""
        episodes = _episodes(scenario, sessions)
        # A prior of an earlier scenario may lie outside of the bounds: refuse it before anything is simulated.
        scenario.space.check(scenario.space.to_values(prior.mean))
        # Values that earlier sessions are joined to have seen all that they were fitted to: then others must judge.
        alone = prior.earlier is None
        rng = generator(seed, "split")
        fitted, held_out = split(scenario, episodes, self.fit_episodes, rng, self.division, in_turn=alone)
        chosen = [episodes[index] for index in fitted]
        selection = self._selected(scenario, chosen, prior, seed, advance)
        scenario = structured(scenario, selection.chosen)
        windows = self._windows(scenario, chosen, seed)
        with MujocoSimulator(scenario, self.effort.threads) as simulator:
            unseen = HeldOut(scenario, simulator, episodes, fitted, held_out, self.effort.gap_horizon_steps)
            loss = with_biases(Loss(scenario, simulator, windows, prior))
            outcome = self._fitted(loss, unseen, seed, advance) if len(windows) else _without_information(loss, unseen)
            if prior.earlier is not None and prior.earlier.structure == selection.chosen:
                outcome = _with_earlier(outcome, prior, prior.earlier, unseen)
        advance(1.0, outcome.status)
        return replace(
            _calibration(scenario, self.method, unseen, outcome),
            structure=selection.chosen,
            structure_losses=selection.scores,
        )

    def _selected(
        self, scenario: Scenario, episodes: list[Episode], prior: Prior, seed: int, advance: Advance
    ) -> StructureSelection:
        if not self.selects_structure:
            return StructureSelection({}, {})
        if not scenario.structure:
            raise CalibrationError(
                got="no `structure`",
                expected="options and the values to compare",
                where=f"scenario {scenario.name}",
                next_step="Add `structure` to the scenario's YAML file, or calibrate without it.",
            )
        return select_structure(scenario, episodes, prior, seed, part_of(advance, 0.0, 0.0))

    def _windows(self, scenario: Scenario, episodes: list[Episode], seed: int) -> Windows:
        steps = self.effort.window_steps or scenario.window_steps
        # Windows overlap by half, so that a contact at a window's edge lies inside another one.
        every = cut(scenario, episodes, steps, stride=max(1, steps // 2))
        return choose(scenario, every, self.effort.max_windows, generator(seed, "windows"))

    def _longer(self, scenario: Scenario, episodes: list[Episode], seed: int) -> Longer:
        """Whole episodes, halves and quarters of them as windows; none where their length was asked for."""
        usual, lengths = scenario.window_steps, []
        if not (self.effort.window_steps or scenario.window_s):
            longest = max(map(len, episodes)) - 1 - scenario.history_steps
            lengths = [steps for steps in (longest, longest // 2, longest // 4) if steps > usual]

        def windows(steps: int) -> Windows:
            every = cut(scenario, episodes, steps, stride=max(1, usual // 2)).apart()
            count = max(1, self.effort.max_windows * usual // steps)
            return choose(scenario, every, count, generator(seed, "windows"))

        return Longer(lengths, windows)

    def _windows_in_words(self, loss: Loss) -> str:
        reason = "as asked for" if self.effort.window_steps else loss.scenario.window_reason
        if loss.windows.steps > loss.scenario.window_steps and not self.effort.window_steps:
            reason = "as long as the model's error stays below the noise"
        return words(loss.scenario, loss.windows, reason)

    def _fitted(self, loss: Loss, held_out: HeldOut, seed: int, advance: Advance) -> _Outcome:
        """Estimate, and keep the result if it predicts unseen episodes better."""
        episodes = [held_out.episodes[index] for index in held_out.fitted]
        longer, estimating = self._longer(loss.scenario, episodes, seed), part_of(advance, 0.0, _ESTIMATED)
        found = estimate(loss, self.search, self.effort.budget, longer, seed, estimating)
        loss, slope, marginal, status = found.loss, found.slope, found.marginal, found.status
        fitted_seed, seed = seed, derive_seed(seed, "refine")
        exact = loss.tangents is not None or found.search.sensitivity == "mjx"
        posterior = marginal.posterior(found.point, exact, seed)
        point = at_prior_where_unknown(loss, found.point, slope, posterior)
        posterior = identifiability.within_prior(posterior, point, loss.prior.std)
        misfit = misfits(reweighted(loss, point), episodes, point, marginal.loss.divergence())
        accepted = self._accepted(found.searched, held_out, point, fitted_seed)
        judged, rejected, share = accepted.remark, {}, accepted.taken
        if share == 0.0:
            status, rejected = "no improvement", loss.scenario.space.mapping(loss.values(point))
            judged = accepted.reason(rejected)
        if share < 1.0:
            left, point = (1.0 - share) * np.abs(point), share * point
            # The slope was taken around the fit; the checks need the one around the estimate.
            slope = linearise(loss, point, np.linalg.inv(slope.precision), np.random.default_rng(seed))
            posterior = marginal.posterior(point, exact, seed)
            if share > 0.0:
                std = np.sqrt(np.diag(posterior.covariance))
                posterior = identifiability.widened(posterior, np.hypot(std, left * loss.prior.std))
        problem = FittedProblem(
            loss, episodes, point, slope, posterior, found.search.sensitivity, held_out.held_out_episodes
        )
        checked = check(problem, self.resamples, fitted_seed, part_of(advance, _ESTIMATED, 1.0))
        return _Outcome(
            values=loss.values(point),
            posterior=earlier_sessions.doubted(checked.posterior, loss.scenario.space, checked.checks.doubts),
            status=status,
            before=accepted.before,
            after=accepted.after if share > 0.0 else accepted.before,
            trace=found.search.trace,
            warnings=(*expressed(misfit), found.search.remark, *checked.warnings),
            checks=replace(checked.checks, windows=self._windows_in_words(loss), model_error=described(misfit)),
            misfits=misfit,
            rejected=rejected,
            cross_validated=accepted.cross_validated,
            judged=judged,
        )

    def _accepted(self, loss: Loss, held_out: HeldOut, point: np.ndarray, seed: int) -> Acceptance:
        """Compare a fit [P] with the prior's mean on unseen episodes; where these are few, choose what lies between."""
        before = held_out.replays(loss.values(np.zeros(len(point))))  # with the prior's mean
        division = generator(seed, "folds"), self.division
        parts = folds(loss.scenario, held_out.episodes, held_out.fitted, *division)
        if len(parts) == 1 or (len(held_out.held_out) >= FEW and not held_out.crossed):
            return Acceptance(held_out, before, held_out.replays(loss.values(point)))
        losses = [self._only(loss, held_out, part, seed) for part in parts]
        others = [tuple(sorted(set(held_out.fitted) - set(part))) for part in parts]
        ends = [self._end(self._only(loss, held_out, other, seed), derive_seed(seed, "fold")) for other in others]
        # All folds in the residuals' final scales, so that their losses compare.
        pairs = zip(losses, ends, strict=True)
        judged = [_by_episode(fold, np.outer(SHARES, end)) for fold, end in pairs if len(fold.windows)]
        share, ratio = best_share(np.concatenate(judged))
        if held_out.crossed:
            after = held_out.replays_in_turn(parts, [loss.values(share * end) for end in ends])
        else:
            after = held_out.replays(loss.values(share * point))
        return Acceptance(held_out, before, after, share=share, cross_validated=ratio)

    def _only(self, loss: Loss, held_out: HeldOut, part: Sequence[int], seed: int) -> Loss:
        """The loss on windows of some episodes."""
        windows = self._windows(loss.scenario, [held_out.episodes[index] for index in part], seed)
        return with_biases(replace(loss, windows=windows, origin=None, biases=None))

    def _end(self, loss: Loss, seed: int) -> np.ndarray:
        """Where a short search ends [P]; at the prior's mean where nothing moves."""
        if not len(loss.windows):
            return np.zeros(len(loss.prior.mean))
        short = max(1, round(FOLD_SHARE * self.effort.budget))
        return self.search(reweighted(loss, loss.first), short, seed, ignore).point


def _with_earlier(outcome: _Outcome, prior: Prior, earlier: Knowledge, held_out: HeldOut) -> _Outcome:
    """Add a session's outcome to what earlier ones say, if that predicts its unseen episodes better."""
    space = held_out.scenario.space
    mean, before = space.to_coordinates(outcome.values), held_out.replays(space.to_values(earlier.mean))
    gap_then, gap_own = (held_out.evidence(before, each).gap_after for each in (before, outcome.after))
    # Intervals may be too narrow; a robot that changed is predicted worse by what it was, too.
    noticed = gap_then > MARGIN * gap_own
    changed = earlier_sessions.changes(space, earlier, prior, mean, outcome.posterior) if noticed else {}
    known = earlier_sessions.without(earlier, prior, space, changed)
    both, posterior = earlier_sessions.joined(known, prior, mean, outcome.posterior)
    values = np.clip(space.to_values(both), space.lower, space.upper)
    after = held_out.replays(values)
    gap = held_out.evidence(before, after).gap_after
    warnings = (*earlier_sessions.change_warnings(changed), *outcome.warnings)
    alone = replace(outcome, before=before, cross_validated=None, judged="")
    # Whole replays of a few episodes are mostly luck: then covariances decide alone.
    if gap < gap_then or (len(held_out.held_out) < FEW and not changed and outcome.status != "no improvement"):
        return replace(alone, values=values, posterior=posterior, after=after, warnings=warnings)
    if changed:  # and what seemed not to has changed with it
        return replace(alone, warnings=warnings)
    rejected = {} if np.allclose(both, earlier.mean) else space.mapping(values)  # a session that tells nothing
    reason = Acceptance(held_out, before, after, baseline="earlier sessions").reason(rejected) if rejected else ""
    return replace(
        alone,
        status="no improvement",
        values=space.to_values(earlier.mean),
        posterior=Posterior(earlier.covariance, earlier.data_std, earlier.degrees, shared=earlier.shared),
        after=before,
        rejected=rejected,
        judged=reason,
    )


def _by_episode(loss: Loss, points: np.ndarray) -> np.ndarray:
    """Losses [E, K] of the data of each episode at points [K, P]."""
    windows, episode = np.square(loss.misfits(points)).sum(axis=2), loss.windows.episode
    return np.stack([windows[:, episode == index].sum(axis=1) for index in np.unique(episode)])


def _without_information(loss: Loss, held_out: HeldOut) -> _Outcome:
    """Return the prior, as the outcome for recordings in which nothing moves."""
    values = loss.values(np.zeros(len(loss.prior.mean)))
    replays = held_out.replays(values)
    warning = (
        f"nothing moves in the {len(held_out.fitted)} fitted episodes, so they carry no information on any parameter: "
        "record episodes in which the robot moves and touches."
    )
    prior = identifiability.prior_only(loss.scenario.space, loss.prior.std)
    return _Outcome(values, prior, "no improvement", replays, replays, np.zeros((0, 2)), (warning,))


def _calibration(scenario: Scenario, method: str, held_out: HeldOut, outcome: _Outcome) -> Calibration:
    estimates = identifiability.estimates(scenario.space, outcome.values, outcome.posterior)
    doubts = {name: why for name, why in outcome.checks.doubts.items() if estimates[name].verdict == "weak"}
    evidence = replace(held_out.evidence(outcome.before, outcome.after), cross_validated=outcome.cross_validated)
    warnings = (
        outcome.judged,
        gap_warning(evidence),
        *outcome.warnings,
        *identifiability.at_bound_warnings(estimates),
        *correlation_warnings(scenario, outcome.posterior, estimates),
        *doubt_warnings(doubts),
    )
    return Calibration(
        scenario=scenario.name,
        method=method,
        estimates=estimates,
        covariance=outcome.posterior.covariance,
        status=outcome.status,
        shared=outcome.posterior.shared,
        degrees=outcome.posterior.degrees,
        data_std=dict(zip(scenario.space.names, outcome.posterior.data_std.tolist(), strict=True)),
        evidence=evidence,
        trace=outcome.trace,
        warnings=tuple(filter(None, warnings)),
        replays=held_out.shown(outcome.before, outcome.after),
        checks=outcome.checks,
        misfits=outcome.misfits,
        rejected=outcome.rejected,
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
