"""KL(real || simulated) by any of four estimators behind one name. What each is good for: `rsr.infogap.choice`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy.special import psi

from rsr.common import check_choice
from rsr.infogap._arrays import matrix, noise_vector, same_shape, squared_distances
from rsr.infogap.densities import conditional_of_standardised, kde_of_standardised
from rsr.infogap.features import Scaler

Estimator = Literal["kde", "gaussian", "knn", "conditional"]
ESTIMATORS: tuple[str, ...] = get_args(Estimator)

NEIGHBOURS = 5
_FINEST = 1e-9
"""In standard deviations: directions and distances below it are rounding."""
_BLUR = 0.1
"""Standard deviations. A simulator's step is a function of state and action, so its samples fill no volume and their
normal distribution none either: both sides are seen through this blur, or that of the sensors."""
_FLOOR_DRAWS = 4
"""Noise realisations averaged in a floor; one alone scatters by a tenth of it."""


@dataclass(frozen=True)
class Divergence:
    """An estimate of KL(real || simulated).

    Args:
        value: nats. Slightly below zero where the estimator's own scatter is larger than the gap.
        floor: what sensor noise alone would give behind a perfect simulator, nats; 0 for unpaired data, whose
            simulated half is as noisy as the real one.
        warnings: what a reader should know before trusting the value.
    """

    value: float
    estimator: Estimator
    floor: float
    warnings: tuple[str, ...] = ()

    @property
    def above_floor(self) -> float:
        """The part that a better simulator could remove, nats."""
        return max(0.0, self.value - self.floor)


def divergence(
    real: np.ndarray,
    simulated: np.ndarray,
    estimator: Estimator = "kde",
    *,
    scaler: Scaler | None = None,
    paired: bool = True,
    skew: float = 0.05,
    noise: np.ndarray | float = 0.0,
    seed: int = 0,
) -> Divergence:
    """Estimate KL(real || simulated) in nats.

    Args:
        real, simulated: [n, d] and [m, d], of `transitions(...)` for instance.
        estimator: `kde` kernel densities, `gaussian` two normal distributions, `knn` distances to neighbours,
            `conditional` Eq. 2's squared error in nats (paired data only).
        scaler: units of the columns; by default fitted to both datasets and to the noise.
        paired: row i of both starts from the same state and action. Then every estimate is exactly 0 when the data
            are equal. Unpaired data are independent samples, and the estimates are corrected for their number.
        skew: caps `kde` at log(1 / skew), see `kde_of_standardised`.
        noise: [d] or one number, what sensor noise adds to a real row and not to its simulated partner.
        seed: of the noise drawn for the floor.

    Example:
        >>> divergence(real, simulated, "gaussian", paired=False).value  # doctest: +SKIP
        0.53
    """
    where = "divergence"
    real = matrix(real, f"{where}: real", at_least=2)
    simulated = matrix(simulated, f"{where}: simulated", columns=real.shape[1], at_least=2)
    noise = noise_vector(noise, real.shape[1], where)
    scaler = scaler or Scaler.fit(real, simulated, noise=noise)
    estimate = kl_by(estimator, scaler=scaler, paired=paired, skew=skew, noise=noise)
    value = estimate(real, simulated)
    floor = noise_floor(estimate, simulated, noise, np.random.default_rng(seed)) if paired and noise.any() else 0.0
    cautions = _cautions(estimator, value, floor, len(real), scaler.kept_columns, skew)
    return Divergence(value, estimator, floor, tuple(cautions))


Estimate = Callable[[np.ndarray, np.ndarray], float]
"""From real and simulated samples [n, d] and [m, d] to nats."""


def kl_by(
    estimator: str, *, scaler: Scaler, paired: bool = True, skew: float = 0.05, noise: np.ndarray | float = 0.0
) -> Estimate:
    """Make the estimator of this name; the arguments are those of `divergence`."""
    usable = [name for name in ESTIMATORS if paired or name != "conditional"]
    check_choice(
        estimator,
        usable,
        got=f"estimator '{estimator}' for {'paired' if paired else 'unpaired'} data",
        where="divergence: estimator",
        next_step="Correct infogap.estimator; `rsr divergence` says which fits a recording.",
    )
    scaled_noise = (noise_vector(noise, scaler.columns, "divergence") / scaler.std)[scaler.kept]
    task = _Task(paired, skew, scaled_noise)

    def estimate(real: np.ndarray, simulated: np.ndarray) -> float:
        if paired:
            same_shape(real, simulated, "divergence")
        p, q = scaler(real), scaler(simulated)
        return _ESTIMATES[estimator](*((p, q) if paired else whitened(p, q)), task)

    return estimate


def noise_floor(estimate: Estimate, simulated: np.ndarray, noise: np.ndarray, rng: np.random.Generator) -> float:
    """Estimate the divergence of a perfect simulator behind noisy sensors, nats."""
    noisy = [simulated + noise * rng.standard_normal(simulated.shape) for _ in range(_FLOOR_DRAWS)]
    return max(0.0, float(np.mean([estimate(data, simulated) for data in noisy])))


@dataclass(frozen=True)
class _Task:
    """Arguments of an estimator beside the samples.

    Args:
        noise: [d], in standard deviations.
    """

    paired: bool
    skew: float
    noise: np.ndarray


def _gaussian(p: np.ndarray, q: np.ndarray, task: _Task) -> float:
    return kl_gaussian_of_pairs(p, q, blur=np.maximum(_BLUR, task.noise)) if task.paired else kl_gaussian(p, q)


def _knn(p: np.ndarray, q: np.ndarray, task: _Task) -> float:
    # Two readings of one thing lie about this far apart: whatever is nearer is the same.
    finest = float(np.linalg.norm(np.sqrt(2) * task.noise))
    return kl_knn_of_pairs(p, q, finest=finest) if task.paired else kl_knn(p, q, finest=finest)


_ESTIMATES: dict[str, Callable[[np.ndarray, np.ndarray, _Task], float]] = {
    "kde": lambda p, q, task: kde_of_standardised(p, q, paired=task.paired, skew=task.skew),
    "gaussian": _gaussian,
    "knn": _knn,
    "conditional": lambda p, q, task: conditional_of_standardised(p, q),
}


def whitened(p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotate and scale both by the covariance of all samples: for independent samples with correlated columns.

    Not for paired data: it blows up the directions that hold only noise.
    """
    pooled = np.concatenate([p, q])
    variances, axes = np.linalg.eigh(np.cov(pooled, rowvar=False).reshape(p.shape[1], -1))
    alive = variances > _FINEST * variances.max()
    basis = axes[:, alive] / np.sqrt(variances[alive])
    centre = pooled.mean(axis=0)
    return (p - centre) @ basis, (q - centre) @ basis


def kl_gaussian(p: np.ndarray, q: np.ndarray) -> float:
    """KL in nats between the normal distributions that independent samples [n, d] and [m, d] come from.

    Corrected for what finite numbers add to it (of two Wishart matrices: E S^-1 = (n - 1) / (n - d - 2) C^-1, E log
    det S by digammas), so unbiased where the data are normal.
    """
    n, m, d = len(p), len(q), p.shape[1]
    squared_shift, excess = _compared(p, q, np.zeros(d))
    shrink = (m - d - 2) / (m - 1)
    trace = shrink * float(np.sum(1 + excess))
    logs = float(-np.sum(np.log1p(excess))) + _log_bias(n, d) - _log_bias(m, d)
    return 0.5 * (trace + shrink * squared_shift - trace / n - d / m - d + logs)


def kl_gaussian_of_pairs(p: np.ndarray, q: np.ndarray, *, blur: np.ndarray) -> float:
    """The same of paired samples, which share their scatter, so that it cancels without correction; exactly 0 if equal.

    Args:
        blur: [d], standard deviation of the noise through which both are seen.
    """
    squared_shift, excess = _compared(p, q, blur)
    return 0.5 * (float(np.sum(excess - np.log1p(excess))) + squared_shift)


def _compared(p: np.ndarray, q: np.ndarray, blur: np.ndarray) -> tuple[float, np.ndarray]:
    """Squared Mahalanobis distance of the means, and the eigenvalues of S_q^-1 S_p less one, [d].

    S_p - S_q is taken before anything is divided, so that equal data leave exact zeros.
    """
    d = p.shape[1]
    matrix(p, "Gaussian KL: real", at_least=d + 3)
    matrix(q, "Gaussian KL: simulated", columns=d, at_least=d + 3)
    of_p, of_q = (np.cov(samples, rowvar=False).reshape(d, d) for samples in (p, q))
    # Columns that are linear in others get the little scatter that makes the factor exist.
    little = _FINEST * np.trace(of_q) / d
    root = np.linalg.cholesky(of_q + np.diag(np.square(blur) + little))
    shift = np.linalg.solve(root, p.mean(axis=0) - q.mean(axis=0))
    relative = np.linalg.solve(root, np.linalg.solve(root, of_p - of_q).T)
    excess = np.linalg.eigvalsh(0.5 * (relative + relative.T))
    return float(shift @ shift), np.maximum(excess, _FINEST - 1)


def _log_bias(count: int, columns: int) -> float:
    """E log det S - log det C of a covariance S estimated from `count` normal samples."""
    freedoms = count - np.arange(1, columns + 1)
    return float(np.sum(psi(freedoms / 2) - np.log((count - 1) / 2)))


def kl_knn(p: np.ndarray, q: np.ndarray, *, finest: float = 0.0, neighbours: int = NEIGHBOURS) -> float:
    """KL in nats of independent samples, from distances to the k-th neighbours among real and among simulated ones.

    d mean log(nu_k / rho_k) + log(m / (n - 1)) (Wang, Kulkarni, Verdu, IEEE Trans. Inf. Theory 55, 2009, eq. 5).

    Args:
        finest: no distance is read as smaller; without it duplicates would give log 0.
    """
    matrix(p, "k-NN KL: real", at_least=neighbours + 1)
    matrix(q, "k-NN KL: simulated", columns=p.shape[1], at_least=neighbours)
    own = squared_distances(p, p)
    np.fill_diagonal(own, np.inf)
    ratio = _log_reach(squared_distances(p, q), finest, neighbours) - _log_reach(own, finest, neighbours)
    return float(p.shape[1] * ratio.mean() + np.log(len(q) / (len(p) - 1)))


def kl_knn_of_pairs(p: np.ndarray, q: np.ndarray, *, finest: float = 0.0, neighbours: int = NEIGHBOURS) -> float:
    """The same of pairs: the mean of KL(p || q) and KL(q || p), to which KL is equal to second order in the gap.

    A sample counts as its own first neighbour, as its partner does on the other side, for the reason given at
    `kde_of_standardised`; so equal data give exactly 0. Where the step makes the cloud denser or thinner, each
    direction alone is off by an error of the first order in the gap, with opposite signs: one of them is then negative
    at every small gap, and neither falls steadily as the gap closes. Their mean does.
    """
    for samples, name in ((p, "real"), (q, "simulated")):
        matrix(samples, f"k-NN KL: {name}", columns=p.shape[1], at_least=neighbours + 1)
    across = squared_distances(p, q)
    apart = _log_reach(across, finest, neighbours) + _log_reach(across.T, finest, neighbours)
    own = [_log_reach(squared_distances(each, each), finest, neighbours) for each in (p, q)]
    return float(0.5 * p.shape[1] * np.mean(apart - own[0] - own[1]))


def _log_reach(squared: np.ndarray, finest: float, neighbours: int) -> np.ndarray:
    """Logarithm of the distance to the k-th nearest, row by row."""
    reach = np.partition(squared, neighbours - 1, axis=1)[:, neighbours - 1]
    return 0.5 * np.log(np.maximum(reach, max(finest, _FINEST) ** 2))


def _cautions(estimator: str, value: float, floor: float, count: int, columns: int, skew: float) -> list[str]:
    """List cautions about an estimate."""
    cautions = []
    cap = np.log(1 / skew) if skew else np.inf
    if estimator == "kde" and value > 0.8 * cap:
        cautions.append(f"near its cap of {cap:.2g} nats: the gap is larger than this estimator can say")
    if estimator in ("kde", "knn") and count < 5 * columns:
        cautions.append(f"{count} samples are few for a density of {columns} columns")
    if value < 0:
        cautions.append("below zero: the gap is smaller than the estimator's scatter")
    elif floor > 0 and value < 1.5 * floor:
        cautions.append("hardly above what sensor noise alone gives")
    return cautions
