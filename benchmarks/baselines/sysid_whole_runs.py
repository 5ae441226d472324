"""System identification as an expert does it with MuJoCo's own tools: Gauss-Newton on whole runs, open loop.

`mujoco.sysid.optimize` hands its work to `mujoco.minimize.least_squares` with differences, and its intervals are those
of the covariance s^2 (J'J)^-1; both are done here, without the model that the toolbox compiles at every point.
Residuals are all readings of all runs, from the known rest they begin in; there is no prior.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mujoco import minimize

ITERATIONS = 30
STEP = 1e-3
"""Of a difference, in the coordinates given."""


def fit_whole_runs(
    residual: Callable[[np.ndarray], np.ndarray], first: np.ndarray, bounds: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Minimise a residual ([P] -> [N]); returns the point [P] and its standard deviations [P].

    Args:
        bounds: lower and upper [P].
    """

    def several(points: np.ndarray) -> np.ndarray:
        return np.stack([residual(point) for point in points.T], axis=1)

    found, _ = minimize.least_squares(
        first, several, bounds=bounds, eps=STEP, max_iter=ITERATIONS, xtol=1e-4, gtol=1e-4, x_scale="jac",
        verbose=minimize.Verbosity.SILENT,
    )  # fmt: skip
    point = np.asarray(found, float).ravel()
    ahead, behind = (several(point[:, None] + side * STEP * np.eye(len(point))) for side in (1.0, -1.0))
    jacobian, left = (ahead - behind) / (2 * STEP), residual(point)
    variance = float(left @ left) / (len(left) - len(point))
    return point, np.sqrt(np.diag(variance * np.linalg.pinv(jacobian.T @ jacobian)))
