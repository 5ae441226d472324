"""Second half of `rsr.sessions.clocks.estimate`: robust least squares for offset and drift, and what they are worth.

Model, per column: other(stamp) = gain * reference(stamp - offset - drift * (stamp - middle)) + bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rsr.sessions.clocks.search import AT_LEAST, Pair, correlations

_ROUNDS = 40
_DONE = 1e-6
"""Steps in time smaller than this share of a kernel change nothing any more."""
_HUBER = 2.0
"""Residuals beyond this many standard deviations count linearly."""
_MOST_BLOCKS = 30
_BLOCK_WIDTHS = 25.0
"""A block lasts at least this many kernels, so that what happens in one says little of the next."""
_MAD = 1.4826
_SCATTER_ROUNDS = 6
_OUTLYING = 50.0
"""Squares of residuals beyond this many times what is usual say nothing of jitter."""


@dataclass(frozen=True)
class ClockFit:
    """Offset, drift, then gain and bias of each column.

    Args:
        values, covariance: [P] and [P, P]; rows of what was not fitted are zero.
        freedom: blocks less what was fitted.
        middle_s: of the other channel's stamps, where offset and drift are least correlated.
        correlation: of the smoothed signals once aligned, mean over columns.
        jitter_s, jitter_error_s: of single stamps.
    """

    values: np.ndarray
    covariance: np.ndarray
    freedom: int
    middle_s: float
    correlation: float
    jitter_s: float
    jitter_error_s: float


@dataclass(frozen=True)
class _Rows:
    """Residuals [R, W] at times whose clock is right if they are small, their slopes [R, W, P], and blocks [R]."""

    residuals: np.ndarray
    slopes: np.ndarray
    block: np.ndarray
    signals: tuple[np.ndarray, np.ndarray]


def refine(pairs: Sequence[Pair], offset_s: float, width_s: float, drift: bool) -> ClockFit | None:
    """Improve a rough offset; None where too little of the signals meets."""
    middle_s = float(np.mean(np.concatenate([pair.grid_s for pair in pairs])))
    blocks = _Blocks(pairs, width_s)
    columns = pairs[0].other.shape[1]
    values = np.concatenate([[offset_s, 0.0], np.tile([1.0, 0.0], columns)])
    fitted = np.array([False, False] + [True] * 2 * columns)  # first gains and biases alone
    for _ in range(_ROUNDS):
        rows = _rows(pairs, values, middle_s, blocks)
        if len(rows.residuals) < AT_LEAST:
            return None
        step = _step(rows, fitted)
        values = values + step * min(1.0, width_s / max(abs(step[0]), 1e-300))
        if fitted[0] and abs(step[0]) < _DONE * width_s:
            break
        fitted[:2] = True, drift
    rows = _rows(pairs, values, middle_s, blocks)
    if len(rows.residuals) < AT_LEAST:
        return None
    covariance, freedom = _covariance(rows, fitted)
    jitter_s, jitter_error_s = _jitter(pairs, values, middle_s, width_s, blocks)
    resemblance = float(np.mean(np.abs(correlations(*rows.signals))))
    return ClockFit(values, covariance, freedom, middle_s, resemblance, jitter_s, jitter_error_s)


@dataclass(frozen=True)
class _Blocks:
    """Cuts time into pieces that are witnesses of their own."""

    pairs: Sequence[Pair]
    width_s: float

    def of(self, episode: int, times_s: np.ndarray) -> np.ndarray:
        """Number the blocks [R] of an episode's times."""
        total_s = sum(pair.grid_s[-1] - pair.grid_s[0] for pair in self.pairs)
        length_s = max(total_s / _MOST_BLOCKS, _BLOCK_WIDTHS * self.width_s)
        grid_s = self.pairs[episode].grid_s
        count = max(1, int((grid_s[-1] - grid_s[0]) / length_s))
        place = (times_s - grid_s[0]) / max(grid_s[-1] - grid_s[0], 1e-12)
        return episode * 10**6 + np.clip((place * count).astype(int), 0, count - 1)


def _rows(pairs: Sequence[Pair], values: np.ndarray, middle_s: float, blocks: _Blocks) -> _Rows:
    gains, biases = values[2::2], values[3::2]
    parts = []
    for episode, pair in enumerate(pairs):
        since_s = pair.grid_s - middle_s
        times_s = pair.grid_s - values[0] - values[1] * since_s
        used = pair.usable(times_s)
        curve, speed = pair.reference(times_s[used]), gains * pair.reference(times_s[used], 1)
        slopes = np.zeros((*curve.shape, len(values)))
        slopes[:, :, 0] = speed
        slopes[:, :, 1] = speed * since_s[used, None]
        for column in range(curve.shape[1]):
            slopes[:, column, 2 + 2 * column] = -curve[:, column]
            slopes[:, column, 3 + 2 * column] = -1.0
        residuals = pair.other[used] - gains * curve - biases
        parts.append((residuals, slopes, blocks.of(episode, pair.grid_s[used]), curve, pair.other[used]))
    residuals, slopes, block, curve, other = (np.concatenate(each) for each in zip(*parts, strict=True))
    return _Rows(residuals, slopes, block, (curve, other))


def _scaled(rows: _Rows) -> tuple[np.ndarray, np.ndarray]:
    """Residuals [R * W] and slopes [R * W, P] in standard deviations of each column's own misfit."""
    spread = _MAD * np.median(np.abs(rows.residuals - np.median(rows.residuals, axis=0)), axis=0)
    spread = np.maximum(spread, 1e-9 * np.maximum(np.std(rows.signals[1], axis=0), 1e-12))
    return (rows.residuals / spread).ravel(), (rows.slopes / spread[:, None]).reshape(-1, rows.slopes.shape[-1])


def _step(rows: _Rows, fitted: np.ndarray) -> np.ndarray:
    """One Gauss-Newton step [P] with Huber's weights."""
    residuals, slopes = _scaled(rows)
    weight = np.sqrt(np.minimum(1.0, _HUBER / np.maximum(np.abs(residuals), 1e-300)))
    size = np.maximum(np.linalg.norm(slopes, axis=0), 1e-300)
    step = np.zeros(len(fitted))
    system = weight[:, None] * (slopes / size)[:, fitted]
    step[fitted] = np.linalg.lstsq(system, -weight * residuals, rcond=1e-12)[0] / size[fitted]
    return step


def _covariance(rows: _Rows, fitted: np.ndarray) -> tuple[np.ndarray, int]:
    """Covariance [P, P] by the scatter of the blocks' gradients (a sandwich, clustered), and its degrees of freedom."""
    residuals, slopes = _scaled(rows)
    slopes = slopes[:, fitted]
    gradients = slopes * np.clip(residuals, -_HUBER, _HUBER)[:, None]
    inside = np.abs(residuals) < _HUBER
    size = np.linalg.norm(slopes, axis=0)
    informative = size > 0  # a signal at rest says nothing of its time
    size = np.where(informative, size, 1.0)
    curvature = (slopes[inside] / size).T @ (slopes[inside] / size)
    _, place = np.unique(rows.block, return_inverse=True)
    count = int(place.max()) + 1
    sums = np.zeros((count, slopes.shape[1]))
    np.add.at(sums, np.repeat(place, rows.residuals.shape[1]), gradients / size)
    inverse = np.linalg.pinv(curvature)
    freedom = max(1, count - slopes.shape[1])
    found = inverse @ (sums.T @ sums) @ inverse * count / freedom / np.outer(size, size)
    found[~informative, ~informative] = np.inf
    covariance = np.zeros((len(fitted), len(fitted)))
    covariance[np.ix_(fitted, fitted)] = found
    return covariance, freedom


def _jitter(
    pairs: Sequence[Pair], values: np.ndarray, middle_s: float, width_s: float, blocks: _Blocks
) -> tuple[float, float]:
    """Scatter of single stamps: what of the raw residuals' square grows with the square of the signal's speed."""
    gains, biases = values[2::2], values[3::2]
    squares, speeds, block = [], [], []
    for episode, pair in enumerate(pairs):
        times_s = pair.raw_s - values[0] - values[1] * (pair.raw_s - middle_s)
        used = pair.usable(times_s)
        # Smoothing took half the squared width times the curvature off the curve; the raw signal still has it.
        curve = pair.reference(times_s[used]) - 0.5 * width_s**2 * pair.reference(times_s[used], 2)
        squares.append((pair.raw[used] - gains * curve - biases) ** 2)
        speeds.append((gains * pair.reference(times_s[used], 1)) ** 2)
        block.append(blocks.of(episode, pair.raw_s[used]))
    return _scatter(np.concatenate(squares), np.concatenate(speeds), np.concatenate(block))


def _scatter(squares: np.ndarray, speeds: np.ndarray, block: np.ndarray) -> tuple[float, float]:
    """Fit squares [R, W] = noise of the column + jitter^2 * speeds, weighted by what each is expected to scatter."""
    columns = squares.shape[1]
    usual = np.maximum(np.median(squares, axis=0), 1e-300)
    design = np.concatenate(
        [np.eye(columns)[None] * usual + np.zeros_like(squares)[:, :, None], speeds[:, :, None]], axis=2
    )
    target = np.minimum(
        squares, _OUTLYING * np.maximum(usual, speeds * np.median(squares / np.maximum(speeds, 1e-300)))
    )
    found = np.zeros(columns + 1)
    system, goal, size = design.reshape(-1, columns + 1), target.ravel(), np.ones(columns + 1)
    for _ in range(_SCATTER_ROUNDS):
        expected = np.maximum(design @ np.maximum(found, 0.0), 0.1 * usual)
        system = (design / expected[:, :, None]).reshape(-1, columns + 1)
        size = np.maximum(np.linalg.norm(system, axis=0), 1e-300)
        goal = (target / expected).ravel()
        found = np.linalg.lstsq(system / size, goal, rcond=1e-12)[0] / size
    gradients = (system / size) * (goal - system @ found)[:, None]
    _, place = np.unique(block, return_inverse=True)
    sums = np.zeros((int(place.max()) + 1, columns + 1))
    np.add.at(sums, np.repeat(place, columns), gradients)
    inverse = np.linalg.pinv((system / size).T @ (system / size))
    error = float(np.sqrt((inverse @ sums.T @ sums @ inverse)[-1, -1]) / size[-1])
    jitter_s = float(np.sqrt(max(found[-1], 0.0)))
    return jitter_s, min(error / (2.0 * jitter_s), float(np.sqrt(error))) if jitter_s > 0 else float(np.sqrt(error))
