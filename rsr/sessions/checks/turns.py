"""Angles that wrap: cut to one turn by the sensor, they seem to jump by a turn where the joint just goes on turning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from rsr.common import SessionError, unwrapped, wraps
from rsr.sessions import Channel, Episode, Session
from rsr.sessions.checks.findings import Finding, counted, from_error

_WHOLE_TURN = 1.5 * np.pi
"""A joint with limits that jumps by more wraps; by less it may be a spike, which is another finding."""


def refuse_wraps(angles_rad: np.ndarray, turning: np.ndarray, channel: Channel, where: str) -> None:
    """Raise SessionError where an angle [T, W] wraps though its joint has limits.

    Args:
        turning: [W], which joints may turn round.
    """
    jumped = wraps(angles_rad) & (np.abs(np.diff(angles_rad, axis=0)) > _WHOLE_TURN) & ~turning
    for row, column in np.argwhere(jumped)[:1]:
        before, after = angles_rad[row : row + 2, column]
        raise SessionError(
            got=f"an angle that wraps: {channel.columns[column]} goes from {before:.4g} to {after:.4g} rad in one step",
            expected="a continuous angle, as this joint has limits",
            where=f"{where}, channel '{channel.name}', row {row + 1}",
            next_step="If the joint may turn round, take its limits out of the MJCF: then its angle is unwrapped. "
            "Otherwise correct the column's offset, unit or order and store the session again.",
        )


def judge_turns(session: Session, limits: Mapping[str, np.ndarray]) -> Iterator[Finding]:
    """Refuse wrapped angles of joints with limits, and say where those of others are unwrapped.

    Args:
        limits: channel -> [W, 2], NaN where a joint may turn round.
    """
    for channel in _angles(session, limits):
        where = f"session '{session.card.session}'"
        turning = _turning(limits[channel.name])
        try:
            for episode in session.episodes:
                refuse_wraps(episode[channel.name], turning, channel, f"{where}, episode {episode.index}")
        except SessionError as error:
            yield from_error(error)
            continue
        jumps = [int((wraps(episode[channel.name]) & turning).sum()) for episode in session.episodes]
        if sum(jumps):
            yield Finding(
                "note", "units", f"{where}, channel '{channel.name}'",
                got=f"an angle that wraps: {counted(sum(jumps), 'jump')} by a turn in "
                f"{counted(int(np.count_nonzero(jumps)), 'episode')}",
                expected="a continuous angle",
                next_step="Nothing is lost: it is unwrapped wherever it is used, since this joint may turn round.",
            )  # fmt: skip


def without_wraps(session: Session, limits: Mapping[str, np.ndarray]) -> Session:
    """The session with the angles of joints that may turn round unwrapped."""
    turning = {each.name: _turning(limits[each.name]) for each in _angles(session, limits)}

    def smooth(episode: Episode) -> Episode:
        angles = {name: np.where(may, unwrapped(episode[name]), episode[name]) for name, may in turning.items()}
        return replace(episode, values={**episode.values, **angles})

    return replace(session, episodes=tuple(smooth(episode) for episode in session.episodes)) if turning else session


def _angles(session: Session, limits: Mapping[str, np.ndarray]) -> list[Channel]:
    return [each for each in session.channels if each.name in limits and each.stamp == "at_sample"]


def _turning(limits: np.ndarray) -> np.ndarray:
    """Which joints [W] have no limits."""
    return np.array([not np.isfinite(pair).all() for pair in limits])
