"""Windows begin in states that are only measured, and all begin wrong in the same way. What follows for an estimate?

A cube that begins half a millimetre inside the table is kicked, in every episode alike: the estimate is pulled towards
parameters that kick less, no scatter between episodes shows it, and more windows make it seem more certain. So, once
it is known, the errors of the starts are eliminated (`StartSlopes`): what the data still tell then is what is known,
and how far the estimate moves is how far it was pulled. The estimate itself stays the one that predicts best from
measured states, which is what it will be used for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import mujoco
import numpy as np

from rsr.calibration.identifiability import Posterior, posterior
from rsr.calibration.loss import MODEL_ERROR_NOISES, Loss, scaled_differences, tangent_widths
from rsr.calibration.nuisance import StartSlopes
from rsr.calibration.refine import Slope, linearise, refine
from rsr.calibration.sensitivity import exact_slope
from rsr.calibration.zeros import with_zeros
from rsr.progress import Advance, part_of
from rsr.randomness import derive_seed
from rsr.scenarios import Scenario

STEP = 0.5
"""Half of the distance of two starts compared, in standard deviations: as wide as ripples of contact are."""
_WORST = 1e3
"""Scaled differences per standard deviation; beyond, a simulation became unstable."""
ROUNDS = 2
"""How often the errors are eliminated, each time around the estimate so far."""
UNDONE = 0.6
"""Share of a pull that these rounds take back, measured on recordings of known simulators: around a wrong estimate
elimination to first order is not whole."""


@dataclass(frozen=True)
class Freed:
    """A loss with errors of its windows' starts eliminated, its slope, and how far they pulled the estimate [P]."""

    loss: Loss
    slope: Slope
    pull: np.ndarray

    def posterior(self, point: np.ndarray, exact: bool, seed: int) -> Posterior:
        """What is known around a point [P]; `exact` by MJX's sensitivities, otherwise by a regression."""
        if exact:
            return posterior(self.loss, point, exact_slope(self.loss, point), self.pull)
        scatter, rng = np.linalg.inv(self.slope.precision), np.random.default_rng(derive_seed(seed, "freed"))
        return posterior(self.loss, point, linearise(self.loss, point, scatter, rng), self.pull)


def free_of_starts(loss: Loss, point: np.ndarray, seed: int, advance: Advance) -> Freed:
    """Eliminate errors of the starts around an estimate [P], and see where it goes."""
    centre = point
    for turn in range(ROUNDS):
        part = part_of(advance, turn / ROUNDS, (turn + 1) / ROUNDS)
        freed = with_start_errors(loss, centre)
        centre, slope = refine(freed, centre, derive_seed(seed, "freed", turn), part)
    return Freed(freed, slope, (centre - point) / UNDONE)


def with_start_errors(loss: Loss, point: np.ndarray) -> Loss:
    """The loss with errors of its windows' starts eliminated, to first order around a point [P]."""
    return with_zeros(replace(loss, start_errors=_slopes(loss, loss.values(point)), origin=point))


def _slopes(loss: Loss, values: np.ndarray) -> StartSlopes:
    """Differentiate the scaled differences with respect to the starts, at parameters [P]."""
    scenario, windows = loss.scenario, loss.windows
    begun, columns = loss.starts(values), []
    for index in np.flatnonzero(scenario.start_std):
        shifted = []
        for errors in (STEP, -STEP):
            starts = _moved(scenario, begun, int(index), errors * scenario.start_std[index])
            states = loss.simulator.rollout(starts, windows.commands, values)[None]
            shifted.append(scaled_differences(scenario, windows, states, values[None])[0])
        columns.append((shifted[0] - shifted[1]) / (2 * STEP))
    slopes = np.clip(np.nan_to_num(np.stack(columns, axis=-1)), -_WORST, _WORST)
    return StartSlopes(slopes, tangent_widths(scenario), float(1.0 / np.hypot(1.0, MODEL_ERROR_NOISES)))


def _moved(scenario: Scenario, starts: np.ndarray, index: int, by: float) -> np.ndarray:
    """States [W, nq + nv] moved along one coordinate of positions, then velocities."""
    model, moved = scenario.base_model, starts.copy()
    if index >= model.nv:
        moved[:, model.nq + index - model.nv] += by
        return moved
    along = by * np.eye(model.nv)[index]
    for state in moved:
        mujoco.mj_integratePos(model, state[: model.nq], along, 1.0)
    return moved
