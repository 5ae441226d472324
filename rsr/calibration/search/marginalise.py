"""Elimination of nuisances from a loss: sensor biases during the search, initial-state errors after it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import mujoco
import numpy as np

from rsr.calibration.problem import (
    ROBUST_SCALES,
    BiasSlopes,
    InitialStateSlopes,
    Loss,
    ModelError,
    Windows,
    exact_linearisation,
    tangent_widths,
)
from rsr.calibration.search.refinement import Linearisation, linearise, refine
from rsr.calibration.uncertainty import Posterior, posterior
from rsr.calibration.uncertainty.shared_error import conflict, shared_error
from rsr.common import Advance, derive_seed, part_of
from rsr.scenarios import Scenario, bias_free, bias_std, biased_coordinates, start_spread

BIAS_STEP = 0.1
"""Half of the distance of two biases compared, in `bias_std`s."""


def with_biases(loss: Loss) -> Loss:
    """Eliminate sensor biases around the loss's first point; the same loss where the scenario has none."""
    if not bias_free(loss.scenario) or not len(loss.windows):
        return loss
    return replace(loss, biases=_bias_slopes(loss, loss.values(loss.first)))


def around_biases(loss: Loss, point: np.ndarray) -> Loss:
    """Subtract the biases estimated at a point [P] from the windows, and linearise again: searches go on from there."""
    biases = loss.biases_of(point) * bias_std(loss.scenario)
    corrected = replace(loss, windows=_without(loss.scenario, loss.windows, biases), origin=point)
    return with_biases(corrected)


def reweighted(loss: Loss, point: np.ndarray) -> Loss:
    """Weigh the residuals by the error that the model has at a point [P]."""
    # Derivatives by biases are of scaled differences, so they follow the scales.
    return with_biases(replace(loss, model_error=ModelError.of(loss, point)))


def _bias_slopes(loss: Loss, values: np.ndarray) -> BiasSlopes:
    """Differentiate the scaled differences by the sensor biases, at parameters [P]."""
    scenario, windows = loss.scenario, loss.windows
    std, columns, begun = bias_std(scenario), [], loss.starts(values)
    for index, place in enumerate(biased_coordinates(scenario)):
        shifted = []
        for bias in (BIAS_STEP * std[index], -BIAS_STEP * std[index]):
            # The window begins at reading - bias; the simulated reading is the simulated state + bias.
            starts = begun.copy()
            starts[:, place] -= bias
            states = loss.simulator.rollout(starts, windows.commands, values)[None].copy()
            states[..., place] += bias
            shifted.append(loss.scaled_differences(states, values[None])[0])
        columns.append((shifted[0] - shifted[1]) / (2 * BIAS_STEP))
    slopes = np.stack(columns)
    if loss.initial_states is not None:
        # Differences are whitened before biases are estimated from them, so their derivatives must be as well.
        slopes = loss.initial_states.whiten(slopes)
    # A larger bias is subtracted from what was recorded, so it moves differences the other way than it moves states.
    return BiasSlopes(-np.moveaxis(slopes, 0, -1), windows.episode, tangent_widths(scenario), ROBUST_SCALES)


def _without(scenario: Scenario, windows: Windows, biases: np.ndarray) -> Windows:
    """Subtract the biases [E, Z] of their episodes from windows: initial states, their surroundings, readings."""
    each, taken = biases[windows.episode], 0
    starts, around, real = windows.starts.copy(), windows.around.copy(), dict(windows.real)
    places = biased_coordinates(scenario)
    starts[:, places] -= each
    if len(around):
        around[..., places] -= each[:, None]
    # Z runs over the columns of all channels with a bias, in the scenario's order.
    for observed in bias_free(scenario):
        name, width = observed.channel.name, observed.channel.width
        real[name] = windows.real[name] - each[:, None, taken : taken + width]
        taken += width
    return replace(windows, starts=starts, around=around, real=real)


# Initial-state errors act alike in all windows, so they bias the estimate and no scatter of episodes shows it.

INITIAL_STATE_STEP = 0.5
"""Half of the distance of two initial states compared, in standard deviations: as wide as contact-induced roughness."""
_WORST = 1e3
"""Scaled differences per standard deviation; beyond, a simulation became unstable."""
MARGINALISATION_WINDOWS = 64
"""In the first of two rounds: the errors are eliminated to first order around an estimate, and again around what that
leads to."""
RECOVERED_SHARE = 0.6
"""Share of the estimate's bias that the rounds recover, measured on recordings of known simulators: around a wrong
estimate elimination to first order is incomplete."""


@dataclass(frozen=True)
class InitialStateMarginal:
    """A loss with initial-state errors eliminated, its linearisation, and the estimate's bias [P]."""

    loss: Loss
    slope: Linearisation
    estimate_bias: np.ndarray

    def posterior(self, point: np.ndarray, exact: bool, seed: int) -> Posterior:
        """Compute the posterior around a point [P]; `exact` by MJX's sensitivities, otherwise by a regression."""
        scatter, rng = np.linalg.inv(self.slope.precision), np.random.default_rng(derive_seed(seed, "freed"))
        here = exact_linearisation(self.loss, point) if exact else linearise(self.loss, point, scatter, rng)
        # A bias adds its square to the mean squared error, and as one vector it correlates the parameters.
        bias = np.outer(self.estimate_bias, self.estimate_bias)
        shared = shared_error(self.loss, point, here)
        driven = conflict(point, here) if shared.any() else np.zeros_like(shared)
        found = posterior(self.loss, point, here, bias + shared, driven)
        return replace(found, has_shared_error=np.diag(shared) > 0.0)


def marginalise_initial_states(loss: Loss, point: np.ndarray, seed: int, advance: Advance) -> InitialStateMarginal:
    """Eliminate initial-state errors around an estimate [P], and refit: the distance measures the estimate's bias."""
    centre = point
    # What all but the last round finds is only where the next one linearises, so fewer windows do.
    for turn, part_of_loss in enumerate((loss.thinned(MARGINALISATION_WINDOWS), loss)):
        marginal = with_initial_states(part_of_loss, centre)
        centre, slope = refine(
            marginal, centre, derive_seed(seed, "freed", turn), part_of(advance, turn / 2, turn / 2 + 0.5)
        )
    return InitialStateMarginal(marginal, slope, (centre - point) / RECOVERED_SHARE)


def with_initial_states(loss: Loss, point: np.ndarray) -> Loss:
    """Eliminate initial-state errors from a loss, to first order around a point [P]."""
    return with_biases(replace(loss, initial_states=_initial_state_slopes(loss, loss.values(point)), origin=point))


def _initial_state_slopes(loss: Loss, values: np.ndarray) -> InitialStateSlopes:
    """Differentiate the scaled differences by the initial states, at parameters [P]."""
    scenario, windows = loss.scenario, loss.windows
    begun, columns = loss.starts(values), []
    spread = start_spread(scenario, begun)
    # Coordinates that nobody observes have no known noise: they stay as they are.
    for index in np.flatnonzero(spread.any(axis=0)):
        shifted = []
        for errors in (INITIAL_STATE_STEP, -INITIAL_STATE_STEP):
            starts = _moved(scenario, begun, int(index), errors * spread[:, index])
            states = loss.simulator.rollout(starts, windows.commands, values)[None]
            shifted.append(loss.scaled_differences(states, values[None])[0])
        columns.append((shifted[0] - shifted[1]) / (2 * INITIAL_STATE_STEP))
    slopes = np.clip(np.nan_to_num(np.stack(columns, axis=-1)), -_WORST, _WORST)
    return InitialStateSlopes(slopes, tangent_widths(scenario))


def _moved(scenario: Scenario, starts: np.ndarray, index: int, by: np.ndarray) -> np.ndarray:
    """Move states [W, n] by [W] along one of nv tangent coordinates of the position, or of nv velocities after them."""
    model, moved = scenario.base_model, starts.copy()
    if index >= model.nv:
        moved[:, model.nq + index - model.nv] += by
        return moved
    # Quaternions cannot be added to: positions are integrated along a unit velocity.
    along = np.eye(model.nv)[index]
    for state, distance in zip(moved, by, strict=True):
        mujoco.mj_integratePos(model, state[: model.nq], along, float(distance))
    return moved
