"""Runs as arrays, made into a session: what a notebook holds in memory, checked like a recording from a file."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rsr.common import SessionError
from rsr.scenarios import Scenario
from rsr.sessions import Card, Channel, Episode, Session, check_session, read_session

Run = Mapping[str, Any]
"""Channel -> array [T, width], or [T] for a channel of one column; row i belongs to the time i * dt."""
Runs = Session | str | Path | Sequence[Session | str | Path | Run]
"""Runs as arrays, sessions, or folders of stored sessions."""

_NEXT = "Correct the arrays; docs/python.md has an example."


def session_from_arrays(
    scenario: Scenario, runs: Sequence[Run], name: str = "arrays", simulated: bool = False
) -> Session:
    """Make a session of runs that are arrays in memory.

    Args:
        runs: one mapping a run: channel -> [T, width], or [T] for one column. Runs may differ in length. Row i belongs
            to the time i * dt; row i of a command is in force from then until the next row.
        name: of the session, should it be stored (`rsr.write_session`).
        simulated: say so where the arrays come from a simulator.

    Raises:
        SessionError: a channel is missing or unknown, or an array has the wrong shape or holds NaN.

    Examples:
        >>> session = rsr.session_from_arrays(arm, [{"q": q, "u": u}])  # doctest: +SKIP
        >>> rsr.write_session("data", session)  # doctest: +SKIP
    """
    if isinstance(runs, Mapping) or not len(runs):
        got = "one mapping" if isinstance(runs, Mapping) else "no runs"
        raise SessionError(got=got, expected="a list of runs, one mapping each", where="runs", next_step=_NEXT)
    episodes = tuple(_episode(scenario, index, run) for index, run in enumerate(runs))
    card = Card(name, scenario.name, "arrays", simulated=simulated, control_dt_s=scenario.control_dt_s)
    session = Session(card, scenario.channels, episodes)
    check_session(session, scenario.channels)
    return session


def sessions_of(scenario: Scenario, runs: Runs) -> tuple[Session, ...]:
    """Make sessions of whatever runs are given as, and make sure that the scenario can use them."""
    given = [runs] if isinstance(runs, Session | str | Path) else list(runs) if not isinstance(runs, Mapping) else runs
    if isinstance(given, Mapping) or not given or isinstance(given[0], Mapping):
        return (session_from_arrays(scenario, given),)  # type: ignore[arg-type]
    sessions = tuple(each if isinstance(each, Session) else read_session(Path(str(each))) for each in given)
    for session in sessions:
        check_session(session, scenario.channels)
    return sessions


def fingerprint(scenario: Scenario, episode: Episode) -> str:
    """A hash of a run's numbers, by which the same run is known again."""
    digest = hashlib.sha256()
    for channel in scenario.channels:
        digest.update(np.ascontiguousarray(episode[channel.name], float).tobytes())
    return digest.hexdigest()


def _episode(scenario: Scenario, index: int, run: Run) -> Episode:
    where = f"run {index}"
    if not isinstance(run, Mapping):
        raise SessionError(
            got=type(run).__name__, expected="a mapping from channels to arrays", where=where, next_step=_NEXT
        )
    _check_names(scenario, run, where)
    values = {channel.name: _array(channel, run[channel.name], where) for channel in scenario.channels}
    lengths = {name: len(array) for name, array in values.items()}
    if len(set(lengths.values())) > 1:
        raise SessionError(
            got=", ".join(f"{name} with {length} rows" for name, length in lengths.items()),
            expected="channels of equal length within a run",
            where=where,
            next_step="Cut or resample them to common rows, dt apart; a command has a row for the last time too.",
        )
    rows = next(iter(lengths.values()))
    if rows < 2:
        raise SessionError(got=f"{rows} rows", expected="at least 2", where=where, next_step="Leave this run out.")
    return Episode(index, np.arange(rows) * scenario.control_dt_s, values)


def _check_names(scenario: Scenario, run: Run, where: str) -> None:
    known = [channel.name for channel in scenario.channels]
    for name in run:
        if name not in known:
            close = difflib.get_close_matches(str(name), known, 1)
            raise SessionError(
                got=f"channel '{name}'",
                expected=f"'{close[0]}'" if close else f"one of {', '.join(known)}",
                where=where,
                next_step="Name the channels as the scenario does, and leave others out.",
            )
    missing = [name for name in known if name not in run]
    if missing:
        raise SessionError(
            got=f"no {', '.join(missing)}",
            expected=f"all of {', '.join(known)}",
            where=where,
            next_step="Add the arrays, or leave the channel out of the scenario.",
        )


def _array(channel: Channel, given: Any, where: str) -> np.ndarray:
    """One channel as float64 [T, width]."""
    place = f"{where}, channel '{channel.name}'"
    try:
        array = np.array(given, dtype=float)
    except (TypeError, ValueError) as error:
        raise SessionError(got=str(error), expected="an array of numbers", where=place, next_step=_NEXT) from error
    if array.ndim == 1 and channel.width == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] != channel.width:
        turned = array.ndim == 2 and array.shape[0] == channel.width
        raise SessionError(
            got=f"an array of shape {array.shape}",
            expected=f"[T, {channel.width}], one column each of {', '.join(channel.columns)}",
            where=place,
            next_step="Transpose it." if turned else _NEXT,
        )
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        row, column = bad[0]
        raise SessionError(
            got=f"{array[row, column]} in row {row}, column {channel.columns[column]} ({len(bad)} such values)",
            expected="finite numbers",
            where=place,
            next_step="Cut the run there, or fill in what you know; what was not measured cannot be tuned to.",
        )
    return array
