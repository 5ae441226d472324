"""Identifiability: a covariance that holds for a misspecified model too, intervals and verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from rsr.calibration import Estimate, Verdict
from rsr.calibration.problem import Loss
from rsr.calibration.search.refinement import Linearisation
from rsr.calibration.uncertainty.information_matrices import information
from rsr.calibration.uncertainty.shared_error import SURPRISING
from rsr.scenarios import Parameter, ParameterSpace

CONFIDENCE = 0.95
PRIOR_INFLATION = 2.0
"""A prior's mean is a guess: it counts as an observation that is wrong by this many of its standard deviations."""
STD_INFLATION = 1.5
"""Linear theory is too narrow: contact-induced roughness moves an estimate between local minima, and the loss is
curved. All standard deviations are inflated by this: measured on recordings of simulators with known parameters."""
IDENTIFIED_SHRINKAGE = 0.35
"""*identified*: at most this share of the scenario's prior standard deviation remains ..."""
IDENTIFIED_STD = 0.2
"""... and at most this standard deviation in the unconstrained coordinate (20 % for logarithmic parameters)."""
WEAK_SHRINKAGE = 1.0
"""*weak*: less sharp than that, but not beyond this share. The rest is *not identifiable*."""
AT_BOUND_SHARE = 0.01
"""*at bound*: nearer to a bound than this share of the distance between the bounds, both as coordinates."""
_NORMAL = 10**6
"""Degrees of freedom at which Student's t is the normal distribution."""


@dataclass(frozen=True)
class Posterior:
    """Gaussian posterior around an estimate, in unconstrained coordinates.

    Args:
        covariance: [P, P], from the data and the prior of this fit; nowhere wider than that prior allows.
        data_std: [P], with the scenario's own prior instead of this fit's: how informative these data are alone.
        degrees: of freedom of the covariance, episodes less one.
        has_shared_error: [P], whether it contains model error that all episodes share; nowhere by default.
        shared: [P, P], the part of the covariance that is systematic: more sessions do not average it out.
    """

    covariance: np.ndarray
    data_std: np.ndarray
    degrees: int
    has_shared_error: np.ndarray | None = None
    shared: np.ndarray | None = None

    def scaled(self, factor: np.ndarray) -> Posterior:
        """Multiply its standard deviations by factors [P]; correlations stay as they are."""
        both = np.outer(factor, factor)
        shared = None if self.shared is None else self.shared * both
        return replace(self, covariance=self.covariance * both, shared=shared)


def posterior(
    loss: Loss, point: np.ndarray, slope: Linearisation, systematic: np.ndarray, driven: np.ndarray | None = None
) -> Posterior:
    """Compute a covariance of a point [P] that assumes neither independent residuals nor a right model.

    The Gauss-Newton covariance assumes both. Instead each episode is left out in turn, to first order, and the
    estimate's movement is its uncertainty (the jackknife over clusters, "CR3"). The scatter of the episodes' gradients
    alone, the plain "sandwich", is too narrow where a few episodes dominate, for the estimate follows them. The prior
    counts as one more independent observation, inflated by `PRIOR_INFLATION`.

    Args:
        systematic: [P, P], mean square of the errors that all episodes share and their scatter does not show, in units
            of the prior.
        driven: [P, P], the same of what the model's errors drove far from the prior; see `conflict`; none by default.
    """
    sums, shares = by_episode(loss, point, slope)
    units, driven = loss.prior.std, np.zeros_like(systematic) if driven is None else driven
    own = _jackknife(sums, shares, np.ones(len(point))) + systematic + driven
    # Coordinates are in units of this fit's prior: the scenario's own has precision (units / its std)^2 in them.
    wide = _jackknife(sums, shares, np.square(units / loss.scenario.space.prior_std)) + systematic
    # Data tell a parameter that surprises, if wrongly; `doubts` says so. Of the others they tell less for it.
    less = np.where(np.abs(point) > SURPRISING, 0.0, np.diag(driven))
    whole = Posterior(
        covariance=own * np.outer(units, units),
        data_std=np.sqrt(np.diag(wide) + less) * units,
        degrees=max(1, len(sums) - 1),
        shared=(systematic + driven) * np.outer(units, units),
    )
    return within_prior(whole, point, units)


def within_prior(found: Posterior, point: np.ndarray, units: np.ndarray) -> Posterior:
    """Narrow a posterior of an estimate at a point [P] to what the prior says of it, which holds whatever the data.

    The prior's mean square distance from a point x standard deviations off its mean is 1 + x^2.

    Args:
        units: [P], standard deviations of the prior.
    """
    capped = np.minimum(1.0, units * np.sqrt((1.0 + np.square(point)) / np.diag(found.covariance)))
    return found.scaled(capped)


def by_episode(loss: Loss, point: np.ndarray, slope: Linearisation) -> tuple[np.ndarray, np.ndarray]:
    """Gradients [E, P] of the episodes' losses at a point [P], and their parts [E, P, P] of the information."""
    episode, indices = loss.windows.episode, np.unique(loss.windows.episode)
    # J'r of each window, [W, P], then of each episode: its windows are correlated, so it is left out as a whole.
    gradients = np.einsum("wrp,wr->wp", slope.sensitivities, loss.misfits(point[None])[0])
    sums = np.array([gradients[episode == index].sum(axis=0) for index in indices])
    return sums, np.array([information(slope.sensitivities[episode == index]) for index in indices])


def _jackknife(gradients: np.ndarray, shares: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """Compute the covariance [P, P] of an estimate by leaving each episode out.

    Args:
        gradients: [E, P] of the episodes' losses.
        shares: [E, P, P], the episodes' parts of the information.
        precision: [P] of the prior.
    """
    whole, count = shares.sum(axis=0) + np.diag(precision), len(gradients)
    inverse = np.linalg.inv(whole)
    rest = whole - shares if count > 1 else whole[None]  # a single episode cannot be left out
    # Without episode e the gradient at the estimate is -g_e, so a Gauss-Newton step moves it by (H - H_e)^-1 g_e.
    moved = np.linalg.solve(rest, gradients[..., None])[..., 0]
    scatter = moved.T @ moved * max(1, count - 1) / count
    return STD_INFLATION**2 * (scatter + PRIOR_INFLATION**2 * inverse @ np.diag(precision) @ inverse)


def prior_only(space: ParameterSpace, prior_std: np.ndarray) -> Posterior:
    """Return the prior as the posterior of data without information."""
    return Posterior(np.diag(np.square(prior_std)), PRIOR_INFLATION * space.prior_std, degrees=_NORMAL)


def estimates(space: ParameterSpace, values: np.ndarray, found: Posterior) -> dict[str, Estimate]:
    """Make estimates of values [P], intervals cut off at the bounds."""
    std, centre = np.sqrt(np.diag(found.covariance)), space.to_coordinates(values)
    # Few episodes make their own scatter uncertain, not what was known before.
    before = np.hypot(space.prior_std, centre - space.to_coordinates(space.nominal))
    normal = half_widths(_NORMAL, np.maximum(std, before))
    width = np.minimum(half_widths(found.degrees, std), normal)
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


def half_widths(degrees: int, std: np.ndarray) -> np.ndarray:
    """Half of the 95 % intervals of estimates with standard deviations `std`."""
    # Few episodes estimate the covariance, so Student's t with their degrees of freedom instead of the normal.
    return stdtrit(degrees, 0.5 + CONFIDENCE / 2) * std


def verdict(parameter: Parameter, value: float, data_std: float) -> Verdict:
    """Judge one parameter by its distance from the bounds, then by the share of the prior that the data leave."""
    left = data_std / parameter.prior_std
    coordinates = (parameter.lower, value, parameter.upper, parameter.nominal)
    lower, here, upper, nominal = (float(parameter.to_coordinate(each)) for each in coordinates)
    near = AT_BOUND_SHARE * (upper - lower)
    # Whatever led there, the bound stopped it, and not the data; unless it begins there and nothing is known of it.
    if min(here - lower, upper - here) < near and (left <= WEAK_SHRINKAGE or abs(here - nominal) > near):
        return "at bound"
    if left > WEAK_SHRINKAGE:
        return "not identifiable"
    return "identified" if left <= IDENTIFIED_SHRINKAGE and data_std <= IDENTIFIED_STD else "weak"


def at_bound_warnings(judged: Mapping[str, Estimate]) -> list[str]:
    """Warn of parameters that ended at a bound, with the remedy."""
    return [
        f"{name} ended at its bound ({estimate.value:.4g} {estimate.unit}): the truth may lie beyond. Widen the bound "
        "in the scenario if that is physical, or look for an effect that the model lacks."
        for name, estimate in judged.items()
        if estimate.verdict == "at bound"
    ]


def widened(found: Posterior, spread: np.ndarray) -> Posterior:
    """Widen a posterior to standard deviations of at least `spread` [P], in unconstrained coordinates."""
    factor = np.maximum(1.0, spread / np.sqrt(np.diag(found.covariance)))
    return replace(found.scaled(factor), data_std=np.maximum(found.data_std, spread))
