"""Parameters of which the data say nothing: a search leaves them anywhere, a result has them at the prior's mean."""

from __future__ import annotations

import numpy as np

from rsr.calibration.problem import Loss
from rsr.calibration.search.refinement import Linearisation
from rsr.calibration.uncertainty import WEAK_SHRINKAGE, Posterior

_AS_GOOD = 1e-3
"""Share by which the loss may rise: less than a refinement leaves open."""
_CHANCE = 0.5
"""Rise of the loss that chance explains: one standard deviation. Of all parameters together, for seventeen of which a
few episodes say nothing one by one may together say much."""


def at_prior_where_unknown(loss: Loss, point: np.ndarray, slope: Linearisation, posterior: Posterior) -> np.ndarray:
    """Take parameters that are not identifiable back to the prior's mean; correlated ones follow, to first order.

    Returns:
        The new point [P]: with as many of them taken back, the least known first, as leave the recordings explained as
        well as before.
    """
    left = posterior.data_std / loss.scenario.space.prior_std
    unknown = [index for index in np.argsort(-left, kind="stable") if left[index] > WEAK_SHRINKAGE and point[index]]
    moved = [_taken_back(loss, point, slope, np.array(unknown[:count], int)) for count in range(len(unknown) + 1)]
    losses = loss(np.stack(moved))
    allowed = losses[0] + max(_AS_GOOD * losses[0], _CHANCE)
    return moved[int(np.flatnonzero(losses <= allowed).max())]


def _taken_back(loss: Loss, point: np.ndarray, slope: Linearisation, unknown: np.ndarray) -> np.ndarray:
    if not len(unknown):
        return point
    known = np.setdiff1d(np.arange(len(point)), unknown)
    back = np.zeros(len(point))
    back[unknown] = -point[unknown]
    if len(known):
        precision = slope.precision
        followed = precision[np.ix_(known, unknown)] @ back[unknown]
        back[known] = -np.linalg.solve(precision[np.ix_(known, known)], followed)
    return np.clip(point + back, *loss.bounds.T)
