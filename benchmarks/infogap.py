"""InfoGap's Wasserstein term in closed form against POT's exact solver.

    speedup_over_emd2_n1000          time of one `ot.emd2` (with its cost matrix) over time of one sample in a batch
    microseconds_per_sample_batch    W1 of one sample of a vector step of 64, float32, as in training
    microseconds_per_bonus           the whole reward term: scaling, W1, calibration, bound
    milliseconds_per_batch_of_100    W1 of a trajectory of 100 transitions, exact
    microseconds_per_sample_order_2  W2 of one sample of a vector step, 250 reference samples
    max_relative_error_against_emd2  exact forms in float64: metrics, dimensions, sizes; W1 and W2^2; samples, batches
    max_relative_error_float32_batch the same for the form that training uses

1,000 reference samples, 12 columns, saturating ground metric; both sides timed in this process, one after the other.
"""

from __future__ import annotations

import os

import numpy as np
from _common import Figure, median_seconds, run
from scipy.spatial.distance import cdist

from rsr.infogap import GroundMetric, Transport, fit_infogap, saturating, w_of_added_batch
from tests.infogap.exact_transport import w_of_added_sample

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
    batch_s = median_seconds(lambda: transport.w(batch), 50 if quick else 500) / BATCH
    bonus_s = median_seconds(lambda: reward.bonus(batch), 50 if quick else 500) / BATCH
    trajectory = 1.5 * rng.normal(size=(100, COLUMNS))
    trajectory_s = median_seconds(lambda: w_of_added_batch(trajectory, dataset, transport.metric), 1 if quick else 5)
    second = Transport.fit(dataset, rng=rng, samples=250, order=2)
    second_s = median_seconds(lambda: second.w(batch), 5 if quick else 50) / BATCH
    exact_error, float32_error = largest_errors(rng, sizes=(10, 100) if quick else (1, 10, 100, 400))
    return {
        "speedup_over_emd2_n1000": emd2_s / batch_s,
        "microseconds_per_sample_batch": 1e6 * batch_s,
        "microseconds_per_bonus": 1e6 * bonus_s,
        "microseconds_per_emd2": 1e6 * emd2_s,
        "milliseconds_per_batch_of_100": 1e3 * trajectory_s,
        "microseconds_per_sample_order_2": 1e6 * second_s,
        "max_relative_error_against_emd2": exact_error,
        "max_relative_error_float32_batch": float32_error,
    }


def emd2(added: np.ndarray, reference: np.ndarray, metric: GroundMetric, order: int = 1) -> float:
    """Solve the transport problem between the reference and itself with a sample, or several, added: W^order."""
    here, there = metric.embed(reference), metric.embed(np.vstack([reference, added]))
    cost = cdist(here, there)
    if metric.tau != np.inf:
        cost = metric.tau * (1 - np.exp(-cost / metric.tau))
    weights = np.full(len(here), 1 / len(here)), np.full(len(there), 1 / len(there))
    return ot.emd2(*weights, cost if order == 1 else cost**order, numItermax=1_000_000)


def largest_errors(rng: np.random.Generator, sizes: tuple[int, ...]) -> tuple[float, float]:
    """Largest relative errors of the exact forms and of the fast one against the solver."""
    exact_errors, float32_errors = [], []
    for size in sizes:
        for columns in (1, 4, 12, 20):
            for make_metric in (
                lambda _: GroundMetric(),
                lambda _: GroundMetric(clip=3.0),
                lambda data: saturating(data),
            ):
                reference, samples = rng.normal(size=(size, columns)), 2 * rng.normal(size=(7, columns))
                metric = make_metric(reference)
                exact_errors += exact_errors_of(samples, reference, metric)
                fast = Transport.fit(reference, rng=rng, metric=lambda _, chosen=metric: chosen).w(samples[:1])[0]
                solved = emd2(samples[:1], reference, metric)
                float32_errors.append(abs(fast - solved) / solved)
    return max(exact_errors), max(float32_errors)


def exact_errors_of(samples: np.ndarray, reference: np.ndarray, metric: GroundMetric) -> list[float]:
    """Relative errors of W1 and W2^2 of one added sample, and of all of them as a batch."""
    errors = []
    for order in (1, 2):
        single = w_of_added_sample(samples[:1], reference, metric, order)[0] ** order
        together = w_of_added_batch(samples, reference, metric, order) ** order
        for found, added in ((single, samples[:1]), (together, samples)):
            solved = emd2(added, reference, metric, order)
            errors.append(abs(found - solved) / solved)
    return errors


if __name__ == "__main__":
    run(measure, __doc__)
