"""Signals onto another time grid, without inventing motion: where nothing was measured, nothing is claimed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rsr.common import SessionError

Kind = Literal["linear", "hold", "quaternion"]
"""`linear`: between two measurements, a straight line. `hold`: the latest command stays in force. `quaternion`: between
two orientations, the shortest turn (slerp)."""
SAME_TIME_S = 1e-9
"""Times that differ by less are equal: floating point does not keep nanoseconds of an epoch apart."""

LATEST_S = 1e20
"""Beyond even nanoseconds of an epoch that were taken for seconds; such stamps are damage."""


@dataclass(frozen=True)
class Resampled:
    """A signal on a grid.

    Args:
        values: [G, W]; NaN where `valid` is False.
        valid: [G], False before the first and after the last measurement and inside gaps.
    """

    values: np.ndarray
    valid: np.ndarray


def resample(
    stamps_s: np.ndarray, values: np.ndarray, grid_s: np.ndarray, *, max_gap_s: float, kind: Kind = "linear"
) -> Resampled:
    """Evaluate a signal at other times, but never across a gap.

    Args:
        stamps_s: [N], strictly increasing; see `forward_only` for stamps that are not.
        values: [N, W] or [N]. Rows that are not finite count as not measured, so that they widen a gap.
        grid_s: [G], in the clock of the stamps.
        max_gap_s: `linear`, `quaternion`: the two measurements around a time may lie this far apart. `hold`: a command
            may be this old.
        kind: see `Kind`; quaternions are wxyz.

    Raises:
        SessionError: stamps and values do not belong together, or the stamps do not increase.

    Example:
        >>> resample(np.array([0.0, 1.0, 5.0]), np.array([0.0, 1.0, 5.0]), np.array([0.5, 3.0]), max_gap_s=2.0).valid
        array([ True, False])
    """
    stamps_s, values = np.asarray(stamps_s, float), np.asarray(values, float)
    values = values[:, None] if values.ndim == 1 else values
    _check(stamps_s, values, kind)
    measured = np.isfinite(values).all(axis=1)
    stamps_s, values, grid_s = stamps_s[measured], values[measured], np.asarray(grid_s, float)
    if not len(stamps_s):
        return Resampled(np.full((len(grid_s), values.shape[1]), np.nan), np.zeros(len(grid_s), bool))
    found, valid = _HOW[kind](stamps_s, values, grid_s, max_gap_s)
    found[~valid] = np.nan
    return Resampled(found, valid)


def forward_only(stamps_s: np.ndarray) -> np.ndarray:
    """Mark the rows [N] whose stamp is a number and later than all before it; of equal stamps the first is kept."""
    stamps_s = np.asarray(stamps_s, float)
    finite = np.abs(stamps_s) < LATEST_S  # which NaN is not
    latest = np.maximum.accumulate(np.where(finite, stamps_s, -np.inf))
    before = np.concatenate([[-np.inf], latest[:-1]])
    return finite & (stamps_s > before)


def _between(stamps_s: np.ndarray, grid_s: np.ndarray, max_gap_s: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find for each time [G] the row before it, the share of the way to the next one, and whether that is allowed."""
    last = len(stamps_s) - 1
    before = np.clip(np.searchsorted(stamps_s, grid_s + SAME_TIME_S, side="right") - 1, 0, max(0, last - 1))
    after = np.minimum(before + 1, last)
    gap_s = stamps_s[after] - stamps_s[before]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        share = np.where(gap_s > 0, (grid_s - stamps_s[before]) / gap_s, 0.0)
    met = np.minimum(np.abs(grid_s - stamps_s[before]), np.abs(grid_s - stamps_s[after])) <= SAME_TIME_S
    inside = (grid_s >= stamps_s[0] - SAME_TIME_S) & (grid_s <= stamps_s[-1] + SAME_TIME_S)
    return before, np.clip(share, 0.0, 1.0), inside & (met | (gap_s <= max_gap_s + SAME_TIME_S))


def _linear(
    stamps_s: np.ndarray, values: np.ndarray, grid_s: np.ndarray, max_gap_s: float
) -> tuple[np.ndarray, np.ndarray]:
    before, share, valid = _between(stamps_s, grid_s, max_gap_s)
    after = np.minimum(before + 1, len(values) - 1)
    return (1.0 - share)[:, None] * values[before] + share[:, None] * values[after], valid


def _hold(
    stamps_s: np.ndarray, values: np.ndarray, grid_s: np.ndarray, max_gap_s: float
) -> tuple[np.ndarray, np.ndarray]:
    latest = np.searchsorted(stamps_s, grid_s + SAME_TIME_S, side="right") - 1
    found = np.clip(latest, 0, None)
    return values[found].copy(), (latest >= 0) & (grid_s - stamps_s[found] <= max_gap_s + SAME_TIME_S)


def _slerp(
    stamps_s: np.ndarray, values: np.ndarray, grid_s: np.ndarray, max_gap_s: float
) -> tuple[np.ndarray, np.ndarray]:
    """Turn at constant speed about one axis, the short way: a quaternion and its negative are one orientation."""
    before, share, valid = _between(stamps_s, grid_s, max_gap_s)
    unit = values / np.linalg.norm(values, axis=1, keepdims=True)
    start, end = unit[before], unit[np.minimum(before + 1, len(values) - 1)]
    cosine = np.sum(start * end, axis=1)
    end = np.where(cosine[:, None] < 0, -end, end)
    angle = np.arccos(np.clip(np.abs(cosine), 0.0, 1.0))
    sine = np.sin(angle)
    turning = sine > 1e-9  # below, the weights are 0/0, and the straight line is exact to rounding
    divisor = np.where(turning, sine, 1.0)
    weights = [np.where(turning, np.sin(part * angle) / divisor, part) for part in (1.0 - share, share)]
    found = weights[0][:, None] * start + weights[1][:, None] * end
    return found / np.linalg.norm(found, axis=1, keepdims=True), valid


_HOW = {"linear": _linear, "hold": _hold, "quaternion": _slerp}


def _check(stamps_s: np.ndarray, values: np.ndarray, kind: Kind) -> None:
    if stamps_s.ndim != 1 or values.ndim != 2 or len(values) != len(stamps_s):
        raise _unfit(
            f"stamps of shape {stamps_s.shape} and values of shape {values.shape}",
            "[N] and [N, W]",
            "Give one time stamp a row.",
        )
    if kind not in _HOW:
        raise _unfit(f"kind '{kind}'", f"one of {', '.join(_HOW)}", "Choose one of these.")
    if kind == "quaternion" and (values.shape[1] != 4 or (np.linalg.norm(values, axis=1) == 0).any()):
        raise _unfit(
            f"{values.shape[1]} columns, or a zero", "quaternions wxyz", "Name the columns of the orientation."
        )
    late = np.flatnonzero(~(np.diff(stamps_s) > 0))
    if late.size or not np.isfinite(stamps_s).all():
        row = int(late[0]) + 1 if late.size else int(np.flatnonzero(~np.isfinite(stamps_s))[0])
        raise _unfit(
            f"stamp {stamps_s[row]:.6f} s in row {row}, not later than the one before it",
            "increasing stamps",
            "Keep the rows that `forward_only` marks, or correct the clock first.",
        )


def _unfit(got: str, expected: str, next_step: str) -> SessionError:
    return SessionError(got=got, expected=expected, where="resampling", next_step=next_step)
