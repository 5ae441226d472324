"""What a search method gives back: the one thing in which the methods differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rsr.calibration.loss import Loss
from rsr.progress import Advance


@dataclass(frozen=True)
class Found:
    """Where a search ended.

    Args:
        point: [P], in units of the prior.
        trace: [generations, 2], simulated physics steps so far and best loss.
        sensitivity: how derivatives were computed, if they were.
    """

    point: np.ndarray
    status: Literal["converged", "budget spent"]
    trace: np.ndarray
    sensitivity: str = ""


Search = Callable[[Loss, int, int, Advance], Found]
"""Minimise a loss: (loss, budget in evaluated points, seed, advance) -> Found. Equal arguments, equal result."""
