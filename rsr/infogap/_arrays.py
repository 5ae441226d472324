"""Validation of arrays and settings, shared by the functions of this room."""

from __future__ import annotations

import numpy as np

from rsr.common import CalibrationError, ConfigError


def matrix(array: np.ndarray, where: str, *, columns: int | None = None, at_least: int = 1) -> np.ndarray:
    """Return a finite float64 matrix [n, d], or say what is wrong with it."""
    values = np.asarray(array, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] == 0 or (columns is not None and values.shape[1] != columns):
        raise CalibrationError(
            got=f"an array of shape {list(values.shape)}",
            expected=f"[samples, {columns or 'columns'}]",
            where=where,
            next_step="Build every dataset with the same `transitions(...)` call, one row per transition.",
        )
    if len(values) < at_least:
        raise CalibrationError(
            got=f"{len(values)} samples",
            expected=f"at least {at_least}",
            where=where,
            next_step="Record more or longer episodes; or raise `infogap.transitions`, if that asks for fewer.",
        )
    bad_rows = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if bad_rows.size:
        raise CalibrationError(
            got=f"{bad_rows.size} rows with NaN or infinity, the first at row {bad_rows[0]}",
            expected="finite numbers",
            where=where,
            next_step="Check the recording with `rsr check`; if simulated, look for parameters that make it unstable.",
        )
    return values


def same_shape(left: np.ndarray, right: np.ndarray, where: str) -> None:
    """Paired datasets share their states and actions row by row, so they have equally many rows."""
    if left.shape != right.shape:
        raise CalibrationError(
            got=f"shapes {list(left.shape)} and {list(right.shape)}",
            expected="equal shapes: row i of both starts from the same state and action",
            where=where,
            next_step="Propagate every recorded (state, action), and only those, in the simulator.",
        )


def within(value: float, lower: float, upper: float, where: str) -> float:
    """Return a setting that lies in [lower, upper), or say what is wrong with it."""
    if not lower <= value < upper:
        raise ConfigError(
            got=f"{value}",
            expected=f"a number in [{lower:g}, {upper:g})",
            where=where,
            next_step="Correct the setting.",
        )
    return float(value)


def noise_vector(noise: np.ndarray | float, columns: int, where: str) -> np.ndarray:
    """Return noise as [columns], finite and not negative; one number stands for all columns."""
    values = np.asarray(noise, dtype=np.float64)
    if values.shape not in ((), (columns,)) or not (np.isfinite(values) & (values >= 0)).all():
        raise ConfigError(
            got=f"noise of shape {list(values.shape)}: {np.array2string(values, threshold=8)}",
            expected=f"one number, or {columns} of them, finite and not negative",
            where=where,
            next_step="Give the standard deviation of the sensor noise per feature column (`transition_noise`).",
        )
    return np.broadcast_to(values, (columns,)).copy()


# Pairwise squared distances without cancellation: equal points are at distance zero, to the last bit.


def squared_distances(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Squared Euclidean distances [n, m] between rows of [n, d] and [m, d].

    Column by column on purpose. The usual matrix product |x|^2 + |y|^2 - 2 x.y leaves 1e-8 between equal points, and
    its rounding depends on the linear-algebra library and its threads; here KL is exactly 0 at no gap, anywhere.
    """
    total = np.zeros((len(left), len(right)))
    for column in range(left.shape[1]):
        difference = np.subtract.outer(left[:, column], right[:, column])
        total += np.square(difference, out=difference)
    return total
