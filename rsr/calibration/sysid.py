"""Method `sysid`: MuJoCo's own system identification toolbox, from several starts.

The toolbox supplies parameters and optimiser (`mujoco.sysid.ParameterDict`, `optimize`: Levenberg-Marquardt with box
constraints). Residuals and Jacobian are ours: the toolbox's `ModelSequences` compiles a model and builds a time
series per evaluation, which is several times slower, and knows neither starts at recorded states under a delay that
reaches back before the window nor a prior.
"""

from __future__ import annotations

import io

import numpy as np
from mujoco import sysid

from rsr.calibration.differences import jacobian
from rsr.calibration.loss import Loss
from rsr.calibration.search import Found
from rsr.progress import Advance

SCREENED = 24
"""Random points of the prior that compete for a start."""
STARTS = 3
STEP = 0.02
"""Difference step, in standard deviations of the prior."""
TOLERANCE = 1e-3
"""Converged when a step is shorter than this share of the point."""


def search_sysid(loss: Loss, budget: int, seed: int, advance: Advance) -> Found:
    """See `Search`. Half of the budget at most goes to the first start."""
    counter = _Counter(loss)
    best: np.ndarray | None = None
    converged = False
    for start in _starts(loss, seed):
        pass
    raise NotImplementedError


