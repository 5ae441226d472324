"""Where the coordinates really were: the simplest local polynomial that each channel's noise allows."""

from __future__ import annotations

import mujoco
import numpy as np
from scipy.special import chdtri

_ROWS = 5
"""Rows a polynomial is fitted to, at least: a quarter of a second at 20 Hz."""
_SPAN_S = 0.03
"""Where rows are closer, so much time is tried as well: at 500 Hz, five rows leave velocities ten times noisier."""
_REJECTED = 0.01
"""A polynomial is too simple where noise alone would leave its residual less often than this (chi-square test)."""


def smooth(
    model: mujoco.MjModel, time_s: np.ndarray, qpos: np.ndarray, noise: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Estimate positions and velocities of a recording.

    Around each row a constant, a straight line and a parabola are fitted, and the simplest that the noise does not
    contradict is taken: what rests is exactly at rest, what moves steadily loses most of its noise. Where even
    the parabola fails (an impact), fewer rows are tried; in the end the measured position and the difference of its
    neighbours stand.

    Args:
        time_s: [N].
        qpos: [N, nq], measured.
        noise: [nv], standard deviation of the measurement of each joint coordinate.

    Returns:
        qpos [N, nq] and qvel [N, nv].
    """
    total = len(time_s)
    shift, qvel = np.zeros((total, model.nv)), _neighbour_difference(model, time_s, qpos)
    for rows in _widths(time_s):
        elapsed_s, moved = _surroundings(model, time_s, qpos, rows)
        for order in range(min(2, rows - 2), -1, -1):
            coefficients, misfit = _fit(elapsed_s, moved, order)
            allowed = misfit <= np.square(noise) * chdtri(rows - order - 1, _REJECTED)
            shift = np.where(allowed, coefficients[:, 0], shift)
            qvel = np.where(allowed, coefficients[:, 1] if order else 0.0, qvel)
    smoothed = qpos.copy()
    for row in range(total):
        mujoco.mj_integratePos(model, smoothed[row], shift[row], 1.0)
    return smoothed, qvel


def unrest(model: mujoco.MjModel, time_s: np.ndarray, qpos: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """How far [N] each row's surroundings are from a parabola: above 1, noise alone hardly explains it.

    An impact or a kink lies within the rows that `smooth` uses, so the velocity it estimates there is wrong.
    """
    rows = min(_ROWS, len(time_s))
    if rows < 4:  # a parabola passes through three rows whatever they are
        return np.zeros(len(time_s))
    _, misfit = _fit(*_surroundings(model, time_s, qpos, rows), order=2)
    return (misfit / (np.square(noise) * chdtri(rows - 3, _REJECTED))).max(axis=1)


def noise_left(noise: np.ndarray, step_s: float) -> np.ndarray:
    """How wrong `smooth` leaves positions and then velocities [2 nv], standard deviations.

    Velocities are wrong as the slope of a straight line through the rows is, positions as one reading: a line halves
    that, but where an impact is near the measured position stands.
    """
    rows = max(_ROWS, _wide(step_s))
    return np.concatenate([noise, noise / (step_s * np.sqrt(rows * (rows**2 - 1) / 12.0))])


def one_sided_rows(step_s: float) -> int:
    """How many rows at either end of a recording have rows to one side only: there, velocities are worse."""
    return max(_ROWS, _wide(step_s)) // 2


def _surroundings(
    model: mujoco.MjModel, time_s: np.ndarray, qpos: np.ndarray, rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Times [N, rows] of the rows nearest to each row, and how far [N, rows, nv] they are from it."""
    total = len(time_s)
    window = np.clip(np.arange(total) - rows // 2, 0, total - rows)[:, None] + np.arange(rows)
    return time_s[window] - time_s[:, None], _moved(model, qpos, window)


def _moved(model: mujoco.MjModel, qpos: np.ndarray, window: np.ndarray) -> np.ndarray:
    """How far [N, rows, nv] each row of a window is from the row that it surrounds."""
    if model.nq == model.nv:  # neither free bodies nor ball joints
        return qpos[window] - qpos[:, None]
    return np.array([[_tangent(model, qpos[i], qpos[j]) for j in row] for i, row in enumerate(window)])


def _widths(time_s: np.ndarray) -> list[int]:
    """Numbers of rows to fit, the one that is preferred last."""
    total = len(time_s)
    rows = min(_ROWS, total)
    step_s = float(np.median(np.diff(time_s))) if total > 1 else np.inf
    wide = min(_wide(step_s), total)
    return [rows, wide] if wide > rows else [rows]


def _wide(step_s: float) -> int:
    """An odd number of rows that span `_SPAN_S`."""
    return 2 * round(_SPAN_S / 2 / step_s) + 1


def _fit(elapsed_s: np.ndarray, moved: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients [N, order + 1, nv] and sums of squared residuals [N, nv] of polynomials over windows [N, rows]."""
    powers = elapsed_s[:, :, None] ** np.arange(order + 1)
    coefficients = np.linalg.pinv(powers) @ moved
    return coefficients, np.square(powers @ coefficients - moved).sum(axis=1)


def _neighbour_difference(model: mujoco.MjModel, time_s: np.ndarray, qpos: np.ndarray) -> np.ndarray:
    """Velocities [N, nv] by central differences; one-sided in the first and the last row."""
    last = len(time_s) - 1
    pairs = [(max(row - 1, 0), min(row + 1, last)) for row in range(last + 1)]
    return np.array([_tangent(model, qpos[i], qpos[j]) / max(time_s[j] - time_s[i], 1e-9) for i, j in pairs])


def _tangent(model: mujoco.MjModel, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The velocity [nv] that leads from one position to another in one second."""
    velocity = np.zeros(model.nv)
    mujoco.mj_differentiatePos(model, velocity, 1.0, start, end)
    return velocity
