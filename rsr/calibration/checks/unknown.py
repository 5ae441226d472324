"""Parameters of which the data say nothing: a search leaves them anywhere, a result has them at the prior's mean."""

from __future__ import annotations

import numpy as np

from rsr.calibration.problem.loss import Loss
from rsr.calibration.search.refine import Linearisation
from rsr.calibration.uncertainty.identifiability import WEAK_SHRINKAGE, Posterior

_AS_GOOD = 1e-3
"""Share by which the loss may rise: less than a refinement leaves open."""
_A_PARAMETER = 0.5
"""Rise of the loss for each parameter that chance explains: one standard deviation."""


def at_prior_where_unknown(loss: Loss, point: np.ndarray, slope: Linearisation, posterior: Posterior) -> np.ndarray:
    """Take parameters that are not identifiable back to the prior's mean; correlated ones follow, to first order.

    Returns:
        The new point [P]; the old one where recordings are then explained worse, so that they did say something.
    """
    unknown = posterior.data_std > WEAK_SHRINKAGE * loss.scenario.space.prior_std
    if not unknown.any() or not point[unknown].any():
        return point
    back = np.where(unknown, -point, 0.0)
    precision, known = slope.precision, ~unknown
    if known.any():
        followed = precision[np.ix_(known, unknown)] @ back[unknown]
        back[known] = -np.linalg.solve(precision[np.ix_(known, known)], followed)
    moved = np.clip(point + back, *loss.bounds.T)
    before, after = loss(np.stack([point, moved]))
    allowed = max(_AS_GOOD * before, _A_PARAMETER * np.count_nonzero(unknown))
    return moved if after <= before + allowed else point
