"""The Wasserstein factor of Eq. 3 in closed form: how far one more sample moves a dataset's distribution.

Let mu be the empirical measure of y_1 .. y_n and nu that of y_1 .. y_n and x, so nu = (1 - t) mu + t delta_x with
t = 1 / (n + 1). By Kantorovich-Rubinstein duality (Villani, Optimal Transport: Old and New, 2009, Remark 6.5),

    W1(nu, mu) = sup over f with |f(x) - f(y)| <= rho(x, y) of  t (mean_i f(y_i) - f(x))  =  t W1(delta_x, mu),

and the only coupling with a point mass is the product, so **W1 = mean_i rho(x, y_i) / (n + 1)**: exact, for any ground
metric rho, without a solver. Likewise m samples at once, with their measure nu_m: W1 = m / (n + m) W1(nu_m, mu), which
is a smaller problem than it looks, but does need a solver.

Order 2 has no such form, for going through other samples is cheaper than going straight: d^2 + d^2 < (2 d)^2. A plan is
a flow with a supply of 1 / n - 1 / (n + 1) = 1 / (n (n + 1)) at every y_i and one sink, x. The tree of shortest paths
(edges cost rho^2) is the cheapest flow, and no node sends on more than 1 / (n + 1), which is less than the 1 / n that
lies there; so it is a plan, and **W2^2 = sum_i path(y_i, x) / (n (n + 1))**. The tests compare all of it with POT's
linear program.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from rsr.common import ConfigError
from rsr.infogap._arrays import matrix, squared_distances, within

Order = Literal[1, 2]
"""beta of W_beta. 1 grows with the distance to the bulk of the data; 2 with the width of the gaps on the way there."""
ORDERS: tuple[int, ...] = get_args(Order)

_SINGLE_THREAD_PRODUCTS = 262_144
"""OpenBLAS spreads a matrix product over threads above this many multiplications. On a busy machine such a small
product then waits for its other thread (80 us a sample on average instead of 4, measured with two busy neighbours), so
batches are cut into blocks that stay below. It also makes the rounding independent of the number of threads.
"""


@dataclass(frozen=True)
class GroundMetric:
    """Ground metric on standardised features: Euclidean, clipped, saturating, or both of the latter.

    rho(x, y) = tau (1 - exp(-|c(x) - c(y)| / tau)), where c clips every coordinate at +-clip; tau = infinity leaves
    the plain distance. A concave increasing function of a metric that is 0 at 0 is a metric again.

    The Euclidean metric pays for distance from the median and without bound. The saturating one is bounded by tau,
    and tau minus it is proportional to a Laplace kernel density: it pays for rare transitions, holes included.
    """

    clip: float = np.inf
    tau: float = np.inf

    def __post_init__(self) -> None:
        smallest = np.finfo(float).tiny
        for name, value in (("clip", self.clip), ("tau", self.tau)):
            if value != np.inf:
                within(value, smallest, np.inf, f"ground metric: {name}")

    def embed(self, standardised: np.ndarray) -> np.ndarray:
        """Clip coordinates."""
        return standardised if self.clip == np.inf else np.clip(standardised, -self.clip, self.clip)

    def of_squared(self, squared: np.ndarray) -> np.ndarray:
        """Evaluate rho from squared distances of embedded points."""
        distance = np.sqrt(np.maximum(squared, 0))
        return distance if self.tau == np.inf else self.tau * -np.expm1(-distance / self.tau)

    def mean_of_squared(self, squared: np.ndarray) -> np.ndarray:
        """Average rho over the columns of squared distances [b, n] of embedded points; overwrites its argument."""
        distance = np.sqrt(np.maximum(squared, 0, out=squared), out=squared)
        if self.tau == np.inf:
            return distance.mean(axis=1)
        distance *= -1 / self.tau
        return self.tau * (1 - np.exp(distance, out=distance).mean(axis=1))


def euclidean(reference: np.ndarray) -> GroundMetric:
    """Make the metric that Eq. 3 suggests; unbounded."""
    return GroundMetric()


def clipped(reference: np.ndarray) -> GroundMetric:
    """Make the Euclidean metric of coordinates clipped at three standard deviations."""
    return GroundMetric(clip=3.0)


def saturating(reference: np.ndarray) -> GroundMetric:
    """Make the clipped metric that saturates at half the median distance within `reference` [n, d]."""
    # 500 rows have 124,750 distances; their median is estimated far more precisely than it matters.
    squared = squared_distances(*[clipped(reference).embed(reference[:500])] * 2)
    positive = squared[squared > 0]
    return (
        GroundMetric(clip=3.0, tau=0.5 * float(np.sqrt(np.median(positive))))
        if positive.size
        else GroundMetric(clip=3.0)
    )


METRICS: dict[str, Callable[[np.ndarray], GroundMetric]] = {
    "euclidean": euclidean,
    "clipped": clipped,
    "saturating": saturating,
}
"""Ground metrics by the name that settings use; each is made for standardised reference samples [n, d]."""


def w_of_added_batch(
    batch: np.ndarray, reference: np.ndarray, metric: GroundMetric | None = None, order: Order = 1
) -> float:
    """W1 or W2 between `reference` [n, d] and itself with all of `batch` [m, d] added, a whole trajectory for instance.

    Exact, by POT's network simplex: 7 ms for n = 1,000, m = 100 and order 1. Order 2 cannot use the shorter form and
    takes as long as moving n to n + m samples does.
    """
    _check_order(order)
    batch, reference, metric = _embedded(batch, reference, metric)
    n, m = len(reference), len(batch)
    if order == 1:
        cost = metric.of_squared(squared_distances(reference, batch))
        return m / (n + m) * _least_cost(cost)
    everything = np.concatenate([reference, batch])
    cost = np.square(metric.of_squared(squared_distances(reference, everything)))
    return float(np.sqrt(_least_cost(cost)))


def _least_cost(cost: np.ndarray) -> float:
    """Cost of moving the uniform measure on the rows of `cost` [n, m] to that on its columns, by POT."""
    for backend in ("PYTORCH", "JAX", "CUPY", "TENSORFLOW"):  # POT would import each, which takes seconds
        os.environ.setdefault(f"POT_BACKEND_DISABLE_{backend}", "1")
    from ot import emd2

    n, m = cost.shape
    scale = float(cost.max()) or 1.0  # its tolerances are absolute
    least = emd2(np.full(n, 1 / n), np.full(m, 1 / m), cost / scale, numItermax=1_000_000)
    return scale * float(np.asarray(least))


def _embedded(
    samples: np.ndarray, reference: np.ndarray, metric: GroundMetric | None
) -> tuple[np.ndarray, np.ndarray, GroundMetric]:
    metric = metric or GroundMetric()
    reference = metric.embed(matrix(reference, "Wasserstein distance: reference"))
    return metric.embed(matrix(samples, "Wasserstein distance: samples", columns=reference.shape[1])), reference, metric


def _check_order(order: int) -> None:
    if order not in ORDERS:
        raise ConfigError(
            got=f"order {order}",
            expected=f"one of {', '.join(map(str, ORDERS))}",
            where="Wasserstein distance",
            next_step="Correct infogap.order in params.yaml.",
        )


def _shortest_paths(cost: np.ndarray) -> np.ndarray:
    """Cost [n, n] of the cheapest way between any two nodes, by Floyd and Warshall."""
    paths = cost.copy()
    for node in range(len(paths)):
        np.minimum(paths, paths[:, node, None] + paths[node], out=paths)
    return paths


def _mean_path(last_hops: np.ndarray, paths: np.ndarray) -> np.ndarray:
    """Mean over the reference of the cheapest way to each sample: [b], from last hops [b, n] and paths [n, n]."""
    return np.array([(paths + hop).min(axis=1).mean() for hop in last_hops], last_hops.dtype)


@dataclass(frozen=True, eq=False)
class Transport:
    """A reference dataset prepared for fast evaluation: matrix products in float32.

    Args:
        reference: [m, d] float32, standardised and embedded; all of the dataset or an even sample of it.
        dataset_size: n, the samples of the whole dataset, for the factor 1 / (n + 1). Order 2 follows the density of
            the samples themselves, so there it is the size of the reference.
        order: 2 takes m^2 steps a sample instead of m: 30 to 90 us for 250 reference samples instead of 1.
    """

    reference: np.ndarray
    dataset_size: int
    metric: GroundMetric
    order: Order = 1

    @classmethod
    def fit(
        cls,
        standardised: np.ndarray,
        *,
        rng: np.random.Generator,
        metric: Callable[[np.ndarray], GroundMetric] = saturating,
        samples: int = 1000,
        order: Order = 1,
    ) -> Transport:
        """Prepare a dataset [n, d]; beyond `samples` rows, an even random sample stands for it.

        The error of the sample is (spread of rho over the dataset) / sqrt(samples): 0.5 % at a dozen columns.
        """
        _check_order(order)
        data = matrix(standardised, "transport model")
        rows = data[np.sort(rng.choice(len(data), samples, replace=False))] if len(data) > samples else data
        # The median distance wants rows in random order: neighbours in time lie close together.
        ground = metric(rows[rng.permutation(len(rows))])
        return cls(ground.embed(rows).astype(np.float32), len(data) if order == 1 else len(rows), ground, order)

    def novelty(self, standardised: np.ndarray) -> np.ndarray:
        """W of adding each of the samples [b, d], times (n + 1)^(1 / order): [b] float32, of the size of a distance."""
        if self.order == 1:
            return self.mean_distance(standardised)
        samples = self.metric.embed(standardised).astype(np.float32)
        last_hops = np.square(self.metric.of_squared(_extended(samples) @ self._right))
        return np.sqrt(_mean_path(last_hops, self._paths))

    @property
    def scale(self) -> float:
        """Factor from a novelty to W."""
        return (self.dataset_size + 1) ** (-1 / self.order)

    def mean_distance(self, standardised: np.ndarray) -> np.ndarray:
        """Mean of rho(x, y) over the reference for every x of [b, d]: [b] float32."""
        samples = self.metric.embed(standardised).astype(np.float32)
        means = np.empty(len(samples), np.float32)
        rows = max(1, _SINGLE_THREAD_PRODUCTS // self._right.size)
        for start in range(0, len(samples), rows):
            block = slice(start, start + rows)
            means[block] = self.metric.mean_of_squared(_extended(samples[block]) @ self._right)
        return means

    def w(self, standardised: np.ndarray) -> np.ndarray:
        """W1 or W2 of adding each of the samples [b, d] to the dataset: [b] float32."""
        return self.novelty(standardised) * np.float32(self.scale)

    @cached_property
    def _paths(self) -> np.ndarray:
        """[m, m] float32, cheapest ways between reference samples for squared ground distances."""
        reference = self.reference.astype(np.float64)
        paths = _shortest_paths(np.square(self.metric.of_squared(squared_distances(reference, reference))))
        return paths.astype(np.float32)

    @cached_property
    def _right(self) -> np.ndarray:
        """[d + 2, m]: (-2 y, 1, |y|^2), so that (x, |x|^2, 1) times it is |x - y|^2 in a single product."""
        square = np.square(self.reference).sum(axis=1)
        return np.ascontiguousarray(np.vstack([-2 * self.reference.T, np.ones_like(square), square]))


def _extended(samples: np.ndarray) -> np.ndarray:
    """(x, |x|^2, 1), [b, d + 2]."""
    square = np.square(samples).sum(axis=1, keepdims=True)
    return np.concatenate([samples, square, np.ones_like(square)], axis=1)
