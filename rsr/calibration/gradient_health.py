"""The health of MJX's derivatives where a fit ended: against differences in C, and whether both step alike."""

from __future__ import annotations

import numpy as np

from rsr.calibration.contract import Checks
from rsr.calibration.loss import Loss
from rsr.calibration.sensitivity import mjx_simulator

WINDOWS = 4
STEPS = 2
"""Control steps: over longer ones differences step over the kinks of contact."""
STATES = 4
"""Random states for each pair of geometries."""


def check_mjx(loss: Loss, point: np.ndarray, seed: int) -> Checks:
    """Check gradients on a few windows at a point [P], and parity in random states."""
    from rsr.simulators.mjx import check_gradients, check_parity  # starts JAX

    simulator = mjx_simulator(loss.scenario)
    few = loss.windows.shortened(STEPS)
    chosen = np.linspace(0, len(few) - 1, min(WINDOWS, len(few))).round().astype(int)
    values = loss.values(point)
    gradients = check_gradients(simulator, loss.starts(values)[chosen], few.commands[chosen], values, _TOLERANCE)
    parity = check_parity(simulator, np.random.default_rng(seed), STATES)
    return Checks(gradients=str(gradients), parity=str(parity))


_TOLERANCE = 1e-3
"""Relative; 1e-4 with the pyramidal cone, but differences through the elliptic one are not better than this."""
