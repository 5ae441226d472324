"""Where the model is right: the estimate by windows as long as it holds, weighed by the noise of the sensors alone.

Short windows, residuals that count in several noises, and regressions guard against contact and a wrong model. A model
whose simulations leave their recordings by less than the noise needs none of that, and most of what recordings say
would be lost: of a slow motion half a second shows little, and a simulation that is right may go on for a whole run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rsr.calibration.problem import (
    ASSUMED_NOISES,
    Loss,
    ModelError,
    Windows,
    exact_linearisation,
    tangents_by_differences,
)
from rsr.calibration.search.marginalise import with_initial_states
from rsr.calibration.search.refinement import descend_exactly, moved_along_values
from rsr.common import Advance

SMOOTH, PAIRS = 0.2, 8
"""A loss is smooth where what its tangents leave unexplained is less than this share of what they explain; points that
tell it."""
FEW_WINDOWS = 64
"""Before whole runs."""
NEAR = 3.0
"""Tangents hold so many standard errors away."""
ROUNDS, FEW_STEPS = 5, 3
"""Derivatives are taken anew at most so often, and each time so many steps go by them."""


@dataclass(frozen=True)
class RightFit:
    """An estimate [P], and the loss that it minimises: exact derivatives, initial-state errors marginalised."""

    loss: Loss
    point: np.ndarray


def longest_right(
    loss: Loss, point: np.ndarray, lengths: Sequence[int], cut: Callable[[int], Windows], seed: int, advance: Advance
) -> RightFit | None:
    """Fit by the longest windows over which the model holds; None where it holds over none of these lengths.

    Args:
        lengths: in control steps, the longest first.
        cut: makes windows of a length.
    """
    # In units of the noise: whole runs amplify what the search left open.
    _, point = settled(with_initial_states(_in_noises(loss.thinned(FEW_WINDOWS)), point), point)
    for turn, steps in enumerate(lengths):
        advance(turn / len(lengths), f"windows of {steps * loss.scenario.control_dt_s:.2g} s")
        found = right_fit(replace(loss, windows=cut(steps), biases=None), point, seed)
        if found is not None:
            return found
    return None


def promising(loss: Loss, point: np.ndarray, seed: int) -> bool:
    """Check at little cost whether the model may be right over longer windows, from a search's end [P].

    It errs by a few noises at most, and its loss is smooth: contact is no smoother over a whole run.
    """
    loss = with_initial_states(_in_noises(loss), point)
    return _within(loss, point, ASSUMED_NOISES) and is_smooth(*settled(loss, point), seed)


def settled(loss: Loss, point: np.ndarray) -> tuple[Loss, np.ndarray]:
    """Descend to the minimum of a smooth loss near a search's end [P]; the loss gets the tangents taken there."""
    for _ in range(2):
        loss = replace(loss, tangents=tangents_by_differences(loss, point))
        point = descend_exactly(loss, point, FEW_STEPS)
    return loss, point


def right_fit(loss: Loss, point: np.ndarray, seed: int) -> RightFit | None:
    """Fit from a point [P] in units of the noise; None if the loss is rough, or the model's error exceeds the noise."""
    loss = with_initial_states(_in_noises(loss), point)
    for _ in range(ROUNDS):
        loss, begun = replace(loss, tangents=tangents_by_differences(loss, point)), point
        point = descend_exactly(loss, point, FEW_STEPS)
        if _near(loss, begun, point):
            break
    else:
        return None
    if not _within(loss, point, 1.0) or not is_smooth(loss, point, seed):
        return None
    rows_as_one = ModelError.of(loss, point).rows_as_one
    loss = replace(loss, model_error=replace(_none(loss), rows_as_one=rows_as_one))
    return RightFit(loss, descend_exactly(loss, point))


def _near(loss: Loss, first: np.ndarray, second: np.ndarray) -> bool:
    """Check that two points [P] are no further apart than the estimate's errors are."""
    moved = second - first
    return bool(moved @ exact_linearisation(loss, second).precision @ moved <= NEAR**2 * len(moved))


def is_smooth(loss: Loss, point: np.ndarray, seed: int) -> bool:
    """Check that a loss's tangents predict it around a minimum [P], as far away as the estimate is uncertain.

    Contact-induced roughness is as large there as what they predict; and so is curvature, far from where they were
    taken.
    """
    precision = exact_linearisation(loss, point).precision
    drawn = np.random.default_rng(seed).normal(size=(PAIRS, len(point)))
    # precision = L L': offsets L'^-1 z are distributed as the estimate's errors, and cost |z|^2 / 2.
    offsets = np.linalg.solve(np.linalg.cholesky(precision).T, drawn.T).T
    sides = [moved_along_values(loss, point, side) for side in (offsets, -offsets)]
    # Opposite pairs: what is left of the gradient where a descent ended drops out.
    risen = loss(np.concatenate(sides)).reshape(2, -1).mean(axis=0) - loss(point[None])
    expected = 0.5 * np.square(drawn).sum(axis=1)
    # Robust weights flatten the loss everywhere by about the same factor, which says nothing of roughness.
    factor = (risen @ expected) / (expected @ expected)
    return bool(np.sqrt(np.mean(np.square(risen - factor * expected))) < SMOOTH * factor * expected.mean())


def _in_noises(loss: Loss) -> Loss:
    return replace(loss, model_error=_none(loss), least_noises=0.0)


def _within(loss: Loss, point: np.ndarray, noises: float) -> bool:
    """Check that the model's error at a point [P] is at most so many standard deviations of the noise."""
    error = ModelError.of(loss, point).channels
    return all(error[each.channel.name].max() <= noises * each.noise for each in loss.scenario.observed)


def _none(loss: Loss) -> ModelError:
    return ModelError({each.channel.name: np.zeros(loss.windows.steps) for each in loss.scenario.observed}, 1.0)
