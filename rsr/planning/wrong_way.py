"""Channels recorded the wrong way round: an axis mirrored, two columns swapped, a zero a quarter turn off, ...

Such a recording passes every check of single channels, and a fit to it converges. Yet the scene moves otherwise: with
that one channel corrected, even nominal parameters predict the next tenths of a second far better.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import mujoco
import numpy as np

from rsr.calibration import Loss, Windows, choose, cut, start_prior
from rsr.scenarios import Observed, Scenario
from rsr.sessions import Episode, Finding, Session
from rsr.simulators import MujocoSimulator

_WINDOW_S, _LEAST_ROWS = 0.1, 4
"""Long enough for forces to show, short enough for a wrong parameter, or the next impact, not to."""
_WINDOWS, LEAST_WINDOWS, _MOST_EPISODES, _MOST_ROWS = 96, 16, 12, 1000
_MOST_SWAPS = 15
"""All pairs of six columns; each is as dear as a sign."""
_RATIO, _SIGNIFICANT = 0.6, -4.0
"""How far the error must fall, in the geometric mean over windows, and by how many standard errors of its logarithm:
some forty ways to be wrong are tried, and each may fit better in a few windows by chance."""


@dataclass(frozen=True)
class _Change:
    """One channel corrected in one way.

    Args:
        columns: of the channel's differences, in which it shows; None where it shows in what else moves: a body that
            turns the other way round is as free a motion, but its origin then goes round its centre of mass wrongly.
        words: as the recording would be wrong.
        remedy: what puts it right.
        apply: rows [T, C] as recorded -> as they should be.
    """

    channel: str
    columns: list[int] | None
    words: str
    remedy: str
    apply: Callable[[np.ndarray], np.ndarray]


def judge_directions(scenario: Scenario, session: Session) -> Iterator[Finding]:
    """Find the channel that is predicted far better the other way round, with nominal parameters."""
    errors = _errors(scenario, looked_at(session))
    likely = [
        each
        for each in map(_compared, errors)
        if max(each.ratio, each.of_rest) < _RATIO and each.significance < _SIGNIFICANT
    ]
    if not likely:
        return
    best = min(likely, key=lambda each: each.ratio)
    yield Finding(
        "care", "physics", f"session '{session.card.session}', channel '{best.change.channel}'",
        got=f"motions that the scene, with nominal parameters, predicts better if {best.change.words}: the squared "
        f"error is {1 / best.ratio:.1f} times smaller, in the mean of {best.windows} windows",
        expected="axes, signs and zeros as in the scene",
        next_step=f"Look at one motion whose direction you know. If it is so: {best.change.remedy}.",
    )  # fmt: skip


_Errors = tuple[_Change, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class _Compared:
    """Squared error with a change over that as recorded, its logarithm in standard errors; and over that at rest."""

    change: _Change
    ratio: float
    significance: float
    of_rest: float
    windows: int


def _compared(errors: _Errors) -> _Compared:
    change, before, after, resting = errors
    gains = np.log(after / before).mean(axis=1)
    error = max(float(gains.std(ddof=1)) / np.sqrt(len(gains)), 1e-12)
    of_rest = float(np.exp(np.log(after / resting).mean()))
    return _Compared(change, float(np.exp(gains.mean())), float(gains.mean()) / error, of_rest, len(gains))


def looked_at(session: Session) -> tuple[Episode, ...]:
    """The beginnings of some episodes, evenly over the session."""
    return tuple(map(_beginning, session.episodes[:: max(1, len(session.episodes) // _MOST_EPISODES)]))


def short_windows(scenario: Scenario, episodes: tuple[Episode, ...]) -> Windows:
    """Windows of a tenth of a second in which something moves."""
    steps = max(_LEAST_ROWS, round(_WINDOW_S / scenario.control_dt_s))
    return choose(scenario, cut(scenario, episodes, steps, stride=steps), _WINDOWS, np.random.default_rng(0))


def _errors(scenario: Scenario, episodes: tuple[Episode, ...]) -> list[_Errors]:
    """Errors [W, K] of nominal predictions as recorded, with each change, at rest; none if windows are too few."""
    windows = short_windows(scenario, episodes)
    if len(windows) < LEAST_WINDOWS:
        return []
    steps = windows.steps
    places, changed = _places(windows), []
    with MujocoSimulator(scenario) as simulator:
        loss = Loss(scenario, simulator, windows, start_prior(scenario))
        tried = [each for observed in scenario.observed for each in _changes(scenario, observed)]
        for change in (*tried, *_changes_of_commands(scenario)):
            again = cut(scenario, [_put_right(episode, change) for episode in episodes], steps, stride=steps)
            rows = _places(again)
            both = [place for place in places if place in rows]  # another row may be the quietest of its stretch
            if len(both) >= LEAST_WINDOWS:
                pair = (windows.take(_of(places, both)), again.take(_of(rows, both)))
                before, after = (replace(loss, windows=each) for each in pair)
                compared = (_apart(before), _apart(after), _at_rest(after))
                changed.append((change, *(_error(each, change, scenario) for each in compared)))
    return changed


def _beginning(episode: Episode) -> Episode:
    rows = slice(_MOST_ROWS)  # each change smooths them all again, for 96 windows of a tenth of a second
    return replace(episode, time_s=episode.time_s[rows], values={n: v[rows] for n, v in episode.values.items()})


def _places(windows: Windows) -> dict[tuple[int, int], int]:
    """Index of each window by its episode and first row."""
    found = zip(windows.episode.tolist(), windows.first_row.tolist(), strict=True)
    return {place: index for index, place in enumerate(found)}


def _of(index: dict[tuple[int, int], int], places: list[tuple[int, int]]) -> np.ndarray:
    return np.array([index[place] for place in places])


def _apart(loss: Loss) -> dict[str, np.ndarray]:
    """How far nominal predictions are off [W, T, C]."""
    return loss.differences(np.zeros(len(loss.scenario.space)))


def _at_rest(loss: Loss) -> dict[str, np.ndarray]:
    """The same of no motion at all, which a change must beat too.

    What is put elsewhere is touched by nothing: where contacts are predicted wrongly, that alone would be better.
    """
    stays = np.repeat(loss.windows.starts[None, :, None], loss.windows.steps + 1, axis=2)
    scaled = loss.scaled_differences(stays, loss.scenario.space.nominal[None])[0]
    return {name: rows * loss.scales[name] for name, rows in loss.by_channel(scaled).items()}


def _error(apart: dict[str, np.ndarray], change: _Change, scenario: Scenario) -> np.ndarray:
    """Mean square [W, K] of what a change concerns, above what noise has in it."""
    columns = {change.channel: change.columns} if change.columns else {name: slice(None) for name in apart}
    return np.stack(
        [
            np.mean(np.square(apart[name][..., chosen]), axis=(1, 2)) + scenario.channel_noise[name] ** 2
            for name, chosen in columns.items()
        ],
        axis=1,
    )


def _put_right(episode: Episode, change: _Change) -> Episode:
    return replace(episode, values={**episode.values, change.channel: change.apply(episode[change.channel])})


def _changes(scenario: Scenario, observed: Observed) -> Iterator[_Change]:
    """Everything that is tried on one channel."""
    name, columns = observed.channel.name, observed.channel.columns
    where = "in the mapping" + (", of this channel or of the command" if scenario.command else "")
    if observed.kind == "quaternion":
        remedy = "invert the quaternions before they are ingested (x, y, z negative)"
        yield _Change(
            name, None, "its rotations are inverse", remedy, lambda rows: rows * np.array([1.0, -1.0, -1.0, -1.0])
        )
        return
    for index, column in enumerate(columns):
        signs = np.where(np.arange(len(columns)) == index, -1.0, 1.0)
        remedy = f"`sign: {[int(sign) for sign in signs]}` {where}"
        yield _Change(name, [index], f"'{column}' has the other sign", remedy, lambda rows, signs=signs: rows * signs)
    yield from _swapped(name, columns, shown=True)
    for index, place in enumerate(observed.qpos):
        if _turns(scenario, place):
            yield from _turned(name, columns, index, where)


def _changes_of_commands(scenario: Scenario) -> Iterator[_Change]:
    """Drives that push the other way, or each other's joint; that shows in whatever moves."""
    if not scenario.command:
        return
    (command,) = (each for each in scenario.channels if each.name == scenario.command)
    signs = 1.0 - 2.0 * np.eye(command.width)
    words = [f"'{column}' has the other sign" for column in command.columns]
    if command.width > 1:
        signs, words = np.vstack([signs, -np.ones(command.width)]), [*words, "all columns have the other sign"]
    for each, said in zip(signs, words, strict=True):
        remedy = f"`sign: {each.astype(int).tolist()}` in the mapping, of this channel or of what it drives"
        yield _Change(command.name, None, said, remedy, lambda rows, each=each: rows * each)
    yield from _swapped(command.name, command.columns, shown=False)


def _swapped(name: str, columns: tuple[str, ...], shown: bool) -> Iterator[_Change]:
    for one, other in itertools.islice(itertools.combinations(range(len(columns)), 2), _MOST_SWAPS):
        order = list(range(len(columns)))
        order[one], order[other] = other, one
        words = f"'{columns[one]}' and '{columns[other]}' are swapped"
        remedy = "list these two the other way round in `columns` of the mapping"
        yield _Change(name, [one, other] if shown else None, words, remedy, lambda rows, order=order: rows[:, order])


def _turned(name: str, columns: tuple[str, ...], index: int, where: str) -> Iterator[_Change]:
    for degrees in (90, -90, 180):
        offset = np.where(np.arange(len(columns)) == index, np.radians(degrees), 0.0)
        remedy = f"`offset: {[round(float(each), 4) for each in offset]}` {where}"
        words = f"the zero of '{columns[index]}' is {degrees} degrees off"
        yield _Change(name, [index], words, remedy, lambda rows, offset=offset: rows + offset)


def _turns(scenario: Scenario, place: int) -> bool:
    model = scenario.base_model
    (joint,) = np.flatnonzero(model.jnt_qposadr <= place)[-1:]
    return bool(model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE)
