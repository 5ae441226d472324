"""Eq. 3 as a reward: calibrated, centred, bounded, and gone when the gap is; the literal value is there for the log."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rsr.errors import CalibrationError, ConfigError
from rsr.files import read_arrays, read_json, write_arrays, write_json
from rsr.infogap._checks import matrix, noise_vector, same_shape, within
from rsr.infogap.divergence import kl_conditional_gaussian, kl_kde
from rsr.infogap.features import Scaler
from rsr.infogap.transport import METRICS, Metric, Transport

_NUMBERS = (
    "kl", "kl_floor", "kl_first", "kl_conditional", "kappa", "task_reward_std", "novelty_mean", "novelty_std", "bound",
)  # fmt: skip
_FLOOR_DRAWS = 4
"""Noise realisations averaged in the floor; one alone scatters by a tenth of it."""


@dataclass(frozen=True, eq=False)
class InfoGapReward:
    """What one iteration adds to the task reward. D_sim^k is fixed, so it is a static function of (s, a, s').

    Eq. 3 taken literally is 0.1 % to 400 % of the task reward by accident of the dataset's size, is positive at every
    step (it pays for loitering), and is not bounded. So the same W1 is calibrated: in units of its standard deviation
    over D_sim^k, centred there, clipped, and weighed with `weight`.

    Args:
        kl: KL(D_real^k || D_sim^{k-1}).
        kl_floor: what sensor noise alone would leave of it behind a perfect simulator.
        kl_first: the same KL for the simulator that the loop began with.
        kl_conditional: Eq. 2's error in nats, a cross-check.
        kappa: standard deviation of the bonus, as a share of the task reward's, while the gap is fully open.
        task_reward_std: standard deviation over episodes of the task reward per step.
        novelty_mean, novelty_std: of the mean ground distance to the reference, over all of D_sim^k.
        bound: largest |score|, in standard deviations.
    """

    scaler: Scaler
    transport: Transport
    kl: float
    kl_floor: float
    kl_first: float
    kl_conditional: float
    kappa: float
    task_reward_std: float
    novelty_mean: float
    novelty_std: float
    bound: float = 5.0

    @property
    def open_share(self) -> float:
        """Share of the first gap that is still open, 0 to 1."""
        return open_share(self.kl, self.kl_floor, self.kl_first)

    @property
    def weight(self) -> float:
        """w_k, in units of the task reward."""
        return self.kappa * self.task_reward_std * self.open_share

    @property
    def eq3_mean(self) -> float:
        """Literal Eq. 3, -L_sr, averaged over D_sim^k."""
        return max(0.0, self.kl) * self.novelty_mean / (self.transport.dataset_size + 1)

    def score(self, features: np.ndarray) -> np.ndarray:
        """Novelty of transitions [b, d]: mean 0 and standard deviation 1 over D_sim^k, within +-bound; [b] float32."""
        novelty = self.transport.mean_distance(self.scaler(features))
        return np.clip((novelty - self.novelty_mean) / self.novelty_std, -self.bound, self.bound)

    def bonus(self, features: np.ndarray) -> np.ndarray:
        """Evaluate what is added to the task reward of transitions [b, d]: [b] float32, within +-weight * bound."""
        if self.weight == 0:
            return np.zeros(len(features), np.float32)
        return self.weight * self.score(features)

    def eq3(self, features: np.ndarray) -> np.ndarray:
        """Literal Eq. 3 as a reward, -L_sr = KL * W1 for transitions [b, d]: [b]. For the log."""
        return max(0.0, self.kl) * self.transport.w1(self.scaler(features)).astype(np.float64)

    def save(self, folder: Path) -> None:
        """Write `infogap.json` and `reference.npz`; equal models give equal bytes."""
        write_arrays(folder / "reference.npz", {"reference": self.transport.reference, **self.scaler.to_arrays()})
        write_json(folder / "infogap.json", self._document())

    def _document(self) -> dict[str, Any]:
        metric = self.transport.metric
        return {
            **{name: getattr(self, name) for name in _NUMBERS},
            "dataset_size": self.transport.dataset_size,
            "metric_clip": None if metric.clip == np.inf else metric.clip,
            "metric_tau": None if metric.tau == np.inf else metric.tau,
            # Follow from the others; written for people and for metrics.json.
            "open_share": self.open_share,
            "weight": self.weight,
            "eq3_mean": self.eq3_mean,
        }

    @classmethod
    def load(cls, folder: Path) -> InfoGapReward:
        """Read what `save` wrote."""
        try:
            document, arrays = read_json(folder / "infogap.json"), read_arrays(folder / "reference.npz")
            bounds = [np.inf if document[name] is None else document[name] for name in ("metric_clip", "metric_tau")]
            transport = Transport(arrays["reference"], document["dataset_size"], Metric(*bounds))
            numbers = {name: float(document[name]) for name in _NUMBERS}
            return cls(scaler=Scaler.from_arrays(arrays), transport=transport, **numbers)
        except (OSError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
            raise CalibrationError(
                got=f"{type(error).__name__}: {error}",
                expected="infogap.json and reference.npz as `InfoGapReward.save` writes them",
                where=str(folder),
                next_step="Run this iteration's infogap stage again.",
            ) from error


def open_share(kl: float, kl_floor: float, kl_first: float) -> float:
    """Share of the first simulator's gap that is open: min(1, max(0, KL_k - floor) / (KL_1 - floor))."""
    above_floor, first_above_floor = max(0.0, kl - kl_floor), max(0.0, kl_first - kl_floor)
    if above_floor == 0:
        return 0.0
    return min(1.0, above_floor / first_above_floor) if first_above_floor > 0 else 1.0


def fit_infogap(
    real: np.ndarray,
    simulated_before: np.ndarray,
    simulated_after: np.ndarray,
    noise: np.ndarray | float,
    task_reward_std: float,
    *,
    rng: np.random.Generator,
    simulated_first: np.ndarray | None = None,
    kappa: float = 0.4,
    skew: float = 0.05,
    metric: str = "saturating",
    kl_samples: int = 1000,
    reference_samples: int = 1000,
    bound: float = 5.0,
) -> InfoGapReward:
    """Do the whole stage of iteration k: the KL of Eq. 3, its floor, and the transport model of D_sim^k.

    All datasets are `transitions(...)` [n, d] whose row i starts from the same recorded state and action.

    Args:
        real: D_real^k, recorded with policy k-1.
        simulated_before: D_sim^{k-1}, the same (s, a) propagated with theta_{k-1}.
        simulated_after: D_sim^k, propagated with theta_k; policy k trains there.
        noise: [d], what sensor noise adds to a real row and not to its simulated partner (`transition_noise`).
        task_reward_std: standard deviation over episodes of the task reward per step.
        rng: draws the sub-samples and the noise of the floor.
        simulated_first: the same (s, a) propagated with theta_0, for KL_1 on the very rows of KL_k; None in
            iteration 1, where it is `simulated_before`.
        metric: a name in `METRICS`.
        kl_samples: rows drawn for KL. Its bandwidth depends on the number, so keep it equal over iterations.
        reference_samples: rows of D_sim^k that stand for it in the reward.
    """
    where = "InfoGap stage"
    within(kappa, 0.0, np.inf, f"{where}: kappa")
    within(task_reward_std, 0.0, np.inf, f"{where}: task_reward_std")
    within(bound, np.finfo(float).tiny, np.inf, f"{where}: bound")
    if simulated_first is None:
        simulated_first = simulated_before
    real, before, after, first = _paired([real, simulated_before, simulated_after, simulated_first], where)
    noise = noise_vector(noise, real.shape[1], where)
    scaler = Scaler.fit(real, before, after, noise=noise)

    rows = _sample_rows(len(real), within(kl_samples, 50, np.inf, f"{where}: kl_samples"), rng)

    def divergence(p: np.ndarray, q: np.ndarray) -> float:
        return kl_kde(p[rows], q[rows], scaler=scaler, skew=skew)

    floors = [divergence(after + noise * rng.standard_normal(after.shape), after) for _ in range(_FLOOR_DRAWS)]

    within(reference_samples, 50, np.inf, f"{where}: reference_samples")
    standardised = scaler(after)
    transport = Transport.fit(standardised, rng=rng, metric=_metric(metric), samples=reference_samples)
    novelty = transport.mean_distance(standardised).astype(np.float64)
    return InfoGapReward(
        scaler=scaler,
        transport=transport,
        kl=divergence(real, before),
        kl_floor=max(0.0, float(np.mean(floors))),
        kl_first=divergence(real, first),
        kl_conditional=kl_conditional_gaussian(real, before, scaler=scaler),
        kappa=float(kappa),
        task_reward_std=float(task_reward_std),
        novelty_mean=float(novelty.mean()),
        # Were all rows equally novel, there would be nothing to grade: do not divide by rounding.
        novelty_std=max(float(novelty.std()), 1e-3 * float(novelty.mean())),
        bound=float(bound),
    )


def _paired(datasets: list[np.ndarray], where: str) -> list[np.ndarray]:
    """Check that datasets are equal in shape and large enough for a density: 50 rows and 5 a column."""
    names = ("real", "simulated_before", "simulated_after", "simulated_first")
    at_least = max(50, 5 * matrix(datasets[0], f"{where}: real").shape[1])
    checked = [matrix(data, f"{where}: {name}", at_least=at_least) for data, name in zip(datasets, names, strict=True)]
    for data, name in zip(checked[1:], names[1:], strict=True):
        same_shape(checked[0], data, f"{where}: real and {name}")
    return checked


def _sample_rows(size: int, samples: float, rng: np.random.Generator) -> np.ndarray:
    return np.arange(size) if size <= samples else np.sort(rng.choice(size, int(samples), replace=False))


def _metric(name: str) -> Callable[[np.ndarray], Metric]:
    if name not in METRICS:
        raise ConfigError(
            got=f"ground metric '{name}'",
            expected=f"one of {', '.join(METRICS)}",
            where="InfoGap stage: metric",
            next_step="Correct infogap.metric in params.yaml.",
        )
    return METRICS[name]
