"""Method `adam`: plain gradient descent with Adam's step (library `optax`), as the RSR paper takes it.

The gradient is exact, but knows nothing of curvature: where parameters are correlated it needs many steps, each as
expensive as one of the method `mjx`. It is here to compare with.
"""

from __future__ import annotations

import numpy as np

from rsr.calibration.problem import Loss, Sensitivity, choose_jacobian
from rsr.calibration.search.descent import SearchResult
from rsr.calibration.search.mjx import stages
from rsr.common import Advance

RATE = 0.05
"""Length of the first steps, in standard deviations of the prior."""
STEPS = (30, 30, 60)
"""At most, on short windows, on longer ones and on whole ones."""
SMALL_FALL = 1e-3
"""Converged when the best of the last `PATIENCE` losses is lower than the best before by less than this share."""
PATIENCE = 12


def search_adam(loss: Loss, budget: int, seed: int, advance: Advance, sensitivity: Sensitivity = "mjx") -> SearchResult:
    """See `Search`. Begins at `Loss.first`, from short windows to whole ones; the seed has no effect."""
    import rsr.simulators.mjx  # noqa: F401, I001 - sets JAX's flags before optax starts it
    import optax

    picked, slopes = choose_jacobian(loss.scenario, sensitivity)
    optimizer = optax.adam(RATE)
    point, spent, trace, converged = loss.first, 0.0, [], False
    best, lowest = point, np.inf
    for current, steps in zip([*stages(loss), loss], STEPS[-1 - len(stages(loss)) :], strict=True):
        # Another window length is another loss: Adam's moments of the last one would mislead it.
        state, losses = optimizer.init(point), []
        for _ in range(steps):
            if losses and spent + 2 > budget:
                break
            values = current.residuals(point[None])[0]
            losses.append(0.5 * float(values @ values))
            # A value and a Jacobian; shorter windows cost their share.
            spent += 2 * current.windows.steps / loss.windows.steps
            if current is loss and losses[-1] < lowest:
                best, lowest = point, losses[-1]
                trace.append((spent * loss.steps_per_point, lowest))
            advance(min(1.0, spent / budget), f"loss {losses[-1]:.4g}")
            converged = _settled(losses)
            if converged:
                break
            # The gradient of half the squared norm is J'r.
            updates, state = optimizer.update(slopes(current, point).T @ values, state)
            point = np.clip(point + np.asarray(updates, float), *loss.bounds.T)
    return SearchResult(best, "converged" if converged else "budget spent", np.array(trace), picked)


def _settled(losses: list[float]) -> bool:
    return len(losses) > PATIENCE and min(losses[-PATIENCE:]) > (1.0 - SMALL_FALL) * min(losses[:-PATIENCE])
