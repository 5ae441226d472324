"""What the data can tell: a covariance that holds for a wrong model too, and a verdict per parameter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from rsr.calibration.contract import Estimate, Verdict
from rsr.calibration.loss import Loss
from rsr.calibration.refine import Slope
from rsr.scenarios import Parameter, ParameterSpace

CONFIDENCE = 0.95
PRIOR_DOUBT = 2.0
"""A prior's mean is a guess: its pull counts as if it were wrong by this many of its standard deviations."""
INFLATION = 1.5
"""Linear theory is too narrow, for ripples move an estimate from dent to dent and valleys are curved. All standard
deviations are widened by this: measured on recordings of simulators with known parameters."""
IDENTIFIED_SHRINKAGE = 0.35
"""*identified*: of the scenario's prior standard deviation at most this share is left ..."""
IDENTIFIED_STD = 0.2
"""... and at most this standard deviation in the unconstrained coordinate (20 % for logarithmic parameters)."""
WEAK_SHRINKAGE = 1.0
"""*weak*: less sharp than that, but not beyond this share. The rest is *not identifiable*."""
AT_BOUND_SHARE = 0.01
"""*at bound*: nearer to a bound than this share of the distance between the bounds, both as coordinates."""


@dataclass(frozen=True)
class Posterior:
    """Around an estimate, in unconstrained coordinates.

    Args:
        covariance: [P, P], from the data and the prior of this fit; nowhere wider than that prior.
        data_std: [P], had the scenario's own prior been used: what these data alone tell.
        degrees: of freedom of the covariance, episodes less one.
    """

    covariance: np.ndarray
    data_std: np.ndarray
    degrees: int


def posterior(loss: Loss, point: np.ndarray, slope: Slope, pull: np.ndarray) -> Posterior:
    """Covariance of a point [P] that supposes neither independent residuals nor a right model.

    The Gauss-Newton covariance supposes both. Instead each episode is left out in turn, to first order: how far that
    would move the estimate tells how well it is known (the jackknife over clusters, "CR3"). The scatter of the
    episodes' gradients alone, the plain "sandwich", is too narrow where a few episodes tell most, for the estimate
    follows them. The prior counts as one more independent observation, doubted.

    Args:
        pull: [P], how far what is wrong in all episodes alike, which their scatter does not show, may have moved the
            point.
    """
    episode, owners = loss.windows.episode, np.unique(loss.windows.episode)
    gradients = np.einsum("wrp,wr->wp", slope.sensitivities, loss.misfits(point[None])[0])
    sums = np.array([gradients[episode == owner].sum(axis=0) for owner in owners])
    shares = np.array([_information(slope.sensitivities[episode == owner]) for owner in owners])
    units = loss.prior.std
    own = _left_out(sums, shares, np.ones(len(point))) + np.outer(pull, pull)
    capped = np.minimum(1.0, 1.0 / np.sqrt(np.diag(own)))
    wide = _left_out(sums, shares, np.square(units / loss.scenario.space.prior_std)) + np.outer(pull, pull)
    return Posterior(
        covariance=own * np.outer(units * capped, units * capped),
        data_std=np.sqrt(np.diag(wide)) * units,
        degrees=max(1, len(sums) - 1),
    )


def _information(sensitivities: np.ndarray) -> np.ndarray:
    """Precision [P, P] that sensitivities [W, R, P] give."""
    flat = sensitivities.reshape(-1, sensitivities.shape[-1])
    return flat.T @ flat


def _left_out(gradients: np.ndarray, shares: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """Covariance [P, P] of an estimate, from what each episode says of it.

    Args:
        gradients: [E, P] of the episodes' losses.
        shares: [E, P, P], the episodes' parts of the information.
        precision: [P] of the prior.
    """
    whole, count = shares.sum(axis=0) + np.diag(precision), len(gradients)
    inverse = np.linalg.inv(whole)
    rest = whole - shares if count > 1 else whole[None]  # a single episode cannot be left out
    moved = np.linalg.solve(rest, gradients[..., None])[..., 0]
    scatter = moved.T @ moved * max(1, count - 1) / count
    return INFLATION**2 * (scatter + PRIOR_DOUBT**2 * inverse @ np.diag(precision) @ inverse)


def ignorance(space: ParameterSpace, prior_std: np.ndarray) -> Posterior:
    """What is known where the data tell nothing: the prior."""
    return Posterior(np.diag(np.square(prior_std)), PRIOR_DOUBT * space.prior_std, degrees=10**6)


def estimates(space: ParameterSpace, values: np.ndarray, found: Posterior) -> dict[str, Estimate]:
    """Estimates of values [P], intervals cut off at the bounds."""
    width = stdtrit(found.degrees, 0.5 + CONFIDENCE / 2) * np.sqrt(np.diag(found.covariance))
    centre = space.to_coordinates(values)
    lower, upper = (np.clip(space.to_values(centre + side), space.lower, space.upper) for side in (-width, width))
    return {
        parameter.name: Estimate(
            value=float(values[i]),
            lower=float(lower[i]),
            upper=float(upper[i]),
            unit=parameter.unit,
            verdict=verdict(parameter, float(values[i]), float(found.data_std[i])),
        )
        for i, parameter in enumerate(space)
    }


def verdict(parameter: Parameter, value: float, data_std: float) -> Verdict:
    """Judge one parameter by what the data leave of the scenario's prior."""
    left = data_std / parameter.prior_std
    if left > WEAK_SHRINKAGE:
        return "not identifiable"
    lower, here, upper = (float(parameter.to_coordinate(each)) for each in (parameter.lower, value, parameter.upper))
    if min(here - lower, upper - here) < AT_BOUND_SHARE * (upper - lower):
        return "at bound"
    return "identified" if left <= IDENTIFIED_SHRINKAGE and data_std <= IDENTIFIED_STD else "weak"


def at_bound(judged: Mapping[str, Estimate]) -> list[str]:
    """Say which parameters ended at a bound, and what to do about it."""
    return [
        f"{name} ended at its bound ({estimate.value:.4g} {estimate.unit}): the truth may lie beyond. Widen the bound "
        "in the scenario if that is physical, or look for an effect that the model lacks."
        for name, estimate in judged.items()
        if estimate.verdict == "at bound"
    ]


def widened(found: Posterior, spread: np.ndarray) -> Posterior:
    """The same, no standard deviation smaller than `spread` [P], in unconstrained coordinates."""
    factor = np.maximum(1.0, spread / np.sqrt(np.diag(found.covariance)))
    return replace(
        found, covariance=found.covariance * np.outer(factor, factor), data_std=np.maximum(found.data_std, spread)
    )
