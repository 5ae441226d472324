"""Fisher information: how sharply an experiment tells the parameters, from sensitivities by central differences.

Residuals are weighed as a fit weighs them (`rsr.calibration.loss`): in units of the noise and of the error that any
model has, and the rows of a window count as one, for they share the error of its start. So the information can be added
to the precision of a calibration. With other weights it changes by a constant factor: differences between sessions
in the logarithm of its determinant do not.
"""

from __future__ import annotations

import numpy as np

from rsr.calibration.loss import channel_scales
from rsr.calibration.windows import cut
from rsr.errors import SessionError
from rsr.scenarios import Scenario, residuals
from rsr.sessions import Session
from rsr.simulators import MujocoSimulator, Simulator

STEP = 0.1
"""Half the distance of the two simulations compared, in standard deviations of the scenario's prior. Contact makes
trajectories ripple, and finer steps measure the ripples: on cube tosses a fifth of this step shows three times as much
information on friction and contact. Where there is no contact the step makes no difference."""
WORST = 1e3
"""What a difference that is not finite counts, in scales."""
_AT_ONCE = 4096
"""Windows simulated in one call."""


def fisher_information(
    scenario: Scenario, session: Session, params: np.ndarray, *, simulator: Simulator | None = None, step: float = STEP
) -> np.ndarray:
    """Information [P, P] of a recorded session about the parameters, in unconstrained coordinates.

    Only its starts and commands are used: it says what the session can tell, not what it told.

    Args:
        params: [P] in physical units, where sensitivities are taken.
        simulator: C MuJoCo by default.

    Example:
        >>> log_determinant(fisher_information(scenario, session, calibration.vector()))  # doctest: +SKIP
        41.3
    """
    windows = cut(scenario, session.episodes, scenario.window_steps, stride=scenario.window_steps)
    if not len(windows):
        raise SessionError(
            got=f"episodes shorter than {scenario.window_steps + 1} rows",
            expected="at least one window of the scenario's window_s",
            where=f"Fisher information of session '{session.card.session}'",
            next_step="Record longer episodes.",
        )
    if simulator is not None:
        return information_by_window(scenario, simulator, windows.starts, windows.commands, params, step).sum(axis=0)
    with MujocoSimulator(scenario) as own:
        return information_by_window(scenario, own, windows.starts, windows.commands, params, step).sum(axis=0)


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
    return np.concatenate([np.einsum("pwr,qwr->wpq", each, each) for each in slopes])


def _sensitivities(
    scenario: Scenario,
    simulator: Simulator,
    starts: np.ndarray,
    commands: np.ndarray,
    params: np.ndarray,
    step: float,
) -> np.ndarray:
    """Derivatives [P, W, R] of what is measured, in scales, by the coordinates; one-sided where a bound is near."""
    space, size = scenario.space, len(scenario.space)
    lower, upper = space.to_coordinates(space.lower), space.to_coordinates(space.upper)
    here, offsets = space.to_coordinates(params), np.diag(step * space.prior_std)
    points = np.clip(np.concatenate([here + offsets, here - offsets]), lower, upper)
    values = np.clip(space.to_values(points), space.lower, space.upper)
    states = simulator.rollout(
        np.tile(starts, (2 * size, 1)), np.tile(commands, (2 * size, 1, 1)), np.repeat(values, len(starts), axis=0)
    )[:, 1:]
    ahead, behind = (scenario.measure(half) for half in np.split(states, 2))
    apart = residuals(scenario, behind, ahead)
    scaled = [(apart[name] / scale).reshape(size, len(starts), -1) for name, scale in channel_scales(scenario).items()]
    rows = states.shape[1]
    changes = np.nan_to_num(np.concatenate(scaled, axis=-1), nan=0.0, posinf=WORST, neginf=-WORST)
    return np.clip(changes, -WORST, WORST) / np.sqrt(rows) / np.diag(points[:size] - points[size:])[:, None, None]


def log_determinant(information: np.ndarray) -> float:
    """log det of information [P, P]; minus infinity where some combination of parameters is not told at all.

    Half of it is what grows in nats when the data do; differences between sessions compare them.
    """
    sign, value = np.linalg.slogdet(information)
    return float(value) if sign > 0 else -np.inf


def expected_nats(information: np.ndarray, covariance: np.ndarray, chosen: np.ndarray | None = None) -> float:
    """Nats by which an experiment is expected to narrow what is known.

    0.5 log det(I + S^1/2 F S^1/2) for all parameters; for some of them, half the log ratio of the determinants of their
    covariance before and after.

    Args:
        information: [P, P], of the experiment.
        covariance: [P, P], known before it, in the same coordinates.
        chosen: indices of the parameters that matter; all by default.
    """
    after = updated(covariance, information)
    chosen = np.arange(len(covariance)) if chosen is None else np.asarray(chosen, int)
    before, left = (np.linalg.slogdet(each[np.ix_(chosen, chosen)])[1] for each in (covariance, after))
    return float(0.5 * (before - left))


def updated(covariance: np.ndarray, information: np.ndarray) -> np.ndarray:
    """Covariance [P, P] after an experiment: (S^-1 + F)^-1, without inverting S."""
    size = len(covariance)
    after = np.linalg.solve(np.eye(size) + covariance @ information, covariance)
    return 0.5 * (after + after.T)
