"""Held-out evidence: how well a simulator predicts episodes that the fit never saw, replayed open loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rsr.calibration import Evidence, Replays
from rsr.calibration.problem.division import Division
from rsr.calibration.problem.windows import first_start
from rsr.common import CalibrationError
from rsr.scenarios import Scenario, residuals, rms
from rsr.sessions import Episode
from rsr.simulators import Simulator, correct_sensors

_AT_RANDOM = Division()
SHOWN = 12
"""Held-out episodes whose replays are kept."""
FEW = 10
"""Held-out episodes below which a fit is cross-validated in the loss: a whole replay of three tosses is mostly their
luck, for impacts amplify every error."""
_HALVES = 6
"""Trials from which on there are two folds; of fewer three, for half of them would be too little to fit."""


def split(
    scenario: Scenario,
    episodes: Sequence[Episode],
    fit_episodes: int,
    rng: np.random.Generator,
    division: Division = _AT_RANDOM,
    in_turn: bool = True,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Draw which episodes are fitted, unless the judging ones are named; all others are held out.

    At least `FEW` are held out, or half of all where that is less. Episodes that repeat one trial (`Scenario.group`)
    stay on one side.

    Args:
        in_turn: where all may be fitted they are, unless a division is asked for, and all are held out as well: in
            turn, by `folds`.
    """
    named = len(episodes) - division.judging
    trials = division.trials(scenario, episodes[:named] if division.judging else episodes)
    if division.judging and trials:
        order = division.order(trials, episodes, rng)
        fitted = _drawn(trials, order, fit_episodes)
        return tuple(sorted(fitted)), tuple(range(named, len(episodes)))
    if len(trials) < 2:
        raise CalibrationError(
            got="no episode" if not episodes else f"{len(episodes)} of one trial",
            expected="at least 2 episodes of different trials: one to fit, one to hold out",
            where="sessions to calibrate on",
            next_step="Record more episodes, or name a further session.",
        )
    everyone = tuple(range(len(episodes)))
    if in_turn and division == _AT_RANDOM and len(everyone) <= fit_episodes:
        return everyone, everyone
    most = len(everyone) - min(FEW, len(everyone) // 2)
    fitted = _drawn(trials, division.order(trials, episodes, rng), min(fit_episodes, most))
    return tuple(sorted(fitted)), tuple(index for index in everyone if index not in set(fitted))


def folds(
    scenario: Scenario, episodes: Sequence[Episode], fitted: Sequence[int], rng: np.random.Generator, division: Division
) -> list[tuple[int, ...]]:
    """Divide fitted episodes into folds, by trials: two, or three if they are few; one if there is one trial.

    Returns:
        Positions in `episodes`.
    """
    chosen = [episodes[index] for index in fitted]
    trials = division.trials(scenario, chosen)
    order = division.order(trials, chosen, rng)
    count = 2 if len(order) >= _HALVES else 3
    parts = [order[start::count] for start in range(min(count, len(order)))]
    return [tuple(sorted(fitted[place] for trial in part for place in trials[trial])) for part in parts]


def _drawn(trials: list[list[int]], order: Sequence[int], limit: int) -> list[int]:
    """Take trials in an order, as many episodes as a limit allows, and the first trial in any case."""
    fitted: list[int] = []
    # Whole trials at a time: repeats of one trial on both sides would make the held-out error look too good.
    for number, trial in enumerate(order):
        if number == 0 or len(fitted) + len(trials[trial]) <= limit:
            fitted += trials[trial]
    return fitted


def replay(
    scenario: Scenario,
    simulator: Simulator,
    episodes: Sequence[Episode],
    params: np.ndarray,
    horizon_steps: int | None = None,
) -> list[np.ndarray]:
    """Replay recorded commands open loop, restarted from the recorded state every `horizon_steps` control steps.

    By default those of the scenario. Over 2 s of push_cube even a stand-in's true parameters lower the nominal gap by
    no more than 1.3 to 1.8 times, for millimetres at the start then decide whether and where the finger meets the
    cube; over 1 s it is 2 to 3.5 times.

    Args:
        params: [P], physical units.

    Returns:
        For each episode the predicted states [T + 1, nq + nv]. Rows up to the first start (`first_start`) are the
        recorded states; at later restarts the row is still the prediction.
    """
    # Contact amplifies errors exponentially: without restarts the error at the end says nothing of the parameters.
    horizon_steps = horizon_steps or scenario.gap_horizon_steps
    predicted = [scenario.states(episode) for episode in episodes]
    places = [
        (index, row) for index, episode in enumerate(episodes) for row in _starts(scenario, episode, horizon_steps)
    ]
    after = simulator.rollout(
        np.array([predicted[index][row] for index, row in places]),
        np.array([scenario.commands_from(episodes[index], row, horizon_steps) for index, row in places]),
        params,
    )[:, 1:]
    for (index, row), states in zip(places, after, strict=True):
        rows = predicted[index][row + 1 : row + 1 + horizon_steps]
        rows[:] = states[: len(rows)]
    return predicted


def _starts(scenario: Scenario, episode: Episode, horizon_steps: int) -> range:
    """Rows at which a replay is put on the recording, the first one included."""
    return range(first_start(scenario, episode, 1), len(episode) - 1, horizon_steps)


def channel_rms(scenario: Scenario, episodes: Sequence[Episode], predicted: Sequence[np.ndarray]) -> dict[str, float]:
    """RMS difference of each observed channel over all predicted rows of all episodes, in the channel's unit."""
    each = [replay_errors(scenario, *pair) for pair in zip(episodes, predicted, strict=True)]
    return {name: rms(np.concatenate([errors[name] for errors in each])) for name in each[0]}


def replay_errors(scenario: Scenario, episode: Episode, states: np.ndarray) -> dict[str, np.ndarray]:
    """Differences [rows, C] of each observed channel over the predicted rows of an episode."""
    first = first_start(scenario, episode, 1) + 1
    simulated = {name: values[first:] for name, values in scenario.measure(states).items()}
    return residuals(scenario, {name: episode[name][first:] for name in simulated}, simulated)


@dataclass(frozen=True)
class Replayed:
    """Episodes, and the states [T + 1, nq + nv] that a simulator makes of each."""

    episodes: Sequence[Episode]
    states: Sequence[np.ndarray]


@dataclass(frozen=True)
class HeldOut:
    """Episodes that a fit does not see, and how they are replayed.

    Args:
        episodes: all there are; `fitted` and `held_out` are positions in them, the same if all are held out in turn.
    """

    scenario: Scenario
    simulator: Simulator
    episodes: Sequence[Episode]
    fitted: tuple[int, ...]
    held_out: tuple[int, ...]
    horizon_steps: int | None = None

    @property
    def held_out_episodes(self) -> list[Episode]:
        return [self.episodes[index] for index in self.held_out]

    @property
    def crossed(self) -> bool:
        """Whether all are fitted, and held out in turn."""
        return self.held_out == self.fitted

    def replays_in_turn(self, folds: Sequence[tuple[int, ...]], values: Sequence[np.ndarray]) -> Replayed:
        """Replay the episodes of each fold with parameters [P] of its own."""
        pairs = zip(folds, values, strict=True)
        parts = [(fold, replace(self, held_out=fold).replays(params)) for fold, params in pairs]
        found = {
            index: pair for fold, part in parts for index, *pair in zip(fold, part.episodes, part.states, strict=True)
        }
        return Replayed(*zip(*(found[index] for index in self.held_out), strict=True))

    def replays(self, values: np.ndarray) -> Replayed:
        """Replay the held-out episodes with parameters [P], after sensor correction with these parameters."""
        episodes = correct_sensors(self.scenario, self.simulator, self.held_out_episodes, values)
        return Replayed(episodes, replay(self.scenario, self.simulator, episodes, values, self.horizon_steps))

    def evidence(self, before: Replayed, after: Replayed) -> Evidence:
        """Compare two sets of replays with what was recorded."""
        errors = [channel_rms(self.scenario, each.episodes, each.states) for each in (before, after)]
        gap = self.scenario.observed_channel(self.scenario.gap_channel)
        return Evidence(
            gap_before=errors[0][gap.channel.name],
            gap_after=errors[1][gap.channel.name],
            gap_unit="rad" if gap.kind == "quaternion" else gap.channel.unit,
            channels={name: (errors[0][name], errors[1][name]) for name in errors[0]},
            fitted=self.fitted,
            held_out=self.held_out,
        )

    def shown(self, before: Replayed, after: Replayed) -> Replays:
        """Collect the gap channel of the first `SHOWN` episodes; the recording is corrected with the estimate."""
        name, episodes = self.scenario.gap_channel, after.episodes[:SHOWN]
        rows = max(len(episode) for episode in (*episodes, *before.episodes[:SHOWN]))
        recorded = [episode[name] for episode in episodes]
        replayed = [[self.scenario.measure(states)[name] for states in each.states[:SHOWN]] for each in (before, after)]
        real, first, second = (np.stack([_held(path, rows) for path in paths]) for paths in (recorded, *replayed))
        longest = max(episodes, key=len)
        restarts = _starts(self.scenario, longest, self.horizon_steps or self.scenario.gap_horizon_steps)[1:]
        return Replays(np.array(self.held_out[:SHOWN]), real, first, second, np.array(restarts, int))


def _held(path: np.ndarray, rows: int) -> np.ndarray:
    """Lengthen a path [T, width] to `rows` by repeating its last row."""
    return np.concatenate([path, np.repeat(path[-1:], rows - len(path), axis=0)])
