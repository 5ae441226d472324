"""Method `adam`: plain gradient descent with Adam's step (library `optax`), as the RSR paper takes it.

The gradient is exact, but knows nothing of curvature: where parameters move together it needs many steps, each as
dear as one of the method `mjx`. It is here to compare with.
"""

from __future__ import annotations

import numpy as np

from rsr.calibration.leading import stages
from rsr.calibration.loss import Loss
from rsr.calibration.search import Found
from rsr.calibration.sensitivity import Sensitivity, choose_slopes
from rsr.progress import Advance

RATE = 0.05
"""Length of the first steps, in standard deviations of the prior."""
STEPS = (30, 30, 60)
"""At most, on short windows, on longer ones and on whole ones."""
SMALL_FALL = 1e-3
"""Converged when the best of the last `PATIENCE` losses is lower than the best before by less than this share."""
PATIENCE = 12


def search_adam(loss: Loss, budget: int, seed: int, advance: Advance, sensitivity: Sensitivity = "mjx") -> Found:
    """See `Search`. Starts where the loss says, from short windows to whole ones; the seed plays no part."""
    import rsr.simulators.mjx  # noqa: F401, I001 - sets JAX's flags before optax starts it
    import optax

    picked, slopes = choose_slopes(loss.scenario, sensitivity)
    optimizer = optax.adam(RATE)
    point, spent, trace, converged = loss.first, 0.0, [], False
    best, lowest = point, np.inf
    for current, steps in zip([*stages(loss), loss], STEPS[-1 - len(stages(loss)) :], strict=True):
        state, course = optimizer.init(point), []
        for _ in range(steps):
            if course and spent + 2 > budget:
                break
            values = current.residuals(point[None])[0]
            course.append(0.5 * float(values @ values))
            spent += 2 * current.windows.steps / loss.windows.steps
            if current is loss and course[-1] < lowest:
                best, lowest = point, course[-1]
                trace.append((spent * loss.steps_per_point, lowest))
            advance(min(1.0, spent / budget), f"loss {course[-1]:.4g}")
            converged = _settled(course)
            if converged:
                break
            updates, state = optimizer.update(slopes(current, point).T @ values, state)
            point = np.clip(point + np.asarray(updates, float), *loss.bounds.T)
    return Found(best, "converged" if converged else "budget spent", np.array(trace), picked)


def _settled(course: list[float]) -> bool:
    return len(course) > PATIENCE and min(course[-PATIENCE:]) > (1.0 - SMALL_FALL) * min(course[:-PATIENCE])
