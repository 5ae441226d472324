"""Problems that make a recording unfit for use, each with its remedy. Knows the expected channels, not the scenario."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rsr.common import SessionError
from rsr.sessions import Channel, Episode, Session

GRID_TOLERANCE = 0.1
"""How far a row may stand from its place on the control grid, as a share of the control step. One whole step of
clock error moves a damping by 20 interval widths, so a tenth is as much as tuning can bear unnoticed."""
UNIT_NORM_TOLERANCE = 1e-3
"""Rounding in a recorder is 1e-4 at worst; a quaternion further from unit norm was averaged or mixed up."""

_DROP_EPISODE = "Drop or re-record this episode: what was not measured cannot be tuned to."


def check_session(session: Session, channels: tuple[Channel, ...]) -> None:
    """Raise SessionError for the first thing that makes this recording unfit for use.

    Args:
        channels: what the scenario expects; the session may hold more.

    Example:
        >>> check_session(read_session(Path("data/push_cube/session-001")), scenario.channels)  # doctest: +SKIP
    """
    for problem in find_problems(session, channels):
        raise problem


def find_problems(session: Session, channels: tuple[Channel, ...]) -> Iterator[SessionError]:
    """List everything that is wrong, one error a channel and episode, without raising."""
    if not session.episodes:
        yield _no_episodes(session)
        return
    fitting = []
    for channel in channels:
        problem = _description_problem(session, channel)
        if problem is None:
            fitting.append(channel)
        else:
            yield problem
    for episode in session.episodes:
        yield from _episode_problems(session, episode, fitting)


def check_shapes(session: Session) -> None:
    """Raise SessionError where arrays contradict the session's own channel descriptions: all that storage needs."""
    if not session.episodes:
        raise _no_episodes(session)
    for episode in session.episodes:
        problem = _rows_problem(session, episode, at_least=1) or _undescribed_problem(session, episode)
        if problem is not None:
            raise problem
        for channel in session.channels:
            problem = _shape_problem(session, episode, channel)
            if problem is not None:
                raise problem


def _episode_problems(session: Session, episode: Episode, channels: Sequence[Channel]) -> Iterator[SessionError]:
    problem = _rows_problem(session, episode, at_least=2)
    if problem is not None:
        yield problem
        return
    problem = _time_problem(session, episode)
    if problem is not None:
        yield problem
    for channel in channels:
        problem = _shape_problem(session, episode, channel) or _value_problem(session, episode, channel)
        if problem is not None:
            yield problem


def _no_episodes(session: Session) -> SessionError:
    return SessionError(
        got="no episodes",
        expected="at least one",
        where=_where(session),
        next_step="Record again; a session without episodes is of no use.",
    )


def _description_problem(session: Session, expected: Channel) -> SessionError | None:
    """Compare names, widths, units, frames and stamps; the clock is the lab's own affair."""
    found = next((channel for channel in session.channels if channel.name == expected.name), None)
    if found is None:
        names = ", ".join(channel.name for channel in session.channels) or "none"
        return SessionError(
            got=f"channels {names}",
            expected=f"channel '{expected.name}' ({_columns(expected)}; {expected.unit})",
            where=_where(session),
            next_step="Record this channel, or rename the one that holds it.",
        )
    if found.width != expected.width:
        return SessionError(
            got=f"{_count(found.width, 'column')} ({_columns(found)})",
            expected=f"{expected.width} as in the scenario ({_columns(expected)})",
            where=_where(session, channel=expected),
            next_step="Map the recorded columns to the scenario's, or choose the scenario of this robot.",
        )
    for aspect in ("columns", "unit", "frame", "stamp"):
        if getattr(found, aspect) != getattr(expected, aspect):
            return SessionError(
                got=f"{aspect} {_words(getattr(found, aspect))}",
                expected=_words(getattr(expected, aspect)),
                where=_where(session, channel=expected),
                next_step="Convert or reorder the recording; a wrong description spoils every number that follows.",
            )
    return None


def _rows_problem(session: Session, episode: Episode, at_least: int) -> SessionError | None:
    shape = np.shape(episode.time_s)
    if len(shape) == 1 and shape[0] >= at_least:
        return None
    return SessionError(
        got=f"time_s of shape {shape}",
        expected=f"[T] with at least {_count(at_least, 'row')}",
        where=_where(session, episode),
        next_step=_DROP_EPISODE,
    )


def _undescribed_problem(session: Session, episode: Episode) -> SessionError | None:
    unknown = sorted(set(episode.values) - {channel.name for channel in session.channels})
    if not unknown:
        return None
    return SessionError(
        got=f"values without a channel: {', '.join(unknown)}",
        expected="a Channel with unit, frame and stamp for everything recorded",
        where=_where(session, episode),
        next_step="Add it to the session's channels, or leave the values out.",
    )


def _shape_problem(session: Session, episode: Episode, channel: Channel) -> SessionError | None:
    if channel.name not in episode.values:
        got = "no values"
    else:
        shape = np.shape(episode[channel.name])
        if shape == (len(episode), channel.width):
            return None
        got = f"values of shape {shape}"
    return SessionError(
        got=got,
        expected=f"{_count(len(episode), 'row')} (one a time stamp) by {_count(channel.width, 'column')}",
        where=_where(session, episode, channel),
        next_step=_DROP_EPISODE,
    )


def _value_problem(session: Session, episode: Episode, channel: Channel) -> SessionError | None:
    values = np.asarray(episode[channel.name], float)
    bad = ~np.isfinite(values)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        return SessionError(
            got=f"{channel.columns[column]} = {values[row, column]} ({bad.sum()} of {bad.size} values are not finite)",
            expected="finite numbers",
            where=_where(session, episode, channel, row),
            next_step=_DROP_EPISODE,
        )
    return _quaternion_problem(session, episode, channel, values) if channel.is_quaternion else None


def _quaternion_problem(
    session: Session, episode: Episode, channel: Channel, values: np.ndarray
) -> SessionError | None:
    norm = np.linalg.norm(values, axis=1)
    bad = np.flatnonzero(np.abs(norm - 1.0) > UNIT_NORM_TOLERANCE)
    if not bad.size:
        return None
    return SessionError(
        got=f"a quaternion of norm {norm[bad[0]]:.4f}",
        expected="norm 1 (wxyz)",
        where=_where(session, episode, channel, bad[0]),
        next_step="Check the order of the columns and that nothing averaged them, then normalise and store again.",
    )


def _time_problem(session: Session, episode: Episode) -> SessionError | None:
    """Check that rows stand on a grid of control steps: catches NaN, jumps back, dropped rows, drift, another rate."""
    time_s = np.asarray(episode.time_s, float)
    step_s = session.card.control_dt_s
    late_s = time_s - (time_s[0] + step_s * np.arange(len(time_s)))
    off_grid = ~(np.abs(late_s) <= GRID_TOLERANCE * step_s)
    stalled = np.concatenate([[False], ~(np.diff(time_s) > 0)])
    bad = np.flatnonzero(off_grid | stalled)
    if not bad.size:
        return None
    row = int(bad[0])
    return SessionError(
        got=f"{time_s[row]:.6g} s after {time_s[max(row - 1, 0)]:.6g} s",
        expected=f"increasing times on a grid of {step_s:g} s (the card's control_dt_s)",
        where=_where(session, episode, row=row),
        next_step="Resample the recording to the control step, or correct the card; "
        "drop the episode if rows were lost.",
    )


def _where(
    session: Session, episode: Episode | None = None, channel: Channel | None = None, row: int | None = None
) -> str:
    words = [f"session '{session.card.session}'"]
    if channel is not None:
        words.append(f"channel '{channel.name}'")
    if episode is not None:
        words.append(f"episode {episode.index}")
    if episode is not None and row is not None:
        words.append(f"row {row} ({episode.time_s[row]:.3f} s)")
    return ", ".join(words)


def _columns(channel: Channel) -> str:
    return ", ".join(channel.columns)


def _words(aspect: str | tuple[str, ...]) -> str:
    return f"'{aspect}'" if isinstance(aspect, str) else ", ".join(aspect)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
