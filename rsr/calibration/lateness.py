"""Clocks that nobody suspected: does a channel fit better if its recording is moved in time?

For each observed channel without a shift of its own, one Gauss-Newton step is taken from the estimate, in all
parameters and that channel's shift together: so what other parameters took over from a late clock is given back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import stdtrit

from rsr.calibration.contract import Prior
from rsr.calibration.identifiability import INFLATION, PRIOR_DOUBT
from rsr.calibration.loss import Loss
from rsr.calibration.refine import Slope
from rsr.calibration.windows import surroundings
from rsr.scenarios import Parameter, ParameterSpace, Scenario
from rsr.sessions import Episode
from rsr.simulators import MujocoSimulator

LEAST_ROWS = 0.2
"""A clock that is off by less than this share of a control step is not worth a warning."""
CONFIDENCE = 0.99
"""That a clock is not right before it is said to be wrong."""
_STEP_ROWS = 0.5
"""Half of the distance of two shifts compared."""
_WIDEST_ROWS = 2.0


def warnings(loss: Loss, episodes: Sequence[Episode], point: np.ndarray, slope: Slope) -> list[str]:
    """Say which channel's clock is off most clearly, by how much, and what to do; nothing if all may be right.

    Args:
        episodes: those that the windows were cut from.
        point: [P], the estimate.
    """
    scenario = loss.scenario
    shifted = {name for name, _ in scenario.shifts}
    suspects = [each.channel.name for each in scenario.observed if each.channel.name not in shifted]
    found = {}
    for name in suspects:
        rows, std, degrees = _shift(loss, episodes, point, slope, name)
        clear = abs(rows) / max(INFLATION * std * stdtrit(degrees, 0.5 + CONFIDENCE / 2), 1e-12)
        if clear > 1.0 and abs(rows) > LEAST_ROWS:
            found[name] = (clear, rows)
    if not found:
        return []
    # One late clock makes others seem off as well.
    name = max(found, key=lambda name: found[name][0])
    return [_said(name, found[name][1], scenario.control_dt_s)]


def _said(name: str, rows: float, control_dt_s: float) -> str:
    side = "late" if rows > 0 else "early"
    return (
        f"{name} seems to be recorded about {abs(rows) * control_dt_s * 1e3:.0f} ms {side} ({abs(rows):.1f} control "
        f"steps), and other parameters may have taken that over. Add a parameter with `shifts: {name}` to the "
        "scenario, or correct the recording's clock."
    )


def _shift(
    loss: Loss, episodes: Sequence[Episode], point: np.ndarray, slope: Slope, name: str
) -> tuple[float, float, int]:
    """How many rows late a channel is, the standard deviation of that, and its degrees of freedom."""
    column, misfits = _column(loss, episodes, point, name)
    sensitivities = np.concatenate([slope.sensitivities, column[..., None]], axis=-1)
    own = np.append(np.ones(len(point)), 0.0)  # precision of the prior; a clock has none
    flat = sensitivities.reshape(-1, len(own))
    inverse = np.linalg.pinv(flat.T @ flat + np.diag(own))
    step = -inverse @ (flat.T @ misfits.ravel() + own * np.append(point, 0.0))
    # Scatter of the episodes around the fit that includes the shift: what the shift explains is no scatter.
    gradients = np.einsum("wrp,wr->wp", sensitivities, misfits + sensitivities @ step)
    owners = np.unique(loss.windows.episode)
    sums = np.array([gradients[loss.windows.episode == owner].sum(axis=0) for owner in owners])
    scatter = sums.T @ sums * len(sums) / max(1, len(sums) - 1) + PRIOR_DOUBT**2 * np.diag(own)
    return float(step[-1]), float(np.sqrt((inverse @ scatter @ inverse)[-1, -1])), max(1, len(sums) - 1)


def _column(loss: Loss, episodes: Sequence[Episode], point: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Sensitivity [W, R] of the misfits to a channel's shift, in rows, and the misfits themselves [W, R]."""
    scenario = with_shift(loss.scenario, name)
    windows = replace(loss.windows, around=surroundings(scenario, loss.windows, episodes))
    prior = Prior(np.append(loss.prior.mean, 0.0), np.append(loss.prior.std, 1.0))
    with MujocoSimulator(scenario) as simulator:
        shifting = replace(loss, scenario=scenario, simulator=simulator, windows=windows, prior=prior, origin=None)
        rows = np.array([_STEP_ROWS, -_STEP_ROWS, 0.0])
        ahead, behind, here = shifting.misfits(np.column_stack([np.tile(point, (3, 1)), rows]))
    return (ahead - behind) / (2 * _STEP_ROWS), here


def with_shift(scenario: Scenario, name: str) -> Scenario:
    """The scenario with one more parameter: how late a channel is."""
    reach_s = _WIDEST_ROWS * scenario.control_dt_s
    late = Parameter(f"{name} late", 0.0, -reach_s, reach_s, "s", 1.0, "linear", scenario.control_dt_s)
    space = ParameterSpace((*scenario.space, late))
    return replace(scenario, space=space, shifts=(*scenario.shifts, (name, len(space) - 1)))
