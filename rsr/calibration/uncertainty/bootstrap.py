"""Bootstrap of the intervals: refits to resampled episodes, and to shorter windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rsr.calibration import Prior
from rsr.calibration.problem import Loss, can_be_spread, parts_of
from rsr.calibration.search import refine
from rsr.calibration.uncertainty.identifiability import PRIOR_INFLATION
from rsr.common import Advance, ignore, spread
from rsr.simulators import MujocoSimulator

TOO_NARROW = 1.25
"""Refits that scatter by more than this factor beyond the covariance are worth a warning."""
UNSTABLE = 3.0
"""Standard deviations that an estimate may move on windows half as long."""


def refits(loss: Loss, point: np.ndarray, count: int, seed: int, advance: Advance) -> np.ndarray:
    """Refit from a point [P], each time to as many episodes drawn with replacement; returns points [count, P].

    The prior's mean is redrawn too, with its inflated standard deviation: otherwise a parameter that only the prior
    determines would not scatter at all, and seem certain.
    """
    rng = np.random.default_rng(seed)
    indices = np.unique(loss.windows.episode)
    draws = []
    for _ in range(count):
        shift = PRIOR_INFLATION * rng.normal(size=len(point))
        drawn = rng.choice(indices, len(indices))
        draws.append({"prior_shift": shift, "episodes": drawn, "seed": int(rng.integers(2**31))})
    if can_be_spread(loss):
        jobs = [{"parts": parts_of(loss), "point": point, **draw} for draw in draws]
        return np.array(spread("rsr.calibration.uncertainty.bootstrap:refit_resample", jobs, advance))
    found = []
    for turn, draw in enumerate(draws, 1):
        found.append(_refit(loss, point, **draw))
        advance(turn / count, f"refit {turn} of {count} resamples")
    return np.array(found)


def refit_resample(parts: dict[str, Any], **draw: Any) -> np.ndarray:
    """Do one refit as a job, in whatever process."""
    with MujocoSimulator(parts["scenario"], threads=1) as simulator:
        return _refit(Loss(simulator=simulator, **parts), **draw)


def _refit(loss: Loss, point: np.ndarray, prior_shift: np.ndarray, episodes: np.ndarray, seed: int) -> np.ndarray:
    drawn = _resampled(loss, episodes, prior_shift)
    # Points are relative to the prior's mean: the same values have other coordinates under the shifted one.
    start = np.clip(point - prior_shift, *drawn.bounds.T)
    return refine(drawn, start, seed, ignore)[0] + prior_shift


def _resampled(loss: Loss, episodes: np.ndarray, prior_shift: np.ndarray) -> Loss:
    """Make the loss on the windows of drawn episodes, each draw an episode of its own, with a shifted prior mean."""
    # An episode drawn twice counts as two, with biases of their own: else the covariance would see too few.
    rows = [np.flatnonzero(loss.windows.episode == index) for index in episodes]
    chosen, episode = np.concatenate(rows), np.repeat(np.arange(len(rows)), [len(each) for each in rows])
    drawn, mean = loss.take(chosen), loss.prior.mean + prior_shift * loss.prior.std
    windows = replace(drawn.windows, episode=episode)
    biases = drawn.biases and replace(drawn.biases, episode=episode)
    return replace(drawn, windows=windows, biases=biases, prior=Prior(mean, loss.prior.std), origin=None)


def horizon_shift(loss: Loss, point: np.ndarray, seed: int) -> np.ndarray:
    """Refit a point [P] on windows half as long; returns how far it moves, in standard deviations of the prior."""
    half = loss.shortened(max(1, loss.windows.steps // 2))
    return refine(half, point, seed, ignore)[0] - point


def warnings(bootstrap: Mapping[str, float], horizon: Mapping[str, float]) -> list[str]:
    """Warn where refits disagree with the interval."""
    narrow = [
        f"{name}: refits to resampled episodes scatter {ratio:.1f} times wider than the interval said, which was "
        "widened to them. Episodes disagree: record more of them."
        for name, ratio in bootstrap.items()
        if ratio > TOO_NARROW
    ]
    moved = [
        f"{name} moves by {abs(shift):.1f} standard deviations if windows are half as long: the model lacks an effect "
        "that grows with time, or one that matters at first. Look at the replays before you trust it."
        for name, shift in horizon.items()
        if abs(shift) > UNSTABLE
    ]
    return [*narrow, *moved]
