"""Identifiability: a covariance that holds for a misspecified model too, verdicts, and correlated parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from rsr.calibration import Estimate, Verdict
from rsr.calibration.problem import Loss
from rsr.calibration.search.refinement import Linearisation
from rsr.calibration.uncertainty.information_matrices import information
from rsr.scenarios import Parameter, ParameterSpace, Scenario

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


def posterior(loss: Loss, point: np.ndarray, slope: Linearisation, systematic: np.ndarray) -> Posterior:
    """Compute a covariance of a point [P] that assumes neither independent residuals nor a right model.

    The Gauss-Newton covariance assumes both. Instead each episode is left out in turn, to first order, and the
    estimate's movement is its uncertainty (the jackknife over clusters, "CR3"). The scatter of the episodes' gradients
    alone, the plain "sandwich", is too narrow where a few episodes dominate, for the estimate follows them. The prior
    counts as one more independent observation, inflated by `PRIOR_INFLATION`.

    Args:
        systematic: [P, P], mean square of the errors that all episodes share and their scatter does not show, in units
            of the prior.
    """
    sums, shares = by_episode(loss, point, slope)
    units = loss.prior.std
    own = _jackknife(sums, shares, np.ones(len(point))) + systematic
    # Coordinates are in units of this fit's prior: the scenario's own has precision (units / its std)^2 in them.
    wide = _jackknife(sums, shares, np.square(units / loss.scenario.space.prior_std)) + systematic
    whole = Posterior(
        covariance=own * np.outer(units, units),
        data_std=np.sqrt(np.diag(wide)) * units,
        degrees=max(1, len(sums) - 1),
        shared=systematic * np.outer(units, units),
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
    return Posterior(np.diag(np.square(prior_std)), PRIOR_INFLATION * space.prior_std, degrees=10**6)


def estimates(space: ParameterSpace, values: np.ndarray, found: Posterior) -> dict[str, Estimate]:
    """Make estimates of values [P], intervals cut off at the bounds."""
    # Few episodes estimate the covariance, so Student's t with their degrees of freedom instead of the normal.
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


# Correlated parameters: which combination the recordings do not determine, and what to record instead.

CORRELATED = 0.9
"""Parameters whose errors correlate by more than this are reported."""
_COMPONENT_SHARE = 0.2
"""Components of a direction smaller than this share of its largest are not reported, ..."""
_NAMED = 3
"""... and so many at most: nobody reads seventeen names."""
_REMEDIES: tuple[tuple[frozenset[str], frozenset[str], str], ...] = tuple(
    (frozenset(first.split()), frozenset(second.split()), text)
    for first, second, text in (
        ("friction", "mass", "Record a free slide, which depends on friction but not on mass, or weigh the body."),
        ("mass", "inertia com_distance com_x com_y com_z", "Weigh the body, and find its balance on an edge."),
        ("inertia", "com_distance com_x com_y com_z", "Let the body swing about two different axes."),
        (
            "inertia mass com_distance",
            "armature",
            "Record the drive without its load, or take armature from a data sheet.",
        ),
        (
            "position_gain",
            "damping",
            "Record steps of the unloaded arm: frequency gives stiffness, decay gives damping.",
        ),
        ("position_gain", "armature", "Hang a known weight on the arm: its sag gives the stiffness."),
        (
            "position_gain damping",
            "delay",
            "Record fast reversals, and how long after each command the joint first moves.",
        ),
        ("damping", "friction_loss", "Record slow and fast motions: dry friction does not grow with speed."),
        (
            "contact_time",
            "damping_ratio impedance_start impedance_end impedance_width",
            "Record drops from several heights.",
        ),
        ("gravity_strength", "mass com_distance inertia", "Take gravity from a free fall, and fix it."),
        (
            "sensor_delay",
            "delay",
            "Give one of the clocks a time stamp of its own, or record a knock that both sensors see.",
        ),
    )
)
"""Fields of one parameter, fields of another, a recording that separates them."""
_OTHER_REMEDY = "Measure one of them, or record motions in which they act separately."


def correlation_warnings(scenario: Scenario, covariance: np.ndarray, judged: Mapping[str, Estimate]) -> list[str]:
    """Warn of each group of parameters of which the recordings determine a combination only.

    Args:
        covariance: [P, P], unconstrained coordinates.
    """
    std = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(std, std)
    # A high correlation between two well identified parameters is harmless, so one of a pair must be uncertain.
    uncertain = np.array([judged[name].verdict in ("weak", "not identifiable") for name in scenario.space.names])
    linked = (np.abs(correlation) > CORRELATED) & (uncertain[:, None] | uncertain)
    return [_correlation_warning(scenario, correlation, group) for group in _groups(linked)]


def _groups(linked: np.ndarray) -> list[list[int]]:
    """Find the connected components of more than one index."""
    groups: list[list[int]] = []
    left = set(range(len(linked)))
    while left:
        group, new = set(), {min(left)}
        while new:
            group |= new
            new = {int(other) for index in new for other in np.flatnonzero(linked[index])} - group
        left -= group
        if len(group) > 1:
            groups.append(sorted(group))
    return groups


def _correlation_warning(scenario: Scenario, correlation: np.ndarray, group: list[int]) -> str:
    """Name the two or three parameters that matter most in a group, and what would separate them."""
    inner = correlation[np.ix_(group, group)]
    # The last eigenvector, of the largest eigenvalue, is the direction that the recordings determine least; its sign is
    # arbitrary, so the largest component becomes +.
    direction = np.linalg.eigh(inner)[1][:, -1]
    direction = direction * np.sign(direction[np.abs(direction).argmax()])
    leading = np.argsort(-np.abs(direction), kind="stable")[:_NAMED]
    named = sorted(each for each in leading if abs(direction[each]) > _COMPONENT_SHARE * np.abs(direction).max())
    named = named if len(named) > 1 else sorted(leading[:2])
    names = [scenario.space.names[group[each]] for each in named]
    signs = " ".join(f"{'+' if direction[each] > 0 else '-'}{name}" for each, name in zip(named, names, strict=True))
    strongest = float(np.abs(inner - np.eye(len(group)))[named].max())
    more = f", with {len(group) - len(named)} more" if len(group) > len(named) else ""
    return (
        f"{', '.join(names[:-1])} and {names[-1]} are correlated ({strongest:.2f}, along {signs}{more}): these "
        f"recordings determine a combination, not each. {_remedy(scenario, [group[each] for each in named])}"
    )


def _remedy(scenario: Scenario, group: list[int]) -> str:
    fields = [_fields(scenario, index) for index in group]
    for first, second, text in _REMEDIES:
        if any(a & first and b & second for i, a in enumerate(fields) for j, b in enumerate(fields) if i != j):
            return text
    return _OTHER_REMEDY


def _fields(scenario: Scenario, index: int) -> set[str]:
    """List what a parameter acts on: names of fields, `delay`, `sensor_delay`, `sensor_gain`, `sensor_bias`."""
    fields = {binding.field for binding in scenario.bindings if binding.parameter == index}
    fields |= {"delay"} if index == scenario.delay_parameter else set()
    fields |= {"sensor_delay"} if index in dict(scenario.sensor_delays).values() else set()
    return fields | {f"sensor_{scale.kind}" for scale in scenario.sensor_scales if scale.parameter == index}
