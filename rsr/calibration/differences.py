"""Sensitivities of the residuals by central differences, all perturbed simulations in one rollout."""

from __future__ import annotations

import numpy as np

from rsr.calibration.loss import Loss


def jacobian(loss: Loss, point: np.ndarray, step: np.ndarray | float) -> np.ndarray:
    """Derivative [W * R + P, P] of the residuals at a point [P]; one-sided where a bound is in the way.

    Args:
        step: [P] or one number, half the distance of the two points compared. Contact makes the residuals ripple:
            a step finer than what one wants to know measures the ripples.
    """
    size = len(point)
    offsets = np.diag(np.broadcast_to(step, size))
    ahead, behind = (np.clip(point + sign * offsets, *loss.bounds.T) for sign in (1.0, -1.0))
    values = loss.residuals(np.concatenate([ahead, behind]))
    return ((values[:size] - values[size:]) / np.diag(ahead - behind)[:, None]).T
