"""Method `mjx`: least squares on exact sensitivities, from few short windows to all whole ones, then a polish.

Sensitivities come from MJX (`sensitivity`), trial points from C, which is ten times faster where no derivative is
asked for. `leading` says where the descent on all windows begins. Its end is rippled by contact at a scale that no
derivative sees: a short evolution strategy looks around, in coordinates whitened by the Gauss-Newton covariance.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rsr.calibration.descent import Descent, descend
from rsr.calibration.evolution import POPULATION, evolve
from rsr.calibration.leading import FEW, ITERATIONS, Course, led_in
from rsr.calibration.loss import Loss
from rsr.calibration.search import Found
from rsr.calibration.sensitivity import Sensitivity, Slopes, choose_slopes
from rsr.progress import Advance

WHOLE_ITERATIONS = 20
"""Jacobians at most on all windows, from the better of the points led to: it should converge before."""
TOLERANCE = 0.003
"""The descent is done when the loss falls by less than this share in one step."""
POLISH_TEMPER = 2.0
"""The polish begins wider than the Gauss-Newton covariance says: that one knows nothing of ripples."""
POLISH_GENERATIONS = 12


def search_mjx(
    loss: Loss, budget: int, seed: int, advance: Advance, sensitivity: Sensitivity = "mjx", polish: bool = True
) -> Found:
    """See `Search`."""
    picked, slopes = choose_slopes(loss.scenario, sensitivity)
    course = Course(loss, budget, advance)
    starts = led_in(loss.thinned(FEW), slopes, seed, course)
    best = descend(loss, slopes, starts, WHOLE_ITERATIONS, TOLERANCE, course.count)
    if polish:
        best = _polished(loss, slopes, best, seed, course)
    status = "converged" if best.converged else "budget spent"
    return Found(best.point, status, np.array(course.trace), picked)


def _polished(loss: Loss, slopes: Slopes, best: Descent, seed: int, course: Course) -> Descent:
    """Look around, and descend again from where it is clearly lower: that gets out of dents."""
    found = evolve(loss, best, POLISH_TEMPER, POLISH_GENERATIONS, seed, course.count, lambda: course.allows(POPULATION))
    if found.lowest > (1.0 - TOLERANCE) * best.loss:
        return replace(best, point=found.best, loss=found.lowest)
    return descend(loss, slopes, found.best[None], ITERATIONS, TOLERANCE, course.count)
