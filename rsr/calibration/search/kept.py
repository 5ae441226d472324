"""Searches that outlive a killed process: what one found is read back where the same search is asked for again."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path
from typing import cast

import numpy as np

from rsr.calibration.problem import Loss
from rsr.calibration.search.descent import Search, SearchResult, SearchStatus
from rsr.common import DAMAGED, Advance, read_arrays, write_arrays

FOLDER = ".searches"
"""Beside the result of a fit; removed when that is written."""


def kept(search: Search, folder: Path, settings: str) -> Search:
    """Make a search that keeps in a folder what it finds, and first looks there.

    Args:
        settings: of the search, in words.
    """

    def looked_up(loss: Loss, budget: int, seed: int, advance: Advance) -> SearchResult:
        path = folder / f"{_key(loss, f'{settings} {budget} {seed}')}.npz"
        found = _read(path)
        if found is None:
            found = search(loss, budget, seed, advance)
            words = np.array([found.status, found.sensitivity, found.remark])
            write_arrays(path, {"point": found.point, "trace": found.trace, "words": words})
        return found

    return looked_up


def _key(loss: Loss, question: str) -> str:
    """Hash a question and what the loss answers at two points: that depends on all data, weights and physics."""
    points = np.stack([loss.first, np.clip(loss.first + 0.1, *loss.bounds.T)])
    digest = hashlib.sha256(f"{version('rsr')} {question}".encode())
    digest.update(points.tobytes() + loss.bounds.tobytes() + loss.residuals(points).tobytes())
    return digest.hexdigest()[:32]


def _read(path: Path) -> SearchResult | None:
    try:
        stored = read_arrays(path)
        status, sensitivity, remark = stored["words"].tolist()
    except DAMAGED:  # no such search has ended, or the file of one is cut
        return None
    return SearchResult(stored["point"], cast(SearchStatus, status), stored["trace"], sensitivity, remark)
