"""How far ahead a model predicts: error against horizon, before and after a fit, from the same recorded states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rsr.api.arrays import Runs, fingerprint, sessions_of
from rsr.api.display import NotebookFigure, html_lines, html_table, text_table
from rsr.api.fit import Fit
from rsr.common import SessionError, generator
from rsr.scenarios import Scenario, difference, one_sided_rows, structured
from rsr.sessions import Episode
from rsr.simulators import UNSTABLE, MujocoSimulator, correct_sensors

HORIZONS_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Of these, those that the runs are long enough for."""
RESAMPLES = 1000
FEWEST_RUNS = 4
"""Below so many runs, an interval from resampling them would say little."""
_HEADER = ("channel", "after", "nominal", "fitted", "unit", "fitted / nominal", "95 % interval")


@dataclass(frozen=True, repr=False)
class HorizonErrors:
    """RMS error of each channel, so long after a simulation began in a recorded state.

    Nominal and fitted parameters begin in the same states. Shows itself as a table, in a notebook as HTML.

    Args:
        horizons_s: [H].
        nominal: channel -> [H], in the channel's unit (rad for orientations).
        fitted: the same with the fitted parameters.
        ratio: channel -> [H, 2], 95 % interval of fitted over nominal, from resampling runs; NaN with too few runs.
        units: channel -> unit.
        starts: how many simulations were compared.
        runs: how many runs they come from.
        warnings: what spoils the comparison.
    """

    horizons_s: np.ndarray
    nominal: Mapping[str, np.ndarray]
    fitted: Mapping[str, np.ndarray]
    ratio: Mapping[str, np.ndarray]
    units: Mapping[str, str]
    starts: int
    runs: int
    warnings: tuple[str, ...] = ()

    @property
    def channels(self) -> tuple[str, ...]:
        return tuple(self.nominal)

    def __repr__(self) -> str:
        return "\n".join([self._title, text_table(_HEADER, self._rows, left=(0, 4)), *self._notes])

    def _repr_html_(self) -> str:
        return str(html_lines([self._title]) + html_table(_HEADER, self._rows, left=(0, 4)) + html_lines(self._notes))

    @property
    def _title(self) -> str:
        return f"RMS error against horizon, {self.starts} simulations from {self.runs} runs"

    @property
    def _notes(self) -> list[str]:
        return [f"warning: {warning}" for warning in self.warnings]

    @property
    def _rows(self) -> list[tuple[str, ...]]:
        return [self._row(channel, column) for channel in self.channels for column in range(len(self.horizons_s))]

    def _row(self, channel: str, column: int) -> tuple[str, ...]:
        before, after = self.nominal[channel][column], self.fitted[channel][column]
        low, high = self.ratio[channel][column]
        return (
            channel,
            f"{self.horizons_s[column]:g} s",
            f"{before:.3g}",
            f"{after:.3g}",
            self.units[channel],
            f"{after / before:.2f}" if before > 0 else "",
            f"{low:.2f} to {high:.2f}" if np.isfinite(low) else "",
        )

    def plot(self) -> NotebookFigure:
        """Draw error against horizon, a panel a channel; a matplotlib figure."""
        from rsr.api.display import against_horizon

        return against_horizon(self)


def evaluate(scenario: Scenario, runs: Runs, fit: Fit, *, horizons_s: Sequence[float] | None = None) -> HorizonErrors:
    """Compare predictions with runs that were not fitted: error against horizon, before and after the fit.

    Simulations begin in recorded states, half the longest horizon apart, and replay the recorded commands. Where the
    scenario knows sensors to be wrong (delays, bias), they are corrected first, with the parameters that are judged.

    Args:
        runs: as `rsr.calibrate` takes them. Runs that were fitted are warned of.
        horizons_s: s; by default 0.05 to 5, as far as every run allows.

    Examples:
        >>> errors = rsr.evaluate(arm, other_runs, fit)  # doctest: +SKIP
        >>> errors.fitted["q"] / errors.nominal["q"]  # doctest: +SKIP
        array([0.21, 0.14, 0.11, 0.09])
    """
    episodes = [episode for session in sessions_of(scenario, runs) for episode in session.episodes]
    steps = _steps(scenario, episodes, horizons_s)
    models = (
        (scenario, scenario.space.nominal),
        (structured(scenario, fit.calibration.structure), fit.calibration.vector()),
    )
    corrected = [_corrected(model, episodes, params) for model, params in models]
    starts = _starts(scenario, episodes, corrected, int(steps[-1]))
    squares = [
        _squares(model, params, each, starts, steps) for (model, params), each in zip(models, corrected, strict=True)
    ]
    owner = np.array([index for index, _ in starts])
    before, after = ({name: np.sqrt(each.mean(axis=0)) for name, each in found.items()} for found in squares)
    return HorizonErrors(
        horizons_s=steps * scenario.control_dt_s,
        nominal=before,
        fitted=after,
        ratio={name: _ratio(squares[0][name], squares[1][name], owner) for name in before},
        units={
            each.channel.name: "rad" if each.kind == "quaternion" else each.channel.unit for each in scenario.observed
        },
        starts=len(starts),
        runs=len(set(owner.tolist())),
        warnings=_warnings(scenario, episodes, fit),
    )


def _steps(scenario: Scenario, episodes: Sequence[Episode], horizons_s: Sequence[float] | None) -> np.ndarray:
    """Horizons in control steps [H], none longer than the shortest run."""
    dt = scenario.control_dt_s
    longest = min(len(episode) for episode in episodes) - 1 - _lead(scenario)
    if horizons_s is None:
        usual = np.unique(np.round(np.array(HORIZONS_S) / dt).astype(int))
        steps = usual[(usual >= 1) & (usual <= longest)]
    else:
        steps = np.unique(np.round(np.array(horizons_s, float) / dt).astype(int))
    if not len(steps) or steps[0] < 1 or steps[-1] > longest:
        raise SessionError(
            got="no horizons" if not len(steps) else f"horizons of {steps[0] * dt:g} to {steps[-1] * dt:g} s",
            expected=f"{dt:g} s to {longest * dt:g} s, as the shortest run allows",
            where="rsr.evaluate, horizons_s",
            next_step="Choose others, or leave short runs out.",
        )
    return steps


def _lead(scenario: Scenario) -> int:
    """Rows before the first start: those of commands that still act, and of velocities differenced from both sides."""
    return max(scenario.history_steps, one_sided_rows(scenario.control_dt_s))


def _corrected(scenario: Scenario, episodes: Sequence[Episode], params: np.ndarray) -> list[Episode]:
    with MujocoSimulator(scenario) as simulator:
        return correct_sensors(scenario, simulator, episodes, params)


def _starts(
    scenario: Scenario, episodes: Sequence[Episode], corrected: Sequence[Sequence[Episode]], longest: int
) -> list[tuple[int, int]]:
    """(episode, row as recorded) where simulations begin: rows that all corrections have left, with what follows."""
    starts = []
    for index, episode in enumerate(episodes):
        kept = [each[index] for each in corrected]
        first = max(_offset(scenario, episode, each) for each in kept) + _lead(scenario)
        last = min(_offset(scenario, episode, each) + len(each) for each in kept) - 1 - longest
        starts += [(index, row) for row in range(first, last + 1, max(1, longest // 2))]
    if not starts:
        raise SessionError(
            got="runs that are too short once their sensors are corrected",
            expected=f"more than {longest * scenario.control_dt_s:g} s of a run",
            where="evaluate",
            next_step="Choose shorter horizons with `horizons_s`.",
        )
    return starts


def _offset(scenario: Scenario, recorded: Episode, corrected: Episode) -> int:
    """How many rows a correction cut off at the beginning."""
    return round(float(corrected.time_s[0] - recorded.time_s[0]) / scenario.control_dt_s)


def _squares(
    scenario: Scenario,
    params: np.ndarray,
    episodes: Sequence[Episode],
    starts: Sequence[tuple[int, int]],
    steps: np.ndarray,
) -> dict[str, np.ndarray]:
    """Squared length of the error of each start at each horizon: channel -> [N, H]."""
    states = [scenario.states(episode) for episode in episodes]
    begun = {index: round(float(episode.time_s[0]) / scenario.control_dt_s) for index, episode in enumerate(episodes)}
    places = [(index, row - begun[index]) for index, row in starts]
    with MujocoSimulator(scenario) as simulator:
        after = simulator.rollout(
            np.array([states[index][row] for index, row in places]),
            np.array([scenario.commands_from(episodes[index], row, int(steps[-1])) for index, row in places]),
            params,
        )[:, steps]
    measured, found = scenario.measure(after), {}
    for observed in scenario.observed:
        name = observed.channel.name
        real = np.array([episodes[index][name][row + steps] for index, row in places])
        error = difference(observed.kind, real, measured[name])
        error = np.nan_to_num(error, nan=UNSTABLE, posinf=UNSTABLE, neginf=-UNSTABLE)
        found[name] = np.square(error).sum(axis=-1)
    return found


def _ratio(before: np.ndarray, after: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """95 % interval [H, 2] of the ratio of RMS errors, from drawing runs with replacement, both models' alike."""
    runs = np.unique(owner)
    if len(runs) < FEWEST_RUNS:
        return np.full((before.shape[1], 2), np.nan)
    sums = [np.array([squares[owner == run].sum(axis=0) for run in runs]) for squares in (before, after)]
    drawn = generator(0, "evaluate").integers(len(runs), size=(RESAMPLES, len(runs)))
    first, second = (each[drawn].sum(axis=1) for each in sums)
    return np.percentile(np.sqrt(second / np.maximum(first, 1e-300)), [2.5, 97.5], axis=0).T


def _warnings(scenario: Scenario, episodes: Sequence[Episode], fit: Fit) -> tuple[str, ...]:
    known = sum(fingerprint(scenario, episode) in fit.fitted_runs for episode in episodes)
    if not known:
        return ()
    return (f"{known} of {len(episodes)} runs were fitted: on them the error says nothing of what the model is worth",)
