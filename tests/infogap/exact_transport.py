"""The Wasserstein term of single samples without its fast form: what `Transport` is compared with."""

import numpy as np

from rsr.infogap._arrays import squared_distances
from rsr.infogap.transport import GroundMetric, Order, _check_order, _embedded, _mean_path, _shortest_paths


def w_of_added_sample(
    samples: np.ndarray, reference: np.ndarray, metric: GroundMetric | None = None, order: Order = 1
) -> np.ndarray:
    """W1 or W2 between `reference` [n, d] and itself with one of `samples` [b, d] added, for each of them: [b].

    Exact, in float64, on the coordinates given. `Transport` is its fast form. Order 2 takes n^3 steps once, and n^2
    a sample.
    """
    _check_order(order)
    samples, reference, metric = _embedded(samples, reference, metric)
    squared = squared_distances(samples, reference)
    if order == 1:
        return metric.mean_of_squared(squared) / (len(reference) + 1)
    paths = _shortest_paths(np.square(metric.of_squared(squared_distances(reference, reference))))
    last_hops = np.square(metric.of_squared(squared))
    return np.sqrt(_mean_path(last_hops, paths) / (len(reference) + 1))
