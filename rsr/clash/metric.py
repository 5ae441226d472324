"""How predictions of strikes are judged: Accuracy(0.1), the share with a relative error below 10 % (eq. 4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.scenarios.strike import Shape

TOLERANCE = 0.1


@dataclass(frozen=True)
class Accuracy:
    """Shares of strikes predicted within 10 %.

    Args:
        scaled: with angular velocities times the radius of gyration. This is what is quoted.
        raw: with m/s and rad/s in one norm, as they stand; then almost only the turning counts.
        median_error: of the relative errors, scaled.
    """

    scaled: float
    raw: float
    median_error: float


def accuracy(shape: Shape, predicted: np.ndarray, measured: np.ndarray, tolerance: float = TOLERANCE) -> Accuracy:
    """Judge velocities [N, 3] (m/s, m/s, rad/s)."""
    errors = relative_errors(predicted, measured, shape.gyration_m)
    raw = relative_errors(predicted, measured, 1.0)
    return Accuracy(float((errors < tolerance).mean()), float((raw < tolerance).mean()), float(np.median(errors)))


def relative_errors(predicted: np.ndarray, measured: np.ndarray, radius_m: float) -> np.ndarray:
    """Length of the difference over the length of the measured velocity, [N]."""
    weights = np.array([1.0, 1.0, radius_m])
    return np.linalg.norm((predicted - measured) * weights, axis=1) / np.linalg.norm(measured * weights, axis=1)
