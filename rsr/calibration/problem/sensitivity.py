"""Jacobians of the residuals: exact through MJX, or central differences in C. Same shape, same use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from rsr.calibration.problem.loss import Loss
from rsr.calibration.problem.tangents import Tangents
from rsr.calibration.uncertainty import information
from rsr.common import ScenarioError
from rsr.scenarios import Scenario

if TYPE_CHECKING:
    from rsr.simulators.mjx import MjxSimulator


def jacobian(loss: Loss, point: np.ndarray, step: np.ndarray | float) -> np.ndarray:
    """Derivative [W * R + P, P] of the residuals at a point [P]; one-sided where a bound is in the way.

    Args:
        step: [P] or one number, half the distance of the two points compared. Contact makes the residuals rough:
            a step finer than the wanted resolution measures the roughness.
    """
    size = len(point)
    offsets = np.diag(np.broadcast_to(step, size))
    ahead, behind = (np.clip(point + sign * offsets, *loss.bounds.T) for sign in (1.0, -1.0))
    values = loss.residuals(np.concatenate([ahead, behind]))
    return ((values[:size] - values[size:]) / np.diag(ahead - behind)[:, None]).T


Sensitivity = Literal["auto", "mjx", "differences"]
"""`mjx`: exact; refuses a scenario that MJX cannot simulate. `differences`: any scenario. `auto`: mjx where it can."""
JacobianFunction = Callable[[Loss, np.ndarray], np.ndarray]
"""(loss, point [P]) -> derivative [W * R + P, P] of the residuals."""

DIFFERENCE_STEP = 0.02
"""Standard deviations of the prior."""
TANGENT_STEP = 1e-3
"""Standard deviations of the prior: where a loss is smooth, differences are as exact as they are fine."""
_SHIFT = 1e-6
"""Difference step along the sensitivities of the states, in standard deviations of the prior."""
EXPLODED, _USUAL = 50.0, 0.75
"""A window's derivatives have exploded where most parameters' are so many times as large as this quantile of all
windows': contact amplified them step by step, and they hold over no distance that matters."""


def choose_jacobian(scenario: Scenario, sensitivity: Sensitivity) -> tuple[str, JacobianFunction]:
    """Select how Jacobians are computed; returns the choice with its reason, in words, and the function."""
    if sensitivity == "differences":
        return "differences", _difference_jacobian
    try:
        mjx_simulator(scenario)
    except ScenarioError as error:
        if sensitivity == "mjx":
            raise
        return f"differences: MJX lacks {error.got}", _difference_jacobian
    return "mjx", _mjx_jacobian


@dataclass(frozen=True)
class Linearisation:
    """Residuals as a linear function of the point, around a centre.

    Args:
        centre: [P].
        misfits: [W, R] at the centre, roughness averaged out.
        sensitivities: [W, R, P].
    """

    centre: np.ndarray
    misfits: np.ndarray
    sensitivities: np.ndarray

    @property
    def precision(self) -> np.ndarray:
        """[P, P], Gauss-Newton: of the data and of the prior, whose own is one."""
        return information(self.sensitivities) + np.eye(len(self.centre))

    def step(self, damping: float = 0.0) -> np.ndarray:
        """Compute the step [P] from the centre to the minimum of the linearised loss; with damping it is shorter."""
        # Gradient J'r + x: the prior's residual is the point itself, in units of the prior.
        gradient = np.einsum("wrp,wr->p", self.sensitivities, self.misfits) + self.centre
        return -np.linalg.solve(self.precision + damping * np.diag(np.diag(self.precision)), gradient)


def exact_linearisation(loss: Loss, point: np.ndarray) -> Linearisation:
    """Linearise the residuals around a point [P] with MJX's sensitivities; those of `Loss.tangents` where it has them.

    Differences, fine or coarse, take contact-induced roughness for sensitivity: they see information in directions
    that the data do not determine.
    """
    misfits = loss.misfits(point[None])[0]
    slopes = _mjx_jacobian(loss, point) if loss.tangents is None else tangent_jacobian(loss, point)
    return Linearisation(point, misfits, slopes[: misfits.size].reshape(*misfits.shape, len(point)))


@lru_cache(maxsize=4)
def mjx_simulator(scenario: Scenario) -> MjxSimulator:
    """Make the differentiable simulator of a scenario, once: compiling it takes half a minute."""
    from rsr.simulators.mjx import MjxSimulator

    return MjxSimulator(scenario)


def _difference_jacobian(loss: Loss, point: np.ndarray) -> np.ndarray:
    return jacobian(loss, point, DIFFERENCE_STEP)


def _mjx_jacobian(loss: Loss, point: np.ndarray) -> np.ndarray:
    values = loss.values(point)
    simulator = mjx_simulator(loss.scenario)
    states, derivatives = simulator.sensitivities(loss.starts(values), loss.windows.commands, values)
    found = Tangents(point, states, derivatives * loss.prior.std)  # in units of points
    slopes = tangent_jacobian(replace(loss, tangents=found), point)
    of_data = slopes[: -len(point)]
    if len(of_data):
        of_data *= _bounded(of_data.reshape(len(loss.windows), -1, len(point)))[:, None]
    return slopes


def _bounded(slopes: np.ndarray) -> np.ndarray:
    """Say [W * R] of derivatives [W, R, P] with 0.0 which are of windows where they have exploded, else 1.0.

    One such window would outweigh all others, in a step and in the information.
    """
    sizes = np.sqrt(np.square(slopes).sum(axis=1))
    usual = np.quantile(sizes, _USUAL, axis=0, method="lower")
    # Where only a few windows depend on a parameter, their derivatives by it alone are large; explosion is of all.
    seen = usual > 0.0
    exploded = np.median(sizes[:, seen] / usual[seen], axis=1) > EXPLODED if seen.any() else np.zeros(len(sizes), bool)
    return np.repeat(np.where(exploded, 0.0, 1.0), slopes.shape[1])


def tangents_by_differences(loss: Loss, point: np.ndarray) -> Tangents:
    """Differentiate a smooth loss's trajectories at a point [P]; one-sided, as roughness is not to be averaged."""
    steps = np.where(point + TANGENT_STEP <= loss.bounds[:, 1], TANGENT_STEP, -TANGENT_STEP)
    states = loss.simulated(point + np.concatenate([np.zeros((1, len(point))), np.diag(steps)]))
    return Tangents(point, states[0], np.moveaxis((states[1:] - states[0]).T / steps, (0, 1, 2, 3), (2, 1, 0, 3)))


def tangent_jacobian(loss: Loss, at: np.ndarray) -> np.ndarray:
    """Compute the Jacobian by the chain rule: a loss's tangents times the derivative of residuals by states.

    Parameters whose derivative is not finite somewhere get a zero column: a step leaves them where they are.

    Args:
        at: [P], near the tangents' own point. Forces are linear in most physical values, so it is the derivative by
            these that stays the same.
    """
    found = loss.tangents
    if found is None:
        raise ValueError("a loss without tangents has no Jacobian by them")
    point, size = found.point, len(found.point)
    along = np.moveaxis(found.derivatives, -1, 0)  # [P, W, T + 1, n]
    usable = np.all(np.isfinite(along.reshape(size, -1)), axis=1)
    # d residual / d state is smooth (rotation vectors, pseudo-Huber): a tiny difference along each column is exact to
    # rounding, and needs no derivative code for each kind of channel.
    shifts = _SHIFT * np.where(usable[:, None, None, None], along, 0.0)
    points = point + _SHIFT * np.concatenate([np.eye(size), -np.eye(size)])
    trajectories = np.concatenate([found.states + shifts, found.states - shifts])
    values = replace(loss, simulator=_FixedTrajectories(trajectories)).residuals(points)
    slopes = (values[:size] - values[size:]).T / (2.0 * _SHIFT)
    slopes[:-size, np.flatnonzero(~usable)] = 0.0
    # Sensors' parameters change the initial states and the readings, which MJX's derivatives know nothing of.
    for index in loss.scenario.sensor_parameters:
        slopes[:, index] = _sensor_column(loss, point, index)
    slopes[:-size] *= value_slopes(loss, at) / value_slopes(loss, point)
    return slopes


def value_slopes(loss: Loss, point: np.ndarray) -> np.ndarray:
    """Derivative [P] of the physical values by the point."""
    space, here = loss.scenario.space, loss.prior.mean + loss.prior.std * point
    ahead, behind = space.to_values(here + _SHIFT), space.to_values(here - _SHIFT)
    return (ahead - behind) / (2.0 * _SHIFT) * loss.prior.std


def _sensor_column(loss: Loss, point: np.ndarray, index: int) -> np.ndarray:
    """Compute the column [W * R + P] of a sensor's delay, gain or bias, by differences."""
    offset = DIFFERENCE_STEP * np.eye(len(point))[index]
    ahead, behind = np.clip([point + offset, point - offset], *loss.bounds.T)
    values = loss.residuals(np.stack([ahead, behind]))
    return (values[0] - values[1]) / (ahead - behind)[index]


@dataclass(frozen=True)
class _FixedTrajectories:
    """`Simulator` that returns given trajectories [K, W, T + 1, n], to differentiate what follows simulation."""

    trajectories: np.ndarray

    def rollout(self, states: np.ndarray, actions: np.ndarray, params: np.ndarray) -> np.ndarray:
        return self.trajectories.reshape(len(states), *self.trajectories.shape[2:])
