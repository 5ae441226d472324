"""One smoothing for two channels: equal kernels move nothing in time, whatever rates, jitter and losses they have.

Signals are compared after smoothing because interpolated noise is weaker between two samples than on one: offsets
fitted to raw signals lock to whole samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
