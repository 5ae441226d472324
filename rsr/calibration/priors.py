"""Priors of the iterations, and draws from a calibration's posterior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rsr.calibration.interface import Calibration, Evidence, Knowledge, Prior
from rsr.calibration.uncertainty import estimates, prior_only
from rsr.common import CalibrationError
from rsr.scenarios import Scenario

FORGETTING = 1.5
"""Of a method that does not compare sessions the robot may have changed unnoticed: yesterday's uncertainty counts this
many times ..."""
FLOOR = 0.1
"""... and on top of it comes this share of the scenario's prior standard deviation."""


def start_prior(scenario: Scenario) -> Prior:
    """Return the scenario's own prior, around nominal: that of iteration 1."""
    return Prior(scenario.space.to_coordinates(scenario.space.nominal), scenario.space.prior_std)


def next_prior(scenario: Scenario, previous: Calibration) -> Prior:
    """Make the prior of an iteration: the scenario's own, beside what the previous calibration knows.

    Of a calibration that does not say what its data told, the inflated posterior instead.
    """
    if tuple(previous.estimates) != scenario.space.names:
        raise CalibrationError(
            got=f"parameters {', '.join(previous.estimates)}",
            expected=", ".join(scenario.space.names),
            where=f"previous calibration of {previous.scenario}",
            next_step="Start a new workspace: the scenario's parameters have changed since.",
        )
    scenario.space.check(previous.vector())
    mean = scenario.space.to_coordinates(previous.vector())
    known = Knowledge(
        mean,
        previous.covariance,
        np.zeros_like(previous.covariance) if previous.shared is None else previous.shared,
        np.array([previous.data_std.get(name, np.inf) for name in scenario.space.names]),
        previous.degrees,
        previous.structure,
    )
    prior = replace(start_prior(scenario), earlier=known)
    return prior if previous.data_std else forgetful(prior)


def forgetful(prior: Prior) -> Prior:
    """Make a prior of what earlier sessions say, inflated, for methods that do not compare sessions."""
    if prior.earlier is None:
        return prior
    std = FORGETTING * np.sqrt(np.diag(prior.earlier.covariance)) + FLOOR * prior.std
    return Prior(prior.earlier.mean, np.minimum(prior.std, std))


def start_calibration(scenario: Scenario) -> Calibration:
    """Make the calibration of iteration 0: nominal values, intervals of the scenario's prior, no data."""
    space = scenario.space
    found = prior_only(space, space.prior_std)
    return Calibration(
        scenario=scenario.name,
        method="nominal",
        estimates=estimates(space, space.nominal, found),
        covariance=found.covariance,
        status="no improvement",
        evidence=Evidence(0.0, 0.0, scenario.observed_channel(scenario.gap_channel).channel.unit, {}, (), ()),
    )


# Domain randomisation from the posterior: parameters drawn as plausible as the data leave them.

_ROUNDS = 100
"""Draws of whatever fell outside the bounds; what still does then is put on the bound."""


def draw_parameters(
    scenario: Scenario, calibration: Calibration, count: int, rng: np.random.Generator, factor: float = 1.0
) -> np.ndarray:
    """Draw parameters [count, P] from the posterior, within the bounds.

    Drawn from the calibration's samples where it has them, with replacement; else Gaussian in unconstrained
    coordinates.

    Args:
        factor: on the distances from the estimate; 0 draws the estimate each time.
    """
    space, draw = scenario.space, _drawer(scenario, calibration, rng, factor)
    values = space.to_values(draw(count))
    for _ in range(_ROUNDS):
        outside = ((values < space.lower) | (values > space.upper)).any(axis=1)
        if not outside.any():
            break
        values[outside] = space.to_values(draw(int(outside.sum())))
    return np.clip(values, space.lower, space.upper)


def _drawer(
    scenario: Scenario, calibration: Calibration, rng: np.random.Generator, factor: float
) -> Callable[[int], np.ndarray]:
    """Make a function that draws coordinates [count, P]."""
    samples, size = calibration.samples, len(scenario.space)
    mean = scenario.space.to_coordinates(calibration.vector())
    if samples is None:
        spread = factor * _root(calibration.covariance)
        return lambda count: mean + rng.standard_normal((count, size)) @ spread.T
    if samples.ndim != 2 or samples.shape[1] != size or not len(samples):
        raise CalibrationError(
            got=f"posterior samples of shape {samples.shape}",
            expected=f"[N, {size}], a column for each parameter of {scenario.name}",
            where=f"calibration by method {calibration.method}",
            next_step="Store them in unconstrained coordinates, in the order of the scenario's parameters.",
        )
    return lambda count: mean + factor * (samples[rng.integers(len(samples), size=count)] - mean)


def _root(covariance: np.ndarray) -> np.ndarray:
    """Compute A [P, P] with A A' = covariance."""
    # By eigenvectors: Cholesky fails on a singular covariance, and rounding may make small eigenvalues negative.
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))
