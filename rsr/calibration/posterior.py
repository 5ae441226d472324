"""What a calibration leaves open: parameters drawn as its data allow, to train in all of them."""

from __future__ import annotations

import numpy as np

from rsr.calibration.contract import Calibration
from rsr.scenarios import Scenario

_ROUNDS = 100
"""Draws of whatever fell outside the bounds; what still does then is put on the bound."""


def draw_parameters(
    scenario: Scenario, calibration: Calibration, count: int, rng: np.random.Generator, factor: float = 1.0
) -> np.ndarray:
    """Draw parameters [count, P] from the posterior: Gaussian in unconstrained coordinates, within the bounds.

    Args:
        factor: on the posterior's standard deviations; 0 draws the estimate each time.
    """
    space = scenario.space
    mean, spread = space.to_coordinates(calibration.vector()), factor * _root(calibration.covariance)
    values = space.to_values(mean + rng.standard_normal((count, len(space))) @ spread.T)
    for _ in range(_ROUNDS):
        outside = ((values < space.lower) | (values > space.upper)).any(axis=1)
        if not outside.any():
            break
        values[outside] = space.to_values(mean + rng.standard_normal((int(outside.sum()), len(space))) @ spread.T)
    return np.clip(values, space.lower, space.upper)


def _root(covariance: np.ndarray) -> np.ndarray:
    """A matrix [P, P] whose square is the covariance, which may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))
