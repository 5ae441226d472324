"""The Wasserstein factor of Eq. 3 in closed form: how far one more sample moves a dataset's distribution.

Let mu be the empirical measure of y_1 .. y_n and nu that of y_1 .. y_n and x, so nu = (1 - t) mu + t delta_x with
t = 1 / (n + 1). By Kantorovich-Rubinstein duality (Villani, Optimal Transport: Old and New, 2009, Remark 6.5),

    W1(nu, mu) = sup over f with |f(x) - f(y)| <= rho(x, y) of  t (mean_i f(y_i) - f(x))  =  t W1(delta_x, mu),

and the only coupling with a point mass is the product, so **W1 = mean_i rho(x, y_i) / (n + 1)**: exact, for any ground
metric rho, without a solver. The tests compare it with POT's linear program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rsr.infogap._checks import matrix, within
from rsr.infogap._distances import squared_distances

_SINGLE_THREAD_PRODUCTS = 262_144
"""OpenBLAS spreads a matrix product over threads above this many multiplications. On a busy machine such a small
product then waits for its other thread (80 us a sample on average instead of 4, measured with two busy neighbours), so
batches are cut into blocks that stay below. It also makes the rounding independent of the number of threads.
"""


@dataclass(frozen=True)
class Metric:
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

    def mean_of_squared(self, squared: np.ndarray) -> np.ndarray:
        """Average rho over the columns of squared distances [b, n] of embedded points; overwrites its argument."""
        distance = np.sqrt(np.maximum(squared, 0, out=squared), out=squared)
        if self.tau == np.inf:
            return distance.mean(axis=1)
        distance *= -1 / self.tau
        return self.tau * (1 - np.exp(distance, out=distance).mean(axis=1))


def euclidean(reference: np.ndarray) -> Metric:
    """Make the metric that Eq. 3 suggests; unbounded."""
    return Metric()


def clipped(reference: np.ndarray) -> Metric:
    """Make the Euclidean metric of coordinates clipped at three standard deviations."""
    return Metric(clip=3.0)


def saturating(reference: np.ndarray) -> Metric:
    """Make the clipped metric that saturates at half the median distance within `reference` [n, d]."""
    # 500 rows have 124,750 distances; their median is known far better than it matters.
    squared = squared_distances(*[clipped(reference).embed(reference[:500])] * 2)
    positive = squared[squared > 0]
    return Metric(clip=3.0, tau=0.5 * float(np.sqrt(np.median(positive)))) if positive.size else Metric(clip=3.0)


METRICS: dict[str, Callable[[np.ndarray], Metric]] = {
    "euclidean": euclidean,
    "clipped": clipped,
    "saturating": saturating,
}
"""Ground metrics by the name that settings use; each is made for standardised reference samples [n, d]."""


def w1_of_added_sample(samples: np.ndarray, reference: np.ndarray, metric: Metric | None = None) -> np.ndarray:
    """W1 between `reference` [n, d] and itself with one of `samples` [b, d] added, for each of them: [b].

    Exact, in float64, on the coordinates given. `Transport` is its fast form.
    """
    metric = metric or Metric()
    reference = metric.embed(matrix(reference, "W1: reference"))
    samples = metric.embed(matrix(samples, "W1: samples", columns=reference.shape[1]))
    return metric.mean_of_squared(squared_distances(samples, reference)) / (len(reference) + 1)


@dataclass(frozen=True, eq=False)
class Transport:
    """A reference dataset prepared for fast evaluation: matrix products in float32.

    Args:
        reference: [m, d] float32, standardised and embedded; all of the dataset or an even sample of it.
        dataset_size: n, the samples of the whole dataset, for the factor 1 / (n + 1).
    """

    reference: np.ndarray
    dataset_size: int
    metric: Metric

    @classmethod
    def fit(
        cls,
        standardised: np.ndarray,
        *,
        rng: np.random.Generator,
        metric: Callable[[np.ndarray], Metric] = saturating,
        samples: int = 1000,
    ) -> Transport:
        """Prepare a dataset [n, d]; beyond `samples` rows, an even random sample stands for it.

        The error of the sample is (spread of rho over the dataset) / sqrt(samples): 0.5 % at a dozen columns.
        """
        data = matrix(standardised, "transport model")
        rows = data[np.sort(rng.choice(len(data), samples, replace=False))] if len(data) > samples else data
        # The median distance wants rows in random order: neighbours in time lie close together.
        ground = metric(rows[rng.permutation(len(rows))])
        return cls(ground.embed(rows).astype(np.float32), len(data), ground)

    def mean_distance(self, standardised: np.ndarray) -> np.ndarray:
        """Mean of rho(x, y) over the reference for every x of [b, d]: [b] float32."""
        samples = self.metric.embed(standardised).astype(np.float32)
        means = np.empty(len(samples), np.float32)
        rows = max(1, _SINGLE_THREAD_PRODUCTS // self._right.size)
        for start in range(0, len(samples), rows):
            block = slice(start, start + rows)
            means[block] = self.metric.mean_of_squared(_extended(samples[block]) @ self._right)
        return means

    def w1(self, standardised: np.ndarray) -> np.ndarray:
        """W1 of adding each of the samples [b, d] to the dataset: [b] float32."""
        return self.mean_distance(standardised) / (self.dataset_size + 1)

    @cached_property
    def _right(self) -> np.ndarray:
        """[d + 2, m]: (-2 y, 1, |y|^2), so that (x, |x|^2, 1) times it is |x - y|^2 in a single product."""
        square = np.square(self.reference).sum(axis=1)
        return np.ascontiguousarray(np.vstack([-2 * self.reference.T, np.ones_like(square), square]))


def _extended(samples: np.ndarray) -> np.ndarray:
    """(x, |x|^2, 1), [b, d + 2]."""
    square = np.square(samples).sum(axis=1, keepdims=True)
    return np.concatenate([samples, square, np.ones_like(square)], axis=1)
