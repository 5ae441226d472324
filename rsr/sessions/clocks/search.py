"""One smoothing for two channels: equal kernels move nothing in time, whatever rates, jitter and losses they have.

Signals are compared after smoothing because interpolated noise is weaker between two samples than on one: offsets
fitted to raw signals lock to whole samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline

_REACH = 4.0
"""Kernels are cut off after this many widths."""


@dataclass(frozen=True)
class Smoothed:
    """A signal and its slope on a grid: [G, W] each. `valid` [G] is False at the ends and around gaps."""

    values: np.ndarray
    slopes: np.ndarray
    valid: np.ndarray


def smooth(stamps_s: np.ndarray, values: np.ndarray, grid_s: np.ndarray, width_s: float, max_gap_s: float) -> Smoothed:
    """Fit a straight line around every time of the grid, weighted by a Gaussian of standard deviation `width_s`.

    Args:
        stamps_s: [N], increasing.
        values: [N, W], finite.
        grid_s: [G].
        max_gap_s: times nearer than two widths to a longer gap are not valid.
    """
    first = np.searchsorted(stamps_s, grid_s - _REACH * width_s)
    last = np.searchsorted(stamps_s, grid_s + _REACH * width_s, side="right")
    sums = np.zeros((3, len(grid_s)))
    products = np.zeros((2, len(grid_s), values.shape[1]))
    for step in range(int((last - first).max(initial=0))):
        row = np.minimum(first + step, len(stamps_s) - 1)
        apart = (stamps_s[row] - grid_s) / width_s
        weight = np.where(first + step < last, np.exp(-0.5 * apart**2), 0.0)
        sums += weight * apart ** np.arange(3)[:, None]
        products += np.stack([weight, weight * apart])[:, :, None] * values[row]
    determinant = sums[0] * sums[2] - sums[1] ** 2
    enough = determinant > 1e-6 * np.maximum(sums[0], 1e-12) ** 2
    divisor = np.where(enough, determinant, 1.0)[:, None]
    level = (sums[2][:, None] * products[0] - sums[1][:, None] * products[1]) / divisor
    slope = (sums[0][:, None] * products[1] - sums[1][:, None] * products[0]) / divisor / width_s
    return Smoothed(level, slope, enough & _covered(stamps_s, grid_s, 2.0 * width_s, max_gap_s))


def _covered(stamps_s: np.ndarray, grid_s: np.ndarray, margin_s: float, max_gap_s: float) -> np.ndarray:
    """Mark the times [G] that lie inside the measurements and `margin_s` away from every gap."""
    covered = (grid_s >= stamps_s[0] + margin_s) & (grid_s <= stamps_s[-1] - margin_s)
    for row in np.flatnonzero(np.diff(stamps_s) > max_gap_s):
        covered &= (grid_s < stamps_s[row] - margin_s) | (grid_s > stamps_s[row + 1] + margin_s)
    return covered


# First half of `rsr.sessions.clocks.estimate`: two channels made comparable, and roughly where one lies in the other.

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""One episode: reference stamps [N] and values [N, W], other stamps [M] and values [M, W]."""

AT_LEAST = 12
"""Fewer times in common are no ground for any statement."""
_GAP_PERIODS = 4.5
"""A few lost frames in a row are bridged; more are a gap."""
_SPARSEST = 100.0
_MOST_PERIODS = 2e7
"""Stamps that leave more than 99 of 100 places empty, or span more periods than this, are damaged."""
_NOISE_SHARE = 0.05
_WIDER = 1.4
_WIDEST = 0.02
"""Kernels grow by steps of `_WIDER` while noise is more than `_NOISE_SHARE` of the slopes' power, at most to the last
share of an episode."""
_MAD = 1.4826
_OVERLAP = 0.3
"""Offsets at which less than this share of the signals meets are not considered."""


@dataclass(frozen=True)
class Pair:
    """One episode: the reference as a smooth curve, the other channel smoothed on its own grid, and as it came.

    Args:
        reference: curve [.] -> [W] over `begin_s + step_s * n`; measured where `covered` [n].
        grid_s, other: [G], [G, W].
        raw_s, raw: [M], [M, W].
    """

    reference: CubicSpline
    begin_s: float
    step_s: float
    covered: np.ndarray
    grid_s: np.ndarray
    other: np.ndarray
    raw_s: np.ndarray
    raw: np.ndarray

    def usable(self, times_s: np.ndarray) -> np.ndarray:
        """Mark the times [G] at which the reference was measured."""
        place = np.rint((times_s - self.begin_s) / self.step_s).astype(int)
        inside = (place >= 0) & (place < len(self.covered))
        return inside & self.covered[np.clip(place, 0, len(self.covered) - 1)]


def comparable(episode: Arrays) -> bool:
    """Tell whether an episode is long enough, and its stamps dense enough to be stamps of one recording."""
    reference_s, _, other_s, _ = episode
    if min(len(reference_s), len(other_s)) < AT_LEAST:
        return False
    width_s = max(np.median(np.diff(reference_s)), np.median(np.diff(other_s)))
    periods = max(np.ptp(reference_s), np.ptp(other_s)) / width_s
    return bool(periods < min(_SPARSEST * max(len(reference_s), len(other_s)), _MOST_PERIODS))


def kernel_width_s(episodes: Sequence[Arrays], derivative: bool) -> float:
    """How much to smooth: a period of the slower channel, or more until the reference's slope is not mostly noise.

    Least squares takes slopes for exact. Those of noise make it slow to converge and too sure of itself.
    """
    width_s = float(np.median([max(np.median(np.diff(each[0])), np.median(np.diff(each[2]))) for each in episodes]))
    shortest_s = min(each[0][-1] - each[0][0] for each in episodes)
    while width_s < _WIDEST * shortest_s and _noise_of_slope(episodes, width_s, derivative) > _NOISE_SHARE:
        width_s *= _WIDER
    return width_s


def _noise_of_slope(episodes: Sequence[Arrays], width_s: float, derivative: bool) -> float:
    """The noise's share of the mean square slope of the smoothed reference (or of its derivative's), worst column."""
    order = 2 if derivative else 1
    # White noise behind a Gaussian kernel of width h: variance of its first and second derivative.
    factor = {1: 1.0 / (4.0 * np.sqrt(np.pi) * width_s**3), 2: 3.0 / (8.0 * np.sqrt(np.pi) * width_s**5)}[order]
    noise, power = [], []
    for stamps_s, values, _, _ in episodes:
        grid_s = np.arange(stamps_s[0], stamps_s[-1], width_s)
        smoothed = smooth(stamps_s, values, grid_s, width_s, np.inf)
        curve = smoothed.slopes if order == 1 else np.gradient(smoothed.slopes, width_s, axis=0)
        rough = np.diff(values, 4, axis=0)  # of motion hardly anything is left in it
        variance = np.square(_MAD * np.median(np.abs(rough), axis=0)) / 70.0  # 1 + 16 + 36 + 16 + 1
        noise.append(variance * np.median(np.diff(stamps_s)) * factor)
        power.append(np.mean(np.square(curve[smoothed.valid]), axis=0) if smoothed.valid.any() else 0.0 * variance)
    return float(np.max(np.mean(noise, axis=0) / np.maximum(np.mean(power, axis=0), 1e-300)))


def make_pair(episode: Arrays, width_s: float, derivative: bool) -> Pair | None:
    """Smooth both channels of an episode; None where nothing is left to compare."""
    reference_s, reference, other_s, other = episode
    gap_s = _GAP_PERIODS * width_s
    fine_s = np.arange(reference_s[0], reference_s[-1], width_s / 2)
    coarse_s = np.arange(other_s[0], other_s[-1], width_s)
    first = smooth(reference_s, reference, fine_s, width_s, gap_s)
    second = smooth(other_s, other, coarse_s, width_s, gap_s)
    if min(first.valid.sum(), second.valid.sum()) < AT_LEAST:
        return None
    return Pair(
        reference=CubicSpline(fine_s, first.slopes if derivative else first.values),
        begin_s=float(fine_s[0]),
        step_s=width_s / 2,
        covered=first.valid,
        grid_s=coarse_s[second.valid],
        other=second.values[second.valid],
        raw_s=other_s,
        raw=other,
    )


def search(pairs: Sequence[Pair], width_s: float, max_offset_s: float) -> tuple[float, float]:
    """Try offsets a kernel apart: the best by correlation, and how near another peak comes to it."""
    count = max(1, int(np.ceil(max_offset_s / width_s)))
    offsets_s = width_s * np.arange(-count, count + 1)
    score = np.array([_resemblance(pairs, offset_s) for offset_s in offsets_s])
    best = int(np.argmax(score))
    if best in (0, len(score) - 1):
        return float(offsets_s[best]), 1.0  # the end of what is looked for is no peak
    peaks = np.flatnonzero((score[1:-1] > score[:-2]) & (score[1:-1] > score[2:])) + 1
    rivals = score[peaks[np.abs(peaks - best) > 1]]
    return float(offsets_s[best]), float(rivals.max(initial=0.0) / score[best]) if score[best] > 0 else 1.0


def correlations(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Correlation of each column [W] of two signals [N, W]; 0 where one does not move."""
    one, two = first - first.mean(axis=0), second - second.mean(axis=0)
    power = np.sqrt(np.sum(one**2, axis=0) * np.sum(two**2, axis=0))
    return np.where(power > 0, np.sum(one * two, axis=0) / np.where(power > 0, power, 1.0), 0.0)


def _resemblance(pairs: Sequence[Pair], offset_s: float) -> float:
    """Mean over columns of the squared correlation at one offset."""
    here, there = [], []
    for pair in pairs:
        times_s = pair.grid_s - offset_s
        usable = pair.usable(times_s)
        there.append(pair.reference(times_s[usable]))
        here.append(pair.other[usable])
    joined = np.concatenate(there)
    if len(joined) < max(AT_LEAST, _OVERLAP * sum(len(pair.grid_s) for pair in pairs)):
        return 0.0
    return float(np.mean(correlations(joined, np.concatenate(here)) ** 2))
