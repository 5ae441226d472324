"""From a loss to an estimate: a search, and what follows it where the model is right, and where it is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rsr.calibration.interface import Status
from rsr.calibration.problem import Loss, Windows, exact_linearisation
from rsr.calibration.search import (
    SAID,
    InitialStateMarginal,
    Search,
    SearchResult,
    around_biases,
    checked_end,
    longest_right,
    marginalise_initial_states,
    promising,
    refine,
    reweighted,
    settled,
)
from rsr.calibration.search.refinement import Linearisation
from rsr.common import Advance, derive_seed, part_of

FIRST_SHARE, FIRST_WINDOWS = 2 / 3, 64
"""Of the search's budget before the model's error is estimated at what it found, and windows that tell it."""
_BEGUN = 0.41
"""Share of the time after which the first search ends."""


@dataclass(frozen=True)
class Longer:
    """Windows to try where the model is right.

    Args:
        lengths: in control steps, the longest first.
        cut: makes windows of a length.
    """

    lengths: Sequence[int]
    cut: Callable[[int], Windows]


@dataclass(frozen=True)
class Estimated:
    """An estimate [P].

    Args:
        loss: that it minimises.
        slope: around it.
        marginal: of `loss`, from which the posterior follows.
        search: the search before it.
        searched: the loss that was searched, on windows of the usual length.
    """

    loss: Loss
    point: np.ndarray
    slope: Linearisation
    marginal: InitialStateMarginal
    status: Status
    search: SearchResult
    searched: Loss


def estimate(loss: Loss, search: Search, budget: int, longer: Longer, seed: int, advance: Advance) -> Estimated:
    """Search on few windows; then fit longer ones where the model is right, and search on where it is not.

    Args:
        budget: of the search, in points on all windows.
    """
    loss, begun = reweighted(loss, loss.first), round(FIRST_SHARE * budget)
    few = loss.thinned(FIRST_WINDOWS)
    found = search(few, begun, derive_seed(seed, "search"), part_of(advance, 0.0, _BEGUN))
    loss = reweighted(around_biases(loss, found.point), found.point)
    right = _by_long_windows(loss, found, search, budget, longer, seed, part_of(advance, _BEGUN, 1.0))
    return right or _by_short_windows(loss, search, budget, seed, part_of(advance, _BEGUN, 1.0))


def _by_long_windows(
    loss: Loss, found: SearchResult, search: Search, budget: int, longer: Longer, seed: int, advance: Advance
) -> Estimated | None:
    """Fit the longest windows over which the model is right; None if there are none."""
    few = loss.thinned(FIRST_WINDOWS)
    if not longer.lengths or not promising(few, found.point, derive_seed(seed, "promising")):
        return None
    second = derive_seed(derive_seed(seed, "search"), "second")
    # The search ended at the minimum of a loss with other weights: there no second one is better, only elsewhere.
    found = replace(found, point=settled(few, found.point)[1])
    checked = checked_end(few, found, search, round(FIRST_SHARE * budget), second, part_of(advance, 0.0, 0.3))
    right = longest_right(loss, checked.point, longer.lengths, longer.cut, seed, part_of(advance, 0.3, 1.0))
    if right is None:
        return None
    slope = exact_linearisation(right.loss, right.point)
    marginal = InitialStateMarginal(right.loss, slope, np.zeros(len(right.point)))
    return Estimated(right.loss, right.point, slope, marginal, "converged", checked, loss)


def _by_short_windows(loss: Loss, search: Search, budget: int, seed: int, advance: Advance) -> Estimated:
    """Search on with the residuals weighed by the model's error, check the end, average contact-induced roughness."""
    begun, searching = round(FIRST_SHARE * budget), derive_seed(seed, "search")
    found = search(loss, max(1, budget - begun), searching, part_of(advance, 0.0, 0.24))
    found = checked_end(loss, found, search, budget, derive_seed(searching, "second"), part_of(advance, 0.24, 0.3))
    loss, seed = around_biases(loss, found.point) if loss.biases else loss, derive_seed(seed, "refine")
    point, slope, status = _refined(loss, found, seed, part_of(advance, 0.3, 0.55))
    # The estimate itself stays the one that predicts best from measured states; only its posterior is marginalised.
    marginal = marginalise_initial_states(loss, point, seed, part_of(advance, 0.55, 1.0))
    return Estimated(loss, point, slope, marginal, status, found, loss)


def _refined(loss: Loss, found: SearchResult, seed: int, advance: Advance) -> tuple[np.ndarray, Linearisation, Status]:
    """Average contact-induced roughness around a search's end; returns a point [P] that is no higher than this."""
    point, slope = refine(loss, found.point, seed, advance)
    begun, ended = loss(np.stack([found.point, point]))
    if ended > begun:
        return found.point, slope, found.status
    # A search that leaves more than that to these few steps had not converged.
    return point, slope, found.status if ended > (1.0 - SAID) * begun else "budget spent"
