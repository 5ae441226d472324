"""One visit to the lab: channels, episodes, a card. Frozen, in memory, free of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

import numpy as np

Stamp = Literal["at_sample", "held_until_next"]
"""`at_sample`: the value was true at the row's time. `held_until_next`: a command in force from the row's time
until the next row's; the last row repeats the command that was in force before it."""


@dataclass(frozen=True)
class Channel:
    """One named signal. Quaternions are wxyz.

    Args:
        columns: one name a column, in order.
        unit: SI unit of every column (`rad`, `m`, `1`).
        frame: what the numbers are expressed in (`joint`, `world`).
        clock: the clock that stamped it.
        stamp: which instant or interval a row speaks of.
    """

    name: str
    columns: tuple[str, ...]
    unit: str
    frame: str
    clock: str = "robot"
    stamp: Stamp = "at_sample"

    @property
    def width(self) -> int:
        return len(self.columns)

    @property
    def is_quaternion(self) -> bool:
        """True if its columns are w, x, y, z, with or without a common prefix."""
        return self.width == 4 and "".join(column[-1:] for column in self.columns) == "wxyz"


@dataclass(frozen=True)
class Episode:
    """One trial. Row i of every channel belongs to `time_s[i]`.

    Args:
        time_s: [T], seconds from the start of the episode, increasing.
        values: channel name -> [T, width], float64.
        tags: words about this one trial, such as which throw it repeats.
    """

    index: int
    time_s: np.ndarray
    values: Mapping[str, np.ndarray]
    tags: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, channel: str) -> np.ndarray:
        return self.values[channel]

    def __len__(self) -> int:
        return len(self.time_s)


@dataclass(frozen=True)
class Card:
    """Who, when, with what: everything about a session that is not a time series."""

    session: str
    scenario: str
    reality: str
    simulated: bool
    control_dt_s: float
    policy_sha256: str | None = None
    recorded_at: str | None = None
    operator: str | None = None
    robot: str | None = None
    gains: Mapping[str, float] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    notes: str = ""


@dataclass(frozen=True)
class Session:
    card: Card
    channels: tuple[Channel, ...]
    episodes: tuple[Episode, ...]

    def channel(self, name: str) -> Channel:
        return next(channel for channel in self.channels if channel.name == name)


def join_sessions(sessions: Sequence[Session]) -> Session:
    """Join all episodes in one session, numbered on from session to session, as in a calibration's evidence."""
    episodes = [episode for session in sessions for episode in session.episodes]
    numbered = tuple(replace(episode, index=index) for index, episode in enumerate(episodes))
    return replace(sessions[0], episodes=numbered)


def stretches(breaks: np.ndarray) -> list[slice]:
    """Divide N rows where a break [N - 1] lies between two of them."""
    edges = [0, *(np.flatnonzero(breaks) + 1).tolist(), len(breaks) + 1]
    return [slice(start, stop) for start, stop in pairwise(edges)]
