"""Sessions of one robot together: each is fitted by itself, compared with the earlier ones, and then added to these.

A fit that began with what earlier sessions say would not notice a change: it would take it for the model's error.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
from scipy.special import ndtr, stdtrit

from rsr.calibration import Prior
from rsr.calibration.interface import Knowledge
from rsr.calibration.uncertainty.identifiability import Posterior
from rsr.scenarios import ParameterSpace

CHANGED = 4.0
"""Standard deviations between a session's estimate and the earlier ones', beyond which a parameter has changed. Where
the model is wrong, other motions alone move an estimate by up to three."""


def changes(
    space: ParameterSpace, earlier: Knowledge, prior: Prior, mean: np.ndarray, found: Posterior
) -> dict[str, str]:
    """Name parameters whose estimate by one session [P] contradicts the earlier ones: parameter -> how.

    Args:
        mean: of the posterior `found`, in unconstrained coordinates.
    """
    apart, spread = _apart(earlier, prior, mean, found)
    deviations = np.abs(apart) / np.sqrt(spread)
    # Few episodes estimate the covariance: Student's t with their degrees of freedom instead of the normal.
    limit = stdtrit(min(found.degrees, earlier.degrees), ndtr(CHANGED))
    before, now = (space.mapping(space.to_values(each)) for each in (earlier.mean, mean))
    return {
        name: f"{_worded(before[name], space[name].unit)} before, {_worded(now[name], space[name].unit)} now, "
        f"{deviations[index]:.1f} standard deviations apart"
        for index, name in enumerate(space.names)
        if deviations[index] > limit
    }


def _worded(value: float, unit: str) -> str:
    return f"{value:.4g}" if unit == "1" else f"{value:.4g} {unit}"


def without(earlier: Knowledge, prior: Prior, space: ParameterSpace, changed: Collection[str]) -> Knowledge:
    """Put parameters that have changed back to the prior: earlier sessions say nothing of them."""
    gone = np.isin(space.names, list(changed))
    stays = np.outer(~gone, ~gone)
    return replace(
        earlier,
        mean=np.where(gone, prior.mean, earlier.mean),
        covariance=earlier.covariance * stays + np.diag(np.where(gone, np.square(prior.std), 0.0)),
        shared=earlier.shared * stays,
        data_std=np.where(gone, np.inf, earlier.data_std),
    )


def joined(earlier: Knowledge, prior: Prior, mean: np.ndarray, found: Posterior) -> tuple[np.ndarray, Posterior]:
    """Add one session's estimate [P] to what earlier sessions say; returns the mean of both, and its posterior.

    Both contain the prior, which counts once. Scatter of the sessions is independent, so it averages out; the model's
    shared error is the same in all of them, so it does not. Where they disagree by more than their covariances say, the
    rest counts as scatter of both (random effects, DerSimonian and Laird 1986).
    """
    units = np.outer(prior.std, prior.std)
    first, second = ((each - prior.mean) / prior.std for each in (earlier.mean, mean))
    apart, spread = _apart(earlier, prior, mean, found)
    excess = np.diag(np.maximum(0.0, (np.square(apart) - spread) / 2.0))
    shared = earlier.shared / units, (np.zeros_like(units) if found.shared is None else found.shared) / units
    known = earlier.covariance / units - shared[0] + excess
    added = found.covariance / units - shared[1] + excess
    # Weighed by the size of the model's error in each parameter: which combinations it spares, a session only seems to
    # tell, and sums that trusted both sessions' narrow directions held for three parameters of seven.
    weighed = [each + np.diag(np.diag(part)) for each, part in zip((known, added), shared, strict=True)]
    of_data, _ = _of_data(weighed[1])
    left = np.linalg.inv(np.linalg.inv(weighed[0]) + of_data)
    # They sum to one. How far the prior drew an estimate is not undone: covariances are inflated, and so would that be.
    weights = left @ np.linalg.inv(weighed[0]), left @ of_data
    both = prior.mean + prior.std * (weights[0] @ first + weights[1] @ second)
    scatter = sum(weight @ each @ weight.T for weight, each in zip(weights, (known, added), strict=True))
    alike = _of_sum(*(weight @ each @ weight.T for weight, each in zip(weights, shared, strict=True)))
    covariance = (scatter + alike) * units
    data_std = np.minimum(found.data_std, earlier.data_std)
    degrees = max(found.degrees, earlier.degrees)
    return both, replace(found, covariance=covariance, shared=alike * units, data_std=data_std, degrees=degrees)


def _apart(earlier: Knowledge, prior: Prior, mean: np.ndarray, found: Posterior) -> tuple[np.ndarray, np.ndarray]:
    """Distances [P] of a session's estimate from what the earlier ones let expect, and their variances [P]."""
    units = np.outer(prior.std, prior.std)
    first, second = ((each - prior.mean) / prior.std for each in (earlier.mean, mean))
    # An estimate that data hardly tell lies near the prior's mean, wherever the truth is.
    _, share = _of_data(found.covariance / units)
    spread = found.covariance / units + share @ (earlier.covariance / units) @ share.T
    return second - share @ first, np.diag(spread)


def _of_data(covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What data alone say in a posterior of covariance [P, P] in units of the prior.

    Returns:
        Their precision; how much of a distance from the prior's mean to the truth the estimate shows.
    """
    # The prior's own precision is one. Inflation may leave less of the posterior's than that: then data say nothing.
    precision, axes = np.linalg.eigh(np.linalg.inv(covariance))
    parts = np.maximum(precision - 1.0, 0.0), np.maximum(1.0 - 1.0 / precision, 0.0)
    of_data, share = ((axes * each) @ axes.T for each in parts)
    return of_data, share


def _of_sum(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Bound the covariance [P, P] of the sum of two errors that may be fully correlated."""
    # (a + b)(a + b)' <= (1 + t) a a' + (1 + 1 / t) b b' for every t > 0; least in the trace for t = |b| / |a|.
    sizes = [np.sqrt(max(float(np.trace(each)), 1e-300)) for each in (first, second)]
    ratio = sizes[1] / sizes[0]
    return (1.0 + ratio) * first + (1.0 + 1.0 / ratio) * second


def doubted(found: Posterior, space: ParameterSpace, doubts: Collection[str]) -> Posterior:
    """Let what did not survive a check of this session count as *weak* in it."""
    doubtful = np.isin(space.names, list(doubts))
    return replace(found, data_std=np.where(doubtful, np.maximum(found.data_std, space.prior_std), found.data_std))


def change_warnings(found: dict[str, str]) -> list[str]:
    """Say what has changed since earlier sessions, and what follows."""
    return [
        f"{name} has changed since earlier sessions ({how}): these no longer count for it. If nothing was changed on "
        "the robot or around it, look for wear, a shifted sensor or a new load."
        for name, how in found.items()
    ]
