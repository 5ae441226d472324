"""Divergence of simulated from real data: the factor KL(D_real || D_sim) of Eq. 3, and Table I's KL per axis."""

from __future__ import annotations

import numpy as np

from rsr.infogap._arrays import matrix, same_shape, squared_distances, within
from rsr.infogap.features import Scaler

_BLOCK = 256
"""Rows of the kernel matrix held at once."""


def kde_of_standardised(p: np.ndarray, q: np.ndarray, *, paired: bool = True, skew: float = 0.05) -> float:
    """KL(p || q) in nats between Gaussian kernel densities of real (p) and simulated (q) transitions.

    One bandwidth serves both densities: Scott's n^(-1/(d+4)) in the units of the samples. It depends on the numbers of
    samples and columns alone, so iterations compare if those are kept equal.

    Paired data (the simulator started from the recorded states and actions) keep each sample's own kernel in *both*
    densities. Textbook leave-one-out would take it from p only, while q still holds the partner beside it: the
    estimate is then negative at every gap. Without a gap and without noise the result is exactly 0. Noise alone
    leaves a floor, which `fit_infogap` measures and subtracts; the estimate can be slightly negative around it.

    Args:
        p, q: [n, d] and [m, d], in the units in which the kernels are to be round; n = m and row i from the same
            (s, a) if paired.
        paired: False for independent samples: leave-one-out in p. Whiten such data first (`whitened`).
        skew: alpha of KL(p || (1 - alpha) q + alpha p), 0 <= alpha < 1. It is zero where KL is, and never exceeds
            log(1 / alpha) (3.0 nats for 0.05), so that one wild row cannot run away with the weight; 0 is plain KL.
    """
    within(skew, 0.0, 1.0, "KL of the InfoGap term: skew")
    bandwidth = min(len(p), len(q)) ** (-1 / (p.shape[1] + 4))
    log_ratio = _log_ratio(p / bandwidth, q / bandwidth, leave_one_out=not paired)
    return float(-_skewed(log_ratio, skew).mean())


def kl_conditional_gaussian(
    real: np.ndarray, simulated: np.ndarray, *, scaler: Scaler, relative_std: float = 0.3
) -> float:
    """KL in nats if, given (s, a), both s' were Gaussian with one spread: Eq. 2's squared error in other units.

    0.5 E |z_real - z_simulated|^2 / relative_std^2 with standardised z. It needs no density estimate, so it works
    for any number of columns and any gap: the cross-check beside the kernels.

    Args:
        real, simulated: [n, d], paired.
        relative_std: assumed spread of s' given (s, a), as a share of each column's standard deviation.
    """
    return conditional_of_standardised(scaler(real), scaler(simulated), relative_std)


def conditional_of_standardised(p: np.ndarray, q: np.ndarray, relative_std: float = 0.3) -> float:
    """`kl_conditional_gaussian` of samples [n, d] in units of their standard deviations."""
    where = "conditional Gaussian KL"
    within(relative_std, 1e-6, np.inf, f"{where}: relative_std")
    same_shape(p, q, where)
    return float(0.5 * np.square((p - q) / relative_std).sum(axis=1).mean())


def kl_axis(real: np.ndarray, simulated: np.ndarray, *, noise: float) -> float:
    """KL in nats between real and simulated trajectories along one axis, as in the paper's Table I.

    At each time the coordinate's 1-D densities over the episodes are compared; the mean over times is returned.
    Not capped (skew 0): how large it is early in a loop is the message.

    Why this estimator (64 episodes, measured over 400 draws):
    * Both self-kernels. Equal starts pair the episodes: 0 when equal, below 0.01 when noise of a fifth of the
      spread separates partners; leave-one-out gives -0.07 there. Contact chaos may unpair late times; fully
      independent episodes without any gap leave 0.07 +- 0.04 (0.17 with 16 episodes): the floor of the figure.
    * The bandwidth follows the spread of real *and* simulated together. A bandwidth from each set's own spread
      explodes once they separate (25 nats at a shift of five spreads, hundreds at twenty), and its scatter is as
      large as itself. Pooled, the figure grows with any gap and levels off at 2 n^(2/5) (10.6) for a pure shift.

    Args:
        real, simulated: [n, T], one figure of the task (an offset from the goal, say) of n episodes at T chosen times;
            the same starts and goals in both.
        noise: standard deviation of the sensor, same unit, above zero: no spread counts as smaller than it.

    Returns:
        At least 0; estimates that scatter below are returned as 0.
    """
    where = "KL per axis"
    within(noise, np.finfo(float).tiny, np.inf, f"{where}: noise")
    real = matrix(real, f"{where}: real", at_least=2)
    simulated = matrix(simulated, f"{where}: simulated")
    same_shape(real, simulated, where)
    bandwidth = len(real) ** (-1 / 5) * np.maximum(np.concatenate([real, simulated]).std(axis=0), noise)
    p, q = real / bandwidth, simulated / bandwidth
    columns = [slice(time, time + 1) for time in range(real.shape[1])]
    per_time = [-_log_ratio(p[:, column], q[:, column], leave_one_out=False).mean() for column in columns]
    return max(0.0, float(np.mean(per_time)))


def _log_ratio(p: np.ndarray, q: np.ndarray, *, leave_one_out: bool) -> np.ndarray:
    """Evaluate log q(x) - log p(x) at every sample x of p: [n]. Samples are in units of the bandwidth."""
    ratio = np.empty(len(p))
    for start in range(0, len(p), _BLOCK):
        rows = slice(start, min(start + _BLOCK, len(p)))
        own = squared_distances(p[rows], p)
        if leave_one_out:
            own[np.arange(len(own)), np.arange(start, rows.stop)] = np.inf
        log_p = _log_sum_exp(-0.5 * own) - np.log(len(p) - leave_one_out)
        log_q = _log_sum_exp(-0.5 * squared_distances(p[rows], q)) - np.log(len(q))
        ratio[rows] = log_q - log_p
    return ratio


def _log_sum_exp(exponents: np.ndarray) -> np.ndarray:
    largest = exponents.max(axis=1, keepdims=True)
    return np.log(np.exp(exponents - largest).sum(axis=1)) + largest[:, 0]


def _skewed(log_ratio: np.ndarray, skew: float) -> np.ndarray:
    """log((1 - skew) q + skew p) - log p from log q - log p."""
    if skew == 0:
        return log_ratio
    mixed = np.logaddexp(np.log1p(-skew) + log_ratio, np.log(skew))
    # The logarithms of skew and 1 - skew do not cancel to the last bit, and equal data must give exactly 0.
    return np.where(log_ratio == 0, 0.0, mixed)
