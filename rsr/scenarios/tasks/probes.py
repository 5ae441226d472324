"""Scripted motions of a task, as candidates for the next recording."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

Drive = Callable[[Mapping[str, np.ndarray], int], np.ndarray]
"""(channels [B, width], number of the control step) -> actions [B, m] in -1..1."""


@dataclass(frozen=True)
class Probes:
    """Motions that excite what a policy need not: `rsr plan` ranks them among its candidates.

    Args:
        kind: one word for them, such as "swing".
        draw: (generator, count) -> how so many copies are driven, and what each one does, for people.
    """

    kind: str
    draw: Callable[[np.random.Generator, int], tuple[Drive, list[str]]]
