"""Fitting although the zeros of sensors differ from episode to episode: losses that do not mind them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rsr.calibration.loss import ROBUST_SCALES, Loss, scaled_differences, tangent_widths
from rsr.calibration.nuisance import ZeroSlopes
from rsr.calibration.windows import Windows
from rsr.scenarios import Scenario
from rsr.scenarios.zeros import zero_coordinates, zero_std, zeroed

ROUNDS = 2
"""Searches, the first around the zeros as recorded, the others around those that the search before found."""
STEP = 0.1
"""Half of the distance of two zeros compared, in `zero_std`s."""


def with_zeros(loss: Loss) -> Loss:
    """The loss with its zeros eliminated around its first point; the same loss where zeros do not differ."""
    if not zeroed(loss.scenario) or not len(loss.windows):
        return loss
    return replace(loss, zeros=_slopes(loss, loss.values(loss.first)))


def around_zeros(loss: Loss, point: np.ndarray) -> Loss:
    """The loss on windows freed of the zeros that explain them best at a point [P]; searches go on from there."""
    zeros = loss.zeros_of(point) * zero_std(loss.scenario)
    freed = replace(loss, windows=_without(loss.scenario, loss.windows, zeros), origin=point)
    return with_zeros(freed)


def _slopes(loss: Loss, values: np.ndarray) -> ZeroSlopes:
    """Differentiate the scaled differences with respect to the sensors' zeros, at parameters [P]."""
    scenario, windows = loss.scenario, loss.windows
    std, columns, begun = zero_std(scenario), [], loss.starts(values)
    for index, place in enumerate(zero_coordinates(scenario)):
        shifted = []
        for zero in (STEP * std[index], -STEP * std[index]):
            starts = begun.copy()
            starts[:, place] -= zero
            states = loss.simulator.rollout(starts, windows.commands, values)[None].copy()
            states[..., place] += zero  # the world is elsewhere than the sensor says
            shifted.append(scaled_differences(scenario, windows, states, values[None])[0])
        columns.append((shifted[0] - shifted[1]) / (2 * STEP))
    answers = np.stack(columns)
    if loss.start_errors is not None:
        answers = loss.start_errors.removed(answers)
    # A larger zero is subtracted from what was recorded, so it moves differences the other way than it moves states.
    return ZeroSlopes(-np.moveaxis(answers, 0, -1), windows.episode, tangent_widths(scenario), ROBUST_SCALES)


def _without(scenario: Scenario, windows: Windows, zeros: np.ndarray) -> Windows:
    """Windows freed of their episodes' zeros [E, Z]."""
    each, taken = zeros[windows.episode], 0
    starts, around, real = windows.starts.copy(), windows.around.copy(), dict(windows.real)
    places = zero_coordinates(scenario)
    starts[:, places] -= each
    if len(around):
        around[..., places] -= each[:, None]
    for observed in zeroed(scenario):
        name, width = observed.channel.name, observed.channel.width
        real[name] = windows.real[name] - each[:, None, taken : taken + width]
        taken += width
    return replace(windows, starts=starts, around=around, real=real)
