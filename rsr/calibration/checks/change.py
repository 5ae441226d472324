"""Whether a robot is still the one of earlier sessions, tested before these are counted; and which parameters moved.

The new session is fitted alone. A parameter has changed if its own estimate lies too far from that of earlier sessions
for their uncertainties together, and if episodes that neither saw are predicted better by the new estimate: where the
model is wrong, estimates differ by more than intervals say, and predictions tell whether that matters.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.special import stdtrit

from rsr.calibration.calibrator import Knowledge
from rsr.calibration.problem.acceptance import Acceptance
from rsr.calibration.problem.loss import Loss
from rsr.calibration.search.refine import Linearisation
from rsr.calibration.uncertainty.identifiability import posterior
from rsr.calibration.uncertainty.knowledge import covariance_of

FALSE_ALARMS = 0.05
"""Of a session of an unchanged robot, over all parameters, where intervals hold."""
PREDICTS_BETTER = 0.95
"""Confidence that unseen episodes are predicted better by the session's own estimate."""


def changed_parameters(
    loss: Loss, earlier: Knowledge, point: np.ndarray, slope: Linearisation, judged: Acceptance
) -> dict[str, float]:
    """Name the parameters that changed since earlier sessions.

    Args:
        loss: of the new session alone; its prior's mean is the estimate of earlier sessions.
        point: [P], estimate of the new session alone.
        slope: around that estimate.
        judged: unseen episodes, predicted with the earlier estimate and with this one.

    Returns:
        Parameter -> distance of the two estimates in standard deviations of their difference.
    """
    if not _predicted_better(judged):
        return {}
    # Errors of initial states move the estimates of all sessions alike: they do not count in a difference.
    own = posterior(loss, point, slope, np.zeros(len(point)))
    std = np.sqrt(np.diag(own.covariance) + np.diag(covariance_of(earlier)))
    distance = point * loss.prior.std / std
    limit = float(stdtrit(own.degrees, 1.0 - FALSE_ALARMS / (2 * len(point))))
    names = loss.scenario.space.names
    return {name: float(each) for name, each in zip(names, distance, strict=True) if abs(each) > limit}


def change_warnings(changed: Mapping[str, float], before: Mapping[str, float], own: Mapping[str, float]) -> list[str]:
    """Say what changed, from which value to which."""
    return [
        f"{name} has changed since the sessions before: from {before[name]:.4g} to {own[name]:.4g}, "
        f"{abs(distance):.1f} standard deviations of the difference. What they said of it is no longer counted."
        for name, distance in changed.items()
    ]


def _predicted_better(judged: Acceptance) -> bool:
    gains = -judged.log_ratios.mean(axis=1)
    if len(gains) < 2:
        return bool(gains.sum() > 0)
    error = max(float(gains.std(ddof=1)), 1e-12) / np.sqrt(len(gains))
    return bool(gains.mean() > stdtrit(len(gains) - 1, PREDICTS_BETTER) * error)
