"""A control delay as weights: which share of each physics step is ruled by which command."""

from __future__ import annotations

import numpy as np


def delay_weights(delay_s: float, control_dt_s: float, substeps: int, history: int) -> np.ndarray:
    """Weights [substeps, history + 1]; column i belongs to the command sent i control steps ago.

    Each physics step gets the time average of the delayed, held command over that step, so that the weights (and
    with them every simulated trajectory) change continuously with the delay.
    """
    edges = np.linspace(0.0, 1.0, substeps + 1) - delay_s / control_dt_s
    weights = np.zeros((substeps, history + 1))
    for age in range(history + 1):
        # The command sent `age` steps ago was in force over [-age, -age + 1) control steps from now.
        low, high = (0.0 - age, 1.0 - age)
        overlap = np.minimum(edges[1:], high) - np.maximum(edges[:-1], low)
        weights[:, age] = np.maximum(overlap, 0.0) * substeps
    weights[:, history] += 1.0 - weights.sum(axis=1)
    return weights


def delayed(commands: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Turn commands [B, H + T, nu] into controls [B, T * substeps, nu] at physics rate.

    Args:
        weights: [B or 1, substeps, H + 1], from `delay_weights`.
    """
    batch, total, width = commands.shape
    substeps, ages = weights.shape[1:]
    steps = total - ages + 1
    # newest command first: [B, T, H + 1, nu]
    stacked = np.stack([commands[:, ages - 1 - age : ages - 1 - age + steps] for age in range(ages)], axis=2)
    controls = np.einsum("bsa,btan->btsn", np.broadcast_to(weights, (batch, substeps, ages)), stacked)
    return controls.reshape(batch, steps * substeps, width)
