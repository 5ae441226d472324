"""A population's losses, and refits, as jobs that may be done elsewhere: each with a simulator of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from rsr.calibration.loss import Loss
from rsr.simulators import MujocoSimulator
from rsr.spreading import is_spread, spread

_PARTS = ("scenario", "windows", "prior", "zeros", "origin", "start_errors")


def losses_of(loss: Loss, points: np.ndarray) -> np.ndarray:
    """Losses [K] of points [K, P]: in one rollout here; where work is spread, a point a job."""
    if not can_travel(loss):
        return loss(points)
    jobs = [{"parts": parts_of(loss), "points": point[None]} for point in points]
    return np.concatenate(spread("rsr.calibration.shares:evaluate", jobs))


def evaluate(parts: dict[str, Any], points: np.ndarray) -> np.ndarray:
    """One job of a population."""
    with MujocoSimulator(parts["scenario"], threads=1) as simulator:
        return Loss(simulator=simulator, **parts)(points)


def can_travel(loss: Loss) -> bool:
    """Whether work is spread, and the loss is one that another process can build again."""
    return is_spread() and type(loss.simulator) is MujocoSimulator


def parts_of(loss: Loss) -> dict[str, Any]:
    """What a loss is built of again, but for its simulator: nobody's memory is shared."""
    return {name: getattr(loss, name) for name in _PARTS}
