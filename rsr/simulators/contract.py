"""The contract of every simulator: states and commands in, states out, batched."""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Simulator(Protocol):
    """Rolls recorded or imagined commands forward. Deterministic: equal inputs give equal outputs."""

    def rollout(self, states: np.ndarray, actions: np.ndarray, params: np.ndarray) -> np.ndarray:
        """Simulate B windows of T control steps.

        Args:
            states: [B, nq + nv], start of each window (qpos then qvel).
            actions: [B, H + T, nu], commands (for position-controlled arms: joint setpoints), each held for one
                control step. The first H (`scenario.history_steps`) were in force *before* the window begins,
                oldest first; a control delay reaches back to them.
            params: [P] for all windows, or [B, P]; physical units, order of `scenario.space`.

        Returns:
            [B, T + 1, nq + nv]; row 0 is `states`.
        """
        ...
