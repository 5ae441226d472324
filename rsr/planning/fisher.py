"""Fisher information of an experiment about the parameters, from sensitivities by central differences.

Residuals are weighed as a fit weighs them (`rsr.calibration.problem.loss`): in units of the noise and of the error that
any model has, and the rows of a window count as one, for they share its initial-state error. So the information can be
added to the precision of a calibration. With other weights it changes by a constant factor: differences between
sessions in the logarithm of its determinant do not.
"""

from __future__ import annotations

import numpy as np

from rsr.calibration import assumed_scales, information_by_window as information_of
from rsr.scenarios import Scenario, readings, residuals
from rsr.simulators import Simulator

STEP = 0.1
"""Half the distance of the two simulations compared, in standard deviations of the scenario's prior. Contact makes
trajectories rough, and finer steps measure the roughness: on cube tosses a fifth of this step shows three times as much
information on friction and contact. Where there is no contact the step makes no difference."""
WORST = 1e3
"""Charged for a difference that is not finite, in scales."""
_AT_ONCE = 4096
"""Windows simulated in one call."""


def information_by_window(
    scenario: Scenario,
    simulator: Simulator,
    starts: np.ndarray,
    commands: np.ndarray,
    params: np.ndarray,
    step: float = STEP,
) -> np.ndarray:
    """Information [W, P, P] of windows that start at [W, nq + nv] under commands [W, H + T, nu]."""
    at_once = max(1, _AT_ONCE // (2 * len(scenario.space)))
    blocks = [slice(first, first + at_once) for first in range(0, len(starts), at_once)]
    slopes = [_sensitivities(scenario, simulator, starts[each], commands[each], params, step) for each in blocks]
    return np.concatenate([information_of(each) for each in slopes])


def _sensitivities(
    scenario: Scenario,
    simulator: Simulator,
    starts: np.ndarray,
    commands: np.ndarray,
    params: np.ndarray,
    step: float,
) -> np.ndarray:
    """Differentiate the readings [W, R, P], in scales, by the coordinates; one-sided where a bound is near."""
    space, size = scenario.space, len(scenario.space)
    lower, upper = space.to_coordinates(space.lower), space.to_coordinates(space.upper)
    here, offsets = space.to_coordinates(params), np.diag(step * space.prior_std)
    points = np.clip(np.concatenate([here + offsets, here - offsets]), lower, upper)
    values = np.clip(space.to_values(points), space.lower, space.upper)
    states = simulator.rollout(
        np.tile(starts, (2 * size, 1)), np.tile(commands, (2 * size, 1, 1)), np.repeat(values, len(starts), axis=0)
    )
    ahead, behind = (_shown(scenario, *half) for half in zip(np.split(states, 2), np.split(values, 2), strict=True))
    apart = residuals(scenario, behind, ahead)
    scaled = [(apart[name] / scale).reshape(size, len(starts), -1) for name, scale in assumed_scales(scenario).items()]
    rows = states.shape[1] - 1
    changes = np.nan_to_num(np.concatenate(scaled, axis=-1), nan=0.0, posinf=WORST, neginf=-WORST)
    # The rows of a window share the error of its initial state, so they count as one, as in `Loss.misfits`.
    slopes = np.clip(changes, -WORST, WORST) / np.sqrt(rows) / np.diag(points[:size] - points[size:])[:, None, None]
    return np.moveaxis(slopes, 0, -1)


def _shown(scenario: Scenario, states: np.ndarray, values: np.ndarray) -> dict[str, np.ndarray]:
    """What sensors show [P * W, T, C] of states [P * W, T + 1, n], with parameters [P, P]."""
    each = [scenario.measure(part) for part in np.split(states, len(values))]
    shown = [readings(scenario, *pair) for pair in zip(each, values, strict=True)]
    return {name: np.concatenate([part[name][:, 1:] for part in shown]) for name in shown[0]}
