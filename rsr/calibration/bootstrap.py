"""Are the intervals as wide as they should be? Refits to resampled episodes, and to shorter windows, say so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rsr.calibration.contract import Prior
from rsr.calibration.identifiability import PRIOR_DOUBT
from rsr.calibration.loss import Loss
from rsr.calibration.refine import refine
from rsr.calibration.shares import can_travel, parts_of
from rsr.progress import Advance, ignore
from rsr.simulators import MujocoSimulator
from rsr.spreading import spread

TOO_NARROW = 1.25
"""Refits that scatter by more than this factor beyond the covariance are worth a warning."""
UNSTABLE = 3.0
"""Standard deviations that an estimate may move on windows half as long."""


def refits(loss: Loss, point: np.ndarray, count: int, seed: int, advance: Advance) -> np.ndarray:
    """Points [count, P] fitted again, from a point [P] on, each to as many episodes drawn with replacement.

    The prior's mean is drawn anew too, as far from itself as it is doubted: otherwise what only the prior tells would
    seem certain.
    """
    rng = np.random.default_rng(seed)
    owners = np.unique(loss.windows.episode)
    draws = []
    for _ in range(count):
        pulled = PRIOR_DOUBT * rng.normal(size=len(point))
        draws.append({"pulled": pulled, "owners": rng.choice(owners, len(owners)), "seed": int(rng.integers(2**31))})
    if can_travel(loss):
        jobs = [{"parts": parts_of(loss), "point": point, **draw} for draw in draws]
        return np.array(spread("rsr.calibration.bootstrap:refit_elsewhere", jobs, advance))
    found = []
    for turn, draw in enumerate(draws, 1):
        found.append(_refit(loss, point, **draw))
        advance(turn / count, f"refit {turn} of {count} resamples")
    return np.array(found)


def refit_elsewhere(parts: dict[str, Any], **draw: Any) -> np.ndarray:
    """One refit as a job that may be done anywhere."""
    with MujocoSimulator(parts["scenario"], threads=1) as simulator:
        return _refit(Loss(simulator=simulator, **parts), **draw)


def _refit(loss: Loss, point: np.ndarray, pulled: np.ndarray, owners: np.ndarray, seed: int) -> np.ndarray:
    drawn = _resampled(loss, owners, pulled)
    start = np.clip(point - pulled, *drawn.bounds.T)
    return refine(drawn, start, seed, ignore)[0] + pulled


def _resampled(loss: Loss, owners: np.ndarray, pulled: np.ndarray) -> Loss:
    """The loss on the windows of drawn episodes, each draw an episode of its own, under a prior with another mean."""
    rows = [np.flatnonzero(loss.windows.episode == owner) for owner in owners]
    chosen, episode = np.concatenate(rows), np.repeat(np.arange(len(rows)), [len(each) for each in rows])
    drawn, mean = loss.take(chosen), loss.prior.mean + pulled * loss.prior.std
    windows = replace(drawn.windows, episode=episode)
    zeros = drawn.zeros and replace(drawn.zeros, episode=episode)
    return replace(drawn, windows=windows, zeros=zeros, prior=Prior(mean, loss.prior.std), origin=None)


def horizon_shift(loss: Loss, point: np.ndarray, seed: int) -> np.ndarray:
    """How far a point [P] moves if it is fitted again on windows half as long, in standard deviations of the prior."""
    half = loss.shortened(max(1, loss.windows.steps // 2))
    return refine(half, point, seed, ignore)[0] - point


def warnings(bootstrap: Mapping[str, float], horizon: Mapping[str, float]) -> list[str]:
    """Say where refits disagree with the interval."""
    narrow = [
        f"{name}: refits to resampled episodes scatter {ratio:.1f} times wider than the interval said, which was "
        "widened to them. Episodes disagree: record more of them."
        for name, ratio in bootstrap.items()
        if ratio > TOO_NARROW
    ]
    unsteady = [
        f"{name} moves by {abs(shift):.1f} standard deviations if windows are half as long: the model lacks an effect "
        "that grows with time, or one that matters at first. Look at the replays before you trust it."
        for name, shift in horizon.items()
        if abs(shift) > UNSTABLE
    ]
    return [*narrow, *unsteady]
