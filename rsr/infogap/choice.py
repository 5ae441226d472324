"""Which estimator of KL fits the data at hand: it looks at them, tries all that can be, and says why one is advised.

What the rules rest on is measured; `tests/infogap/test_estimators.py` and `test_estimator_doctor.py` show it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np

from rsr.infogap._arrays import matrix, noise_vector, squared_distances
from rsr.infogap.estimators import Divergence, Estimator, divergence
from rsr.infogap.features import Scaler

FEWEST, FEWEST_PER_COLUMN = 50, 5
"""Fewer samples make no density."""
CROWD = 1.2
"""A density whose kernels hold fewer samples than this, their own included, is a squared error in disguise."""
LARGE_NATS = 3.0
"""Kernels and neighbours saturate: at a true 8 nats they read 2 to 4."""
HEAVY_TAILS = 10.0
"""Excess kurtosis beyond which one bandwidth does not fit the middle and the tails (Student's t has no finite one
below five degrees of freedom): there neighbours scatter a tenth as much as kernels."""
NORMAL = 0.5
"""Excess kurtosis, and skewness, up to which samples may pass as normal ones."""
MANY_DUPLICATES = 0.05
_LOOKED_AT = 1000
_DISGUISE = (
    "in {} columns a kernel holds hardly more than its own sample: no density, but the squared difference of the pairs "
    "with a cap on it"
)


@dataclass(frozen=True)
class EstimatorChoice:
    """Recommended estimator, with the properties of the data that led to it.

    Args:
        advised: the estimator that fits.
        reasons: why it and not another, one sentence each.
        samples, columns: as compared; columns that never change are not counted.
        crowd: samples within the kernel of one, its own included, in the typical (median) case.
        duplicates: share of real samples that another one repeats, as finely as the sensors read.
        tails: largest excess kurtosis of a column.
        estimates: one of every estimator that can be applied.
    """

    advised: Estimator
    reasons: tuple[str, ...]
    samples: int
    columns: int
    paired: bool
    crowd: float
    duplicates: float
    tails: float
    estimates: tuple[Divergence, ...]

    @property
    def estimate(self) -> Divergence:
        """The advised estimator's."""
        return next(each for each in self.estimates if each.estimator == self.advised)


def diagnose(
    real: np.ndarray,
    simulated: np.ndarray,
    *,
    scaler: Scaler | None = None,
    paired: bool = True,
    skew: float = 0.05,
    noise: np.ndarray | float = 0.0,
    seed: int = 0,
) -> EstimatorChoice:
    """Look at two datasets and advise an estimator of KL(real || simulated). Arguments as of `divergence`."""
    where = "estimator doctor"
    real = matrix(real, f"{where}: real", at_least=7)
    noise = noise_vector(noise, real.shape[1], where)
    scaler = scaler or Scaler.fit(real, simulated, noise=noise)
    p = scaler(real)[:_LOOKED_AT]
    count, columns = len(real), p.shape[1]
    estimates = tuple(
        divergence(real, simulated, name, scaler=scaler, paired=paired, skew=skew, noise=noise, seed=seed)
        for name in get_args(Estimator)
        if (paired or name != "conditional") and (name != "gaussian" or min(count, len(simulated)) >= columns + 3)
    )
    values = {each.estimator: each.value for each in estimates}
    squared = squared_distances(p, p)
    crowd = _crowd(squared, count, columns)
    duplicates = _duplicates(squared, float(np.linalg.norm((noise / scaler.std)[scaler.kept])))
    tails, lean = _shape(p)
    few = count < max(FEWEST, FEWEST_PER_COLUMN * columns)
    if paired:
        advised, reasons = _of_pairs(few, crowd, count, columns, values, np.log(1 / skew) if skew else np.inf)
    else:
        advised, reasons = _of_independent(few, duplicates, tails, lean, values)
    return EstimatorChoice(advised, tuple(reasons), count, columns, paired, crowd, duplicates, tails, estimates)


def _of_pairs(
    few: bool, crowd: float, count: int, columns: int, values: dict[str, float], cap: float
) -> tuple[Estimator, list[str]]:
    if few:
        return "conditional", [f"{count} pairs make no density of {columns} columns; their differences need none"]
    alone = crowd < CROWD
    if values["kde"] > 0.8 * cap:
        beyond = f"the gap is beyond what kernels can say (capped at {cap:.1f} nats)"
        return ("conditional", [beyond, _DISGUISE.format(columns)]) if alone else ("gaussian", [beyond])
    reasons = ["pairs share their states and actions: kernels kept on both sides give exactly 0 at no gap"]
    return "kde", [*reasons, _DISGUISE.format(columns)] if alone else reasons


def _of_independent(
    few: bool, duplicates: float, tails: float, lean: float, values: dict[str, float]
) -> tuple[Estimator, list[str]]:
    reasons = []
    if duplicates > MANY_DUPLICATES:
        reasons.append(f"{duplicates:.0%} of the samples repeat another: neighbours at no distance say nothing")
    if tails > HEAVY_TAILS:
        if duplicates <= MANY_DUPLICATES:
            return "knn", [f"heavy tails (excess kurtosis {tails:.0f}): one bandwidth fits the middle or the tails"]
        reasons.append(f"heavy tails (excess kurtosis {tails:.0f}): distrust every figure here")
    if "gaussian" not in values:
        return "kde", [*reasons, "too few samples even for covariances: distrust every figure here"]
    if few:
        return "gaussian", [*reasons, "few samples: only means and covariances can be estimated"]
    if max(abs(tails), lean) < NORMAL:
        return "gaussian", [*reasons, "the samples look normal: then nothing is nearer the truth"]
    if values["gaussian"] > LARGE_NATS:
        return "gaussian", [*reasons, "a gap this large saturates kernels and neighbours"]
    return "kde", [*reasons, "neither normal nor heavy-tailed, and enough samples for a density"]


def _crowd(squared: np.ndarray, count: int, columns: int) -> float:
    """Samples in one kernel: the median over samples of the sum of its weights, that of itself being 1."""
    weights = np.exp(-0.5 * squared / count ** (-2 / (columns + 4)))
    return float(np.median(weights.sum(axis=1)) * count / len(squared))


def _duplicates(squared: np.ndarray, finest: float) -> float:
    nearest = (squared + np.diag(np.full(len(squared), np.inf))).min(axis=1)
    return float(np.mean(nearest <= max(finest, 1e-9) ** 2))


def _shape(samples: np.ndarray) -> tuple[float, float]:
    """The excess kurtosis farthest from none, and the largest skewness, over the columns."""
    spread = samples.std(axis=0)
    scaled = (samples - samples.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    kurtosis = np.mean(scaled**4, axis=0) - 3
    return float(kurtosis[np.argmax(np.abs(kurtosis))]), float(np.abs(np.mean(scaled**3, axis=0)).max())
