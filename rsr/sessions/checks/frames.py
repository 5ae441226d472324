"""One channel's own clock: its rate and jitter, and the frames that were lost, repeated or stamped out of order."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rsr.common import SessionError
from rsr.sessions.clocks import forward_only

_AT_LEAST = 4
_SHORTEST_S = 1e-12
_LOST_BEYOND = 0.75
"""A stamp delayed by this share of a period follows a lost frame. More than half, as jitter is commoner than loss; a
loss mistaken for jitter shows at the next stamp, which is delayed as well."""
_STEADY = 0.5
"""A clock that strays less than this share of a period from a regular one is taken for regular."""
_FOLLOWING = 0.1
"""Share of a stamp's deviation that counts as wandering of the clock, the rest as jitter."""
_QUANTA = 3.0
"""A reading that stays is only odd while the signal moves by more than this many of its smallest steps a row."""


@dataclass(frozen=True)
class Frames:
    """Rate, jitter and losses of a channel, by its stamps.

    Args:
        period_s: of the regular clock that the stamps follow.
        jitter_s: standard deviation of the stamps about that clock, and its standard error.
        lost: frames that the clock promised and nobody recorded.
        gaps: rows after which frames are missing.
        repeated: rows that hold the frame before them once more: the same stamp, or the same reading in motion.
        disordered: rows stamped earlier than one before them, or not at all.
    """

    period_s: float
    jitter_s: float
    jitter_error_s: float
    lost: int
    gaps: np.ndarray
    repeated: np.ndarray
    disordered: np.ndarray

    @property
    def rate_hz(self) -> float:
        return 1.0 / self.period_s


def find_frames(stamps_s: np.ndarray, values: np.ndarray | None = None) -> Frames:
    """Fit a regular clock to stamps [N] and list what does not follow it.

    Args:
        values: [N, W], to find readings that were sent twice.

    Raises:
        SessionError: too few stamps to speak of a clock.
    """
    stamps_s = np.asarray(stamps_s, float)
    forward = np.flatnonzero(forward_only(stamps_s))
    if len(forward) < _AT_LEAST or np.median(np.diff(stamps_s[forward])) < _SHORTEST_S:
        raise SessionError(
            got=f"{len(forward)} stamps in order of {len(stamps_s)}",
            expected=f"at least {_AT_LEAST}, and time between them",
            where="stamps",
            next_step="Check the column of the stamps and its unit.",
        )
    number, period_s, start_s = _clock(stamps_s[forward])
    late_s = stamps_s[forward] - (start_s + period_s * number)
    jitter_s = float(np.sqrt(np.sum(late_s**2) / (len(forward) - 2)))
    witnesses = _independent(late_s)
    missing = np.diff(number) - 1
    same = np.concatenate([[False], stamps_s[1:] == stamps_s[:-1]])
    return Frames(
        period_s=period_s,
        jitter_s=jitter_s,
        jitter_error_s=jitter_s / float(np.sqrt(2 * witnesses)),
        lost=int(missing.sum()),
        gaps=forward[:-1][missing > 0],
        repeated=np.flatnonzero(same if values is None else same | sent_twice(np.asarray(values, float))),
        disordered=np.flatnonzero(~forward_only(stamps_s) & ~same),
    )


def _clock(stamps_s: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Number the frames [N]; returns period and start of the regular clock nearest to them.

    A clock that does not wander is then asked once more: the places of all stamps judge each better than those before.
    """
    number = _follow(stamps_s, _period(np.diff(stamps_s)))
    period_s, start_s = (float(each) for each in np.polyfit(number, stamps_s, 1))
    place = (stamps_s - start_s) / period_s
    if np.std(place - number) < _STEADY:
        number = _apart(np.rint(place - place[0]))
        period_s, start_s = (float(each) for each in np.polyfit(number, stamps_s, 1))
    return number, period_s, start_s


def _apart(number: np.ndarray) -> np.ndarray:
    """Give no two frames one number: where jitter rounds two to the same, the later one moves on."""
    row = np.arange(len(number))
    return np.maximum.accumulate(number - row) + row


def _follow(stamps_s: np.ndarray, period_s: float) -> np.ndarray:
    """Count frames along a clock that may wander: each stamp is expected from those before it.

    From single steps jitter and a lost frame cannot be told apart; from an evenly ticking clock's promise they can.
    """
    number, expected_s = np.zeros(len(stamps_s)), stamps_s[0]
    for row in range(1, len(stamps_s)):
        steps = max(1, math.floor((stamps_s[row] - expected_s) / period_s + 1.0 - _LOST_BEYOND))
        expected_s += steps * period_s
        expected_s += _FOLLOWING * (stamps_s[row] - expected_s)
        number[row] = number[row - 1] + steps
    return number


def _independent(late_s: np.ndarray) -> float:
    """Say how many independent deviations these [N] are worth: those of a wandering clock resemble their neighbours."""
    power = float(np.sum(late_s**2))
    alike = float(np.sum(late_s[1:] * late_s[:-1])) / power if power > 0 else 0.0
    alike = min(max(alike, 0.0), 0.999)
    return max(2.0, len(late_s) * (1.0 - alike) / (1.0 + alike))


def _period(steps_s: np.ndarray) -> float:
    """The usual step. A median would be a lost frame's where half of all frames are lost, so near ones are averaged."""
    usual = float(np.median(steps_s))
    near = steps_s[np.abs(steps_s - usual) < 0.5 * usual]
    return float(near.mean()) if near.size else usual


def sent_twice(values: np.ndarray) -> np.ndarray:
    """Mark readings [N, W] equal to the one before, although the signal moves before and after; not those at rest."""
    if len(values) < _AT_LEAST:
        return np.zeros(len(values), bool)
    steps = np.abs(np.diff(values.reshape(len(values), -1), axis=0))
    moved = np.where(steps > 0, steps, np.inf)
    quantum = np.where(np.isfinite(moved.min(axis=0)), moved.min(axis=0), 0.0)
    stayed = ~np.any(steps > 0, axis=1)
    moving = np.any(steps > _QUANTA * quantum, axis=1)
    twice = stayed[1:-1] & moving[:-2] & moving[2:]
    return np.concatenate([[False, False], twice, [False]])
