"""The control delay's weights (`rsr.simulators.delay`) in JAX: differentiable in the delay."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def delay_weights(delay_s: jax.Array, control_dt_s: float, substeps: int, history: int) -> jax.Array:
    """Weights [substeps, history + 1], equal to `rsr.simulators.delay.delay_weights`.

    They are piecewise linear in the delay. Where two pieces meet (at no delay, above all, where estimates start) the
    derivative is the one towards longer delays.
    """
    edges = jnp.arange(substeps + 1) / substeps - delay_s / control_dt_s
    columns = []
    for age in range(history + 1):
        # The command sent `age` steps ago was in force over [-age, -age + 1) control steps from now.
        low, high = float(-age), float(1 - age)
        inside = jnp.where(edges > high, high, jnp.where(edges > low, edges, low))
        columns.append((inside[1:] - inside[:-1]) * substeps)
    weights = jnp.stack(columns, axis=1)
    return weights.at[:, history].add(1.0 - weights.sum(axis=1))
