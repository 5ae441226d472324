"""Sessions of an unchanged robot add up: precision and scatter of their losses are sums, whatever was recorded when.

After each session its part is added to what the sessions before it said (`Knowledge`). No forgetting is needed: whether
the robot is still the same is tested before earlier sessions are counted (`rsr.calibration.checks.change`), and a
parameter that moved begins anew.
"""

from __future__ import annotations

import numpy as np

from rsr.calibration.calibrator import Knowledge

PRIOR_INFLATION = 2.0
"""A prior's mean is a guess: it counts as an observation that is wrong by this many of its standard deviations."""
STD_INFLATION = 1.5
"""Linear theory is too narrow: contact-induced roughness moves an estimate between local minima, and the loss is
curved. All standard deviations are inflated by this: measured on recordings of simulators with known parameters."""


def nothing_known(prior_std: np.ndarray) -> Knowledge:
    """The scenario's prior [P] alone."""
    precision = np.diag(1.0 / np.square(prior_std))
    return Knowledge(precision, PRIOR_INFLATION**2 * precision, np.zeros(len(prior_std)), 0)


def added(
    earlier: Knowledge, information: np.ndarray, covariance: np.ndarray, bias: np.ndarray, episodes: int
) -> Knowledge:
    """Add a session.

    Args:
        information: [P, P] of its data.
        covariance: [P, P] that the scatter of its episodes alone causes in the estimate from all sessions.
        bias: [P], of that estimate, by this session's share.
    """
    precision = earlier.precision + information
    # An estimate's error is H^-1 times the gradient's: the middle of the sandwich is H C H.
    scatter = earlier.scatter + precision @ covariance @ precision
    shared = np.linalg.solve(precision, earlier.precision @ earlier.bias)
    return Knowledge(precision, scatter, shared + bias, earlier.episodes + episodes)


def covariance_of(known: Knowledge) -> np.ndarray:
    """Covariance [P, P] of the estimate from all sessions."""
    inverse = np.linalg.inv(known.precision)
    return STD_INFLATION**2 * inverse @ known.scatter @ inverse + np.outer(known.bias, known.bias)


def without(known: Knowledge, changed: np.ndarray, prior_std: np.ndarray) -> Knowledge:
    """Forget some parameters [P], a mask: of these only the scenario's prior is left, of the others their marginal."""
    fresh = np.square(prior_std)
    inverse = np.linalg.inv(known.precision)
    precision = np.linalg.inv(_reset(inverse, changed, fresh))
    error = _reset(inverse @ known.scatter @ inverse, changed, PRIOR_INFLATION**2 * fresh)
    return Knowledge(precision, precision @ error @ precision, np.where(changed, 0.0, known.bias), known.episodes)


def _reset(covariance: np.ndarray, changed: np.ndarray, variance: np.ndarray) -> np.ndarray:
    kept = np.outer(~changed, ~changed)
    return np.where(kept, covariance, np.diag(np.where(changed, variance, 0.0)))
