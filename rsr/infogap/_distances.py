"""Pairwise squared distances without cancellation: equal points are at distance zero, to the last bit."""

from __future__ import annotations

import numpy as np


def squared_distances(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Squared Euclidean distances [n, m] between rows of [n, d] and [m, d].

    Column by column on purpose. The usual matrix product |x|^2 + |y|^2 - 2 x.y leaves 1e-8 between equal points, and
    its rounding depends on the linear-algebra library and its threads; here KL is exactly 0 at no gap, anywhere.
    """
    total = np.zeros((len(left), len(right)))
    for column in range(left.shape[1]):
        difference = np.subtract.outer(left[:, column], right[:, column])
        total += np.square(difference, out=difference)
    return total
