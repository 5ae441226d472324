"""What is believed of the parameters before an iteration's data."""

from __future__ import annotations

import numpy as np

from rsr.calibration.contract import Calibration, Evidence, Prior
from rsr.calibration.identifiability import estimates, ignorance
from rsr.errors import CalibrationError
from rsr.scenarios import Scenario

FORGETTING = 1.5
"""The robot may have changed between sessions: yesterday's uncertainty counts this many times ..."""
FLOOR = 0.1
"""... and on top of it comes this share of the scenario's prior standard deviation."""


def start_prior(scenario: Scenario) -> Prior:
    """The scenario's own prior, around nominal: of iteration 1."""
    return Prior(scenario.space.to_coordinates(scenario.space.nominal), scenario.space.prior_std)


def next_prior(scenario: Scenario, previous: Calibration) -> Prior:
    """The prior of an iteration: the previous estimate, doubted, and never vaguer than the scenario's own."""
    if tuple(previous.estimates) != scenario.space.names:
        raise CalibrationError(
            got=f"parameters {', '.join(previous.estimates)}",
            expected=", ".join(scenario.space.names),
            where=f"previous calibration of {previous.scenario}",
            next_step="Start a new workspace: the scenario's parameters have changed since.",
        )
    scenario.space.check(previous.vector())
    widest = scenario.space.prior_std
    std = FORGETTING * np.sqrt(np.diag(previous.covariance)) + FLOOR * widest
    return Prior(scenario.space.to_coordinates(previous.vector()), np.minimum(widest, std))


def start_calibration(scenario: Scenario) -> Calibration:
    """Iteration 0: nominal values, intervals of the scenario's prior, no data."""
    space = scenario.space
    found = ignorance(space, space.prior_std)
    return Calibration(
        scenario=scenario.name,
        method="nominal",
        estimates=estimates(space, space.nominal, found),
        covariance=found.covariance,
        status="no improvement",
        evidence=Evidence(0.0, 0.0, scenario.observed_channel(scenario.gap_channel).channel.unit, {}, (), ()),
    )
