"""Clock offset and drift between two channels that saw one motion, with their intervals.

    clock = estimate_clock([Signal(encoder_s, angle)], [Signal(camera_s, seen_angle)])
    clock.offset_s, clock.offset_interval_s     # 0.0312, (0.0309, 0.0315): the camera's stamps are delayed by 31 ms
    corrected_s = clock.to_reference(camera_s)  # the camera's stamps in the encoder's clock

First the cross-correlation says roughly where one signal lies in the other, then least squares refines offset, drift,
gain and bias together. Intervals come from the scatter between blocks of time (`rsr.sessions.clocks.fit`), so they hold
for noise that resembles itself from row to row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from rsr.common import SessionError
from rsr.sessions.clocks.alignment import forward_only
from rsr.sessions.clocks.fit import ClockFit, refine
from rsr.sessions.clocks.search import Arrays, comparable, kernel_width_s, make_pair, search

Relation = Literal["same", "derivative"]
"""Relation of the second signal to the first, up to gain and bias: `same` (a measured and a commanded joint, an encoder
and a camera), `derivative` (a velocity of a position)."""
ClockStatus = Literal["found", "ambiguous", "no common motion"]
"""`ambiguous`: another offset explains the signals nearly as well, as with periodic motion (record an aperiodic one),
or the best one lies at the end of what was looked for (look further).
`no common motion`: the signals do not resemble each other at any offset; check the pairing of columns."""

CONFIDENCE = 0.95
FOUND_CORRELATION = 0.5
"""Signals that correlate less than this once aligned do not show one motion."""
_LARGEST = 1e30
"""Readings beyond this were not measured."""
RIVAL = 0.97
"""Another peak of the correlation this near to the best one makes an offset ambiguous."""


@dataclass(frozen=True)
class Signal:
    """Stamps [N] in seconds of a channel's own clock, and values [N, W] or [N]."""

    stamps_s: np.ndarray
    values: np.ndarray


@dataclass(frozen=True)
class ClockEstimate:
    """How the second channel's stamps relate to the first's: `stamp = time + offset_s + drift (time - at_s)`.

    Args:
        offset_s: the second channel is stamped this much later than the first saw the same; at `at_s`, the middle.
        offset_error_s, drift_error_ppm, jitter_error_s: standard errors.
        drift_ppm: how much faster the second clock goes, in millionths. 0 where it was not asked for.
        jitter_s: scatter of single stamps of the second channel; unlike noise, it shows where the signal is fast.
        at_s: in the first channel's clock.
        gains: second per first (or per its derivative), one a column; noise in the first makes them small.
        correlation: of the aligned signals, 1 at best.
        freedom: degrees of freedom of the intervals.
    """

    status: ClockStatus
    offset_s: float
    offset_error_s: float
    drift_ppm: float
    drift_error_ppm: float
    jitter_s: float
    jitter_error_s: float
    at_s: float
    gains: tuple[float, ...]
    correlation: float
    freedom: int

    @property
    def offset_interval_s(self) -> tuple[float, float]:
        """The 95 % interval of the offset."""
        return self._interval(self.offset_s, self.offset_error_s)

    def to_reference(self, stamps_s: np.ndarray) -> np.ndarray:
        """Translate stamps [N] of the second channel into the first one's clock."""
        since_s = np.asarray(stamps_s, float) - self.offset_s - self.at_s
        return self.at_s + since_s / (1.0 + 1e-6 * self.drift_ppm)

    def _interval(self, value: float, error: float) -> tuple[float, float]:
        width = float(stdtrit(self.freedom, 0.5 + CONFIDENCE / 2)) * error
        return value - width, value + width


def estimate_clock(
    reference: Sequence[Signal],
    other: Sequence[Signal],
    *,
    relation: Relation = "same",
    drift: bool = True,
    max_offset_s: float = 0.5,
) -> ClockEstimate:
    """Estimate the clock of one channel against another that saw the same motion.

    Args:
        reference, other: the two channels; several entries are episodes that share one offset (and one drift).
        relation: what the second is of the first.
        drift: whether to fit one. Leave it out where all stamps come from one clock, or episodes last seconds.
        max_offset_s: offsets beyond this are not looked for.

    Raises:
        SessionError: the signals are too short, or have no columns in common.
    """
    if len(reference) != len(other) or not reference:
        raise _unfit(f"{len(reference)} and {len(other)} episodes", "the same episodes of both channels")
    pairs = [(_ordered(first), _ordered(second)) for first, second in zip(reference, other, strict=True)]
    for first, second in pairs:
        if first.values.shape[1] != second.values.shape[1]:
            raise _unfit(
                f"{first.values.shape[1]} and {second.values.shape[1]} columns", "the same columns in both channels"
            )
    arrays = [(first.stamps_s, first.values, second.stamps_s, second.values) for first, second in pairs]
    with np.errstate(over="ignore", invalid="ignore"):  # absurd stamps end as too little in common, not as warnings
        found = _estimate(arrays, relation == "derivative", drift, max_offset_s)
    if found is None:
        raise _unfit("too little common time to compare", "a few seconds of motion that both channels saw")
    return found


def _estimate(arrays: Sequence[Arrays], derivative: bool, drift: bool, max_offset_s: float) -> ClockEstimate | None:
    usable = [each for each in arrays if comparable(each)]
    if not usable:
        return None
    width_s = kernel_width_s(usable, derivative)
    pairs = [pair for each in usable if (pair := make_pair(each, width_s, derivative)) is not None]
    if not pairs:
        return None
    rough_s, rival = search(pairs, width_s, max_offset_s)
    fit = refine(pairs, rough_s, width_s, drift)
    return None if fit is None else _named(fit, rival)


def _named(fit: ClockFit, rival: float) -> ClockEstimate:
    errors = np.sqrt(np.diag(fit.covariance))
    offset_s, rate = (float(each) for each in fit.values[:2])
    status: ClockStatus = "ambiguous" if rival > RIVAL else "found"
    return ClockEstimate(
        status=status if fit.correlation >= FOUND_CORRELATION else "no common motion",
        offset_s=offset_s,
        offset_error_s=float(errors[0]),
        drift_ppm=1e6 * rate / (1.0 - rate),  # the fit's is a share of the stamps' own time
        drift_error_ppm=1e6 * float(errors[1]),
        jitter_s=fit.jitter_s,
        jitter_error_s=fit.jitter_error_s,
        at_s=fit.middle_s - offset_s,
        gains=tuple(float(gain) for gain in fit.values[2::2]),
        correlation=fit.correlation,
        freedom=fit.freedom,
    )


def _ordered(signal: Signal) -> Signal:
    """Keep what was measured, in the order of its stamps."""
    stamps_s, values = np.asarray(signal.stamps_s, float), np.asarray(signal.values, float)
    values = values.reshape(len(stamps_s), -1)
    kept = forward_only(stamps_s) & (np.abs(values) < _LARGEST).all(axis=1)  # which NaN is not
    return Signal(stamps_s[kept], values[kept])


def _unfit(got: str, expected: str) -> SessionError:
    next_step = "Name two channels that show one motion, as long as there is."
    return SessionError(got=got, expected=expected, where="clock of two channels", next_step=next_step)
