"""The end of a search, checked: a plain evolution strategy begins anew, and whichever ends lower is taken.

A descent can end in a wrong local minimum and call itself converged. CMA-ES on few windows costs little and does not
care about slopes; only where it ends about as low as the first search is its end worth a descent on more windows. Both
ends are compared on all.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rsr.calibration.problem import Loss
from rsr.calibration.search.descent import Search, SearchResult
from rsr.calibration.search.evolution import search_cmaes
from rsr.common import Advance, ignore

WINDOWS, MORE_WINDOWS = 16, 64
"""Of the second search, and of the descent from its end."""
SHARE = 0.5
"""Of a search's budget: so many points on so few windows, which are cheap."""
NEAR = 1.1
"""A second end is searched on if its loss, on all windows, is at most so many times that of the first."""
SAID = 0.01
"""Ends that differ by less than this share are as good as each other."""


def checked_end(
    loss: Loss, found: SearchResult, search: Search, budget: int, seed: int, advance: Advance
) -> SearchResult:
    """Search again from the prior's mean; the better end, with a remark where that is not the first one's.

    Args:
        budget: of the second search, in points on all windows.
    """
    if loss.origin is not None:  # shorter windows before whole ones may have led away from where it began
        found = replace(found, point=_lower(loss, found.point, loss.origin))
    few = replace(loss.thinned(WINDOWS), origin=None)
    apart = search_cmaes(few, max(1, round(SHARE * budget)), seed, advance).point
    lowest, second = loss(np.stack([found.point, apart]))
    if second > NEAR * lowest:
        return found
    ended = search(replace(loss.thinned(MORE_WINDOWS), origin=apart), max(1, budget // 3), seed, ignore)
    point = _lower(loss, ended.point, apart)
    again = loss(point[None])[0]
    if again >= lowest:
        return found
    remark = (
        f"a second search (cmaes on {WINDOWS} windows) led to a loss of {again:.4g} where the first had ended at "
        f"{lowest:.4g}; its end was taken. The loss has several minima: more episodes would tell them apart."
    )
    return replace(ended, point=point, trace=found.trace, remark=remark if again < (1.0 - SAID) * lowest else "")


def _lower(loss: Loss, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Pick the point [P] with the lower loss."""
    pair = np.stack([first, second])
    return pair[loss(pair).argmin()]
