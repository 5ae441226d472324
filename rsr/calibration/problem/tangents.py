"""Derivatives of simulated trajectories: what a smooth loss is linearised with, whatever its weights and nuisances."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Tangents:
    """Trajectories of W windows at a point, and their derivatives by it.

    Args:
        point: [P].
        states: [W, T + 1, n].
        derivatives: [W, T + 1, n, P], in units of points.
    """

    point: np.ndarray
    states: np.ndarray
    derivatives: np.ndarray

    def shortened(self, steps: int) -> Tangents:
        """Cut them to windows that end after some steps."""
        return replace(self, states=self.states[:, : steps + 1], derivatives=self.derivatives[:, : steps + 1])

    def take(self, chosen: np.ndarray) -> Tangents:
        """Keep those of some of the windows, by index."""
        return replace(self, states=self.states[chosen], derivatives=self.derivatives[chosen])
