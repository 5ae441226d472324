"""InfoGap's Wasserstein term in closed form against POT's exact solver.

    speedup_over_emd2_n1000          time of one `ot.emd2` (with its cost matrix) over time of one sample in a batch
    microseconds_per_sample_batch    W1 of one sample of a vector step of 64, float32, as in training
    microseconds_per_bonus           the whole reward term: scaling, W1, calibration, bound
    max_relative_error_against_emd2  closed form in float64, over metrics, dimensions and sizes
    max_relative_error_float32_batch the same for the form that training uses

1,000 reference samples, 12 columns, saturating ground metric; both sides timed in this process, one after the other.
"""

from __future__ import annotations

import os

import numpy as np
from _common import Figure, median_seconds, run
from scipy.spatial.distance import cdist

from rsr.infogap import Metric, Transport, fit_infogap, saturating, w1_of_added_sample

# POT imports every tensor library it finds, which takes seconds; its linear program needs none of them.
for _backend in ("PYTORCH", "JAX", "TENSORFLOW", "CUPY"):
    os.environ.setdefault(f"POT_BACKEND_DISABLE_{_backend}", "1")
import ot  # noqa: E402

REFERENCES, COLUMNS, BATCH = 1000, 12, 64


def measure(quick: bool) -> dict[str, Figure]:
    """Time both forms, then compare their values."""
    rng = np.random.default_rng(0)
    dataset, batch = rng.normal(size=(REFERENCES, COLUMNS)), 1.5 * rng.normal(size=(BATCH, COLUMNS))
    transport = Transport.fit(dataset, rng=rng)
    # W1 does not depend on the gap, so any pair of datasets gives a reward to time.
    reward = fit_infogap(dataset + 1, dataset, dataset, 0.01, 1.0, rng=rng)

    emd2_s = median_seconds(lambda: emd2(batch[0], dataset, transport.metric), 3 if quick else 15)
    batch_s = median_seconds(lambda: transport.w1(batch), 50 if quick else 500) / BATCH
    bonus_s = median_seconds(lambda: reward.bonus(batch), 50 if quick else 500) / BATCH
    exact_error, float32_error = largest_errors(rng, sizes=(10, 100) if quick else (1, 10, 100, 400))
    return {
        "speedup_over_emd2_n1000": emd2_s / batch_s,
        "microseconds_per_sample_batch": 1e6 * batch_s,
        "microseconds_per_bonus": 1e6 * bonus_s,
        "microseconds_per_emd2": 1e6 * emd2_s,
        "max_relative_error_against_emd2": exact_error,
        "max_relative_error_float32_batch": float32_error,
    }


def emd2(sample: np.ndarray, reference: np.ndarray, metric: Metric) -> float:
    """Solve the transport problem between the reference and itself with one sample added."""
    n = len(reference)
    here, there = metric.embed(reference), metric.embed(np.vstack([reference, sample]))
    cost = cdist(here, there)
    if metric.tau != np.inf:
        cost = metric.tau * (1 - np.exp(-cost / metric.tau))
    return ot.emd2(np.full(n, 1 / n), np.full(n + 1, 1 / (n + 1)), cost, numItermax=1_000_000)


def largest_errors(rng: np.random.Generator, sizes: tuple[int, ...]) -> tuple[float, float]:
    """Largest relative errors of the exact and of the fast form against the solver."""
    exact_errors, float32_errors = [], []
    for size in sizes:
        for columns in (1, 4, 12, 20):
            for make_metric in (lambda _: Metric(), lambda _: Metric(clip=3.0), lambda data: saturating(data)):
                reference, sample = rng.normal(size=(size, columns)), 2 * rng.normal(size=(1, columns))
                metric = make_metric(reference)
                solved = emd2(sample[0], reference, metric)
                exact = w1_of_added_sample(sample, reference, metric)[0]
                fast = Transport.fit(reference, rng=rng, metric=lambda _, chosen=metric: chosen).w1(sample)[0]
                exact_errors.append(abs(exact - solved) / solved)
                float32_errors.append(abs(fast - solved) / solved)
    return max(exact_errors), max(float32_errors)


if __name__ == "__main__":
    run(measure, __doc__)
