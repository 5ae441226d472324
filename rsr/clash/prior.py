"""How residuals of a base model vary, before any strike is recorded: numbers of the process in `residual`.

Learnt once on the tuning stand-ins, starting from numbers set by hand, so that ten strikes predict others best;
`benchmarks/strike_prior.py` learns them on from where they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Prior:
    """Standard deviations in shares of the striking speed: of the impulse along the normal, the one across, and a rest.

    Args:
        constant: [3], of what all strikes have in common.
        linear: [3, 4], of slopes over the four features (place, facing, angle, speed).
        local: [3], of smooth bumps, with their lengths [3, 4] in the features.
        proportional: [2], of both impulses, in shares of what the base has.
        ground: of ground friction along the motion, at 0.3 m/s.
        noise: of a measurement. scatter: [2], of both impulses from strike to strike, in shares of what the base has.
    """

    constant: np.ndarray
    linear: np.ndarray
    local: np.ndarray
    lengths: np.ndarray
    proportional: np.ndarray
    ground: float
    noise: float
    scatter: np.ndarray


PRIOR = Prior(
    constant=np.array([0.30, 0.15, 0.05]),
    linear=np.array([[0.06, 0.06, 0.06, 0.007], [0.03, 0.02, 0.056, 0.06], [0.006, 0.004, 0.002, 0.007]]),
    local=np.array([0.15, 0.066, 0.006]),
    lengths=np.array([[1.5, 3.2, 2.7, 6.7], [0.49, 2.0, 1.15, 6.8], [0.63, 1.9, 2.3, 1.6]]),
    proportional=np.array([0.035, 0.58]),
    ground=0.14,
    noise=0.036,
    scatter=np.array([0.021, 0.057]),
)
