"""Sensitivities of the residuals to the parameters: exact ones by MJX, or differences in C. Same shape, same use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from rsr.calibration.differences import jacobian
from rsr.calibration.loss import Loss
from rsr.calibration.refine import Slope
from rsr.errors import ScenarioError
from rsr.scenarios import Scenario

if TYPE_CHECKING:
    from rsr.simulators.mjx import MjxSimulator

Sensitivity = Literal["auto", "mjx", "differences"]
"""`mjx`: exact; refuses a scenario that MJX cannot simulate. `differences`: any scenario. `auto`: mjx where it can."""
Slopes = Callable[[Loss, np.ndarray], np.ndarray]
"""Derivative [W * R + P, P] of the residuals at a point [P]."""

DIFFERENCE_STEP = 0.02
"""Standard deviations of the prior."""
_SHIFT = 1e-6
"""How far states are moved along their sensitivities to differentiate the smooth map from states to residuals."""


def choose_slopes(scenario: Scenario, sensitivity: Sensitivity) -> tuple[str, Slopes]:
    """Pick how sensitivities are computed; returns what was picked, and why, in words, and the function."""
    if sensitivity == "differences":
        return "differences", _by_differences
    try:
        mjx_simulator(scenario)
    except ScenarioError as error:
        if sensitivity == "mjx":
            raise
        return f"differences: MJX lacks {error.got}", _by_differences
    return "mjx", _by_mjx


def exact_slope(loss: Loss, point: np.ndarray) -> Slope:
    """Residuals as MJX's sensitivities continue them around a point [P].

    Differences, fine or coarse, take ripples for sensitivity: in directions that the data leave open they see too much.
    """
    misfits = loss.misfits(point[None])[0]
    return Slope(point, misfits, _by_mjx(loss, point)[: misfits.size].reshape(*misfits.shape, len(point)))


@lru_cache(maxsize=4)
def mjx_simulator(scenario: Scenario) -> MjxSimulator:
    """The differentiable simulator of a scenario; kept, because compiling is what costs."""
    from rsr.simulators.mjx import MjxSimulator  # starts JAX: seconds that other methods need not pay

    return MjxSimulator(scenario)


def _by_differences(loss: Loss, point: np.ndarray) -> np.ndarray:
    return jacobian(loss, point, DIFFERENCE_STEP)


def _by_mjx(loss: Loss, point: np.ndarray) -> np.ndarray:
    """Exact sensitivities of the states, and the residuals' own derivative along them.

    Parameters whose derivative is not finite somewhere are left as they are by this step: their column is zero.
    """
    windows, size = loss.windows, len(point)
    simulator = mjx_simulator(loss.scenario)
    states, derivatives = simulator.sensitivities(loss.starts(loss.values(point)), windows.commands, loss.values(point))
    along = np.moveaxis(derivatives, -1, 0) * loss.prior.std[:, None, None, None]  # [P, W, T + 1, n], units of points
    usable = np.all(np.isfinite(along.reshape(size, -1)), axis=1)
    shifts = _SHIFT * np.where(usable[:, None, None, None], along, 0.0)
    points = point + _SHIFT * np.concatenate([np.eye(size), -np.eye(size)])
    shifted = replace(loss, simulator=_Given(np.concatenate([states + shifts, states - shifts])))
    values = shifted.residuals(points)
    slopes = (values[:size] - values[size:]).T / (2.0 * _SHIFT)
    slopes[:-size, np.flatnonzero(~usable)] = 0.0
    for _, index in loss.scenario.shifts:
        slopes[:, index] = _of_clock(loss, point, index)
    return slopes


def _of_clock(loss: Loss, point: np.ndarray, index: int) -> np.ndarray:
    """Sensitivity [W * R + P] to a clock's shift, by differences: the states that simulations begin in depend on it."""
    offset = DIFFERENCE_STEP * np.eye(len(point))[index]
    ahead, behind = np.clip([point + offset, point - offset], *loss.bounds.T)
    values = loss.residuals(np.stack([ahead, behind]))
    return (values[0] - values[1]) / (ahead - behind)[index]


@dataclass(frozen=True)
class _Given:
    """A `Simulator` that has its answer: trajectories [K, W, T + 1, n]."""

    trajectories: np.ndarray

    def rollout(self, states: np.ndarray, actions: np.ndarray, params: np.ndarray) -> np.ndarray:
        return self.trajectories.reshape(len(states), *self.trajectories.shape[2:])
