"""Information matrices: how sharply residuals determine the parameters, and what they leave of a prior.

Residuals are scaled to unit variance, so with their Jacobian J the Fisher information is F = J'J (the Gauss-Newton
approximation of the Hessian). Information adds to the precision of a prior: the posterior covariance is
(S^-1 + F)^-1. Search, checks, intervals and planning all take their matrices from here.
"""

from __future__ import annotations

import numpy as np


def information(jacobian: np.ndarray) -> np.ndarray:
    """Compute F = J'J, [P, P], of a Jacobian [..., P]: all axes but the last count rows."""
    rows = jacobian.reshape(-1, jacobian.shape[-1])
    return rows.T @ rows


def information_by_window(jacobian: np.ndarray) -> np.ndarray:
    """Compute F of each window on its own, [W, P, P], of a Jacobian [W, R, P]."""
    return np.einsum("wrp,wrq->wpq", jacobian, jacobian)


def regressed_information(points: np.ndarray, values: np.ndarray, rows_as_one: int) -> np.ndarray:
    """Estimate F [P, P] from values [N, R] at scattered points [N, P], without the scatter's own contribution.

    Whatever does not follow the points linearly counts as noise of variance s^2, per column. A regressed slope b then
    has E[b b'] = slope slope' + s^2 (X'X)^-1: the second term would pass for information, and is subtracted.

    Args:
        points: N > P of them, else s^2 has no degree of freedom.
        rows_as_one: columns of one window, which the loss counts as one observation.
    """
    count, size = points.shape
    if count <= size:
        raise ValueError(f"{count} points for {size} parameters leave no degree of freedom for the noise")
    slopes = np.linalg.pinv(points) @ values
    variance = np.sum((values - points @ slopes) ** 2, axis=0) / (count - size)
    weights = 1.0 / (1.0 + rows_as_one * variance)
    found = (slopes * weights) @ slopes.T - np.sum(weights * variance) * np.linalg.inv(points.T @ points)
    # The difference of two positive matrices may have negative eigenvalues: directions without information.
    sizes, axes = np.linalg.eigh(found)
    return (axes * np.maximum(sizes, 0.0)) @ axes.T


def posterior_covariance(covariance: np.ndarray, added: np.ndarray) -> np.ndarray:
    """Update a covariance S [P, P] by information F [P, P]: (S^-1 + F)^-1."""
    # (I + S F)^-1 S is the same without the inverse of S, which is singular where a parameter is fixed.
    after = np.linalg.solve(np.eye(len(covariance)) + covariance @ added, covariance)
    return 0.5 * (after + after.T)


def expected_nats(added: np.ndarray, covariance: np.ndarray, chosen: np.ndarray | None = None) -> float:
    """Compute the expected information gain of an experiment, in nats: 0.5 log det(S) / det((S^-1 + F)^-1).

    Args:
        added: [P, P], information F of the experiment.
        covariance: [P, P], S before it, in the same coordinates.
        chosen: indices of the parameters that matter, others marginalised; all by default.
    """
    after = posterior_covariance(covariance, added)
    chosen = np.arange(len(covariance)) if chosen is None else np.asarray(chosen, int)
    # Marginalising a Gaussian is picking rows and columns of its covariance (not of its precision).
    before, left = (np.linalg.slogdet(each[np.ix_(chosen, chosen)])[1] for each in (covariance, after))
    return float(0.5 * (before - left))
