"""Glitches, such as jumps of motion capture: recorded strikes that the others contradict.

One such strike among ten turns a model that predicts most strikes into one that predicts hardly any, and two hide each
other from any model that is fitted to one of them. So the search begins with the strikes that a law with a bounded loss
misses least, takes in the others one by one while what is fitted so far expects them (a forward search; Atkinson and
Riani, 2000), and in the end judges each by all others that were kept. Strikes that no law of impact allows speak
against themselves, however many there are: the search begins without them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

GLITCH_STDS, EXPECTED_STDS = 5.0, 2.0
"""How far off a strike has to be to be left out; and how near one that is wrong by itself, to be taken in."""
_FOLDS_MOST = 10
Judged = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From rows to fit to, and rows that are left out: how far each of the latter is off, in standard deviations."""


def contradicted(doubts: np.ndarray, judged: Judged, impossible: np.ndarray | None = None) -> tuple[int, ...]:
    """Find among N rows those that the others contradict, always fewer than half of those that are possible.

    Args:
        doubts: [N], how far each is from what a robust fit says; in any unit.
        impossible: [N], rows that are wrong by themselves, unless the others expect them.
    """
    count = len(doubts)
    impossible = np.zeros(count, bool) if impossible is None else impossible
    most = int(impossible.sum()) + max(0, (count - int(impossible.sum()) - 2) // 2)
    order = np.lexsort((doubts, impossible))
    kept, outside = np.sort(order[: count - most]), order[count - most :]
    while len(outside):
        found = judged(kept, outside) * np.where(impossible[outside], GLITCH_STDS / EXPECTED_STDS, 1.0)
        nearest = int(found.argmin())
        if found[nearest] >= GLITCH_STDS:
            break
        kept = np.sort(np.append(kept, outside[nearest]))
        outside = np.delete(outside, nearest)
    rejected = outside.tolist()
    while len(rejected) < most:
        found = _by_fold(kept, judged)
        worst = int(found.argmax())
        if found[worst] < GLITCH_STDS:
            break
        rejected.append(int(kept[worst]))
        kept = np.delete(kept, worst)
    return tuple(sorted(rejected))


def _by_fold(rows: np.ndarray, judged: Judged) -> np.ndarray:
    """Judge rows [N], each by what was fitted without its fold."""
    folds, found = min(len(rows), _FOLDS_MOST), np.zeros(len(rows))
    for fold in range(folds):
        found[fold::folds] = judged(np.delete(rows, np.s_[fold::folds]), rows[fold::folds])
    return found
