"""Eq. 3 as a reward: calibrated, centred, bounded, and gone when the gap is; or taken literally, if that is wanted."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from rsr.errors import CalibrationError, ConfigError
from rsr.files import read_arrays, read_json, write_arrays, write_json
from rsr.infogap._checks import matrix, noise_vector, same_shape, within
from rsr.infogap.densities import kl_conditional_gaussian
from rsr.infogap.estimators import kl_by, noise_floor
from rsr.infogap.features import Scaler
from rsr.infogap.transport import METRICS, Metric, Order, Transport

Form = Literal["calibrated", "literal"]
FORMS: tuple[str, ...] = get_args(Form)
REFERENCE_SAMPLES = {1: 1000, 2: 250}
"""Rows of D_sim^k that stand for it, by order: order 2 takes their square of steps for every transition."""
_NUMBERS = (
    "kl", "kl_floor", "kl_first", "kl_conditional", "kappa", "task_reward_std", "novelty_mean", "novelty_std", "bound",
    "literal_weight",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class InfoGapReward:
    """What one iteration adds to the task reward. D_sim^k is fixed, so it is a static function of (s, a, s').

    Eq. 3 taken literally is 0.1 % to 400 % of the task reward by accident of the dataset's size, is positive at every
    step (it pays for loitering), and is not bounded. So the same W is calibrated: in units of its standard deviation
    over D_sim^k, centred there, clipped, and weighed with `weight`. The form "literal" pays Eq. 3 as it is written.

    Args:
        kl: KL(D_real^k || D_sim^{k-1}).
        kl_floor: what sensor noise alone would leave of it behind a perfect simulator.
        kl_first: the same KL for the simulator that the loop began with.
        kl_conditional: Eq. 2's error in nats, a cross-check.
        kappa: standard deviation of the bonus, as a share of the task reward's, while the gap is fully open.
        task_reward_std: standard deviation over episodes of the task reward per step.
        novelty_mean, novelty_std: of the mean ground distance to the reference, over all of D_sim^k.
        bound: largest |score|, in standard deviations.
        literal_weight: what the literal Eq. 3 is multiplied by, if that is the form.
        estimator: of the KL.
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
    literal_weight: float = 1.0
    form: Form = "calibrated"
    estimator: str = "kde"

    @property
    def open_share(self) -> float:
        """Share of the first gap that is still open, 0 to 1."""
        return open_share(self.kl, self.kl_floor, self.kl_first)

    @property
    def weight(self) -> float:
        """What the score, or the literal W, is multiplied by: in units of the task reward."""
        if self.form == "literal":
            return self.literal_weight * max(0.0, self.kl)
        return self.kappa * self.task_reward_std * self.open_share

    @property
    def eq3_mean(self) -> float:
        """Literal Eq. 3, -L_sr, averaged over D_sim^k."""
        return max(0.0, self.kl) * self.novelty_mean * self.transport.scale

    def score(self, features: np.ndarray) -> np.ndarray:
        """Novelty of transitions [b, d]: mean 0 and standard deviation 1 over D_sim^k, within +-bound; [b] float32."""
        novelty = self.transport.novelty(self.scaler(features))
        return np.clip((novelty - self.novelty_mean) / self.novelty_std, -self.bound, self.bound)

    def bonus(self, features: np.ndarray) -> np.ndarray:
        """Evaluate what is added to the task reward of transitions [b, d]: [b] float32.

        Within +-weight * bound in the calibrated form; the literal one is bounded only if its metric is.
        """
        if self.weight == 0:
            return np.zeros(len(features), np.float32)
        if self.form == "literal":
            return self.weight * self.transport.w(self.scaler(features))
        return self.weight * self.score(features)

    def eq3(self, features: np.ndarray) -> np.ndarray:
        """Literal Eq. 3 as a reward, -L_sr = KL * W for transitions [b, d]: [b]. For the log."""
        return max(0.0, self.kl) * self.transport.w(self.scaler(features)).astype(np.float64)

    def save(self, folder: Path) -> None:
        """Write `infogap.json` and `reference.npz`; equal models give equal bytes."""
        write_arrays(folder / "reference.npz", {"reference": self.transport.reference, **self.scaler.to_arrays()})
        write_json(folder / "infogap.json", self._document())

    def _document(self) -> dict[str, Any]:
        metric = self.transport.metric
        return {
            **{name: getattr(self, name) for name in _NUMBERS},
            "dataset_size": self.transport.dataset_size,
            "form": self.form,
            "estimator": self.estimator,
            "order": self.transport.order,
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
            metric = Metric(*bounds)
            transport = Transport(arrays["reference"], document["dataset_size"], metric, document["order"])
            numbers = {name: float(document[name]) for name in _NUMBERS}
            words = {name: document[name] for name in ("form", "estimator")}
            return cls(scaler=Scaler.from_arrays(arrays), transport=transport, **numbers, **words)
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
    form: Form = "calibrated",
    metric: str = "saturating",
    order: Order = 1,
    estimator: str = "kde",
    literal_weight: float = 1.0,
    kl_samples: int = 1000,
    reference_samples: int | None = None,
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
        form: `calibrated`, or `literal` for Eq. 3 as it is written, times `literal_weight`.
        metric: a name in `METRICS`.
        order: beta of W_beta.
        estimator: a name in `ESTIMATORS`, of KL.
        kl_samples: rows drawn for KL. Its bandwidth depends on the number, so keep it equal over iterations.
        reference_samples: rows of D_sim^k that stand for it in the reward; by default those of `REFERENCE_SAMPLES`.
    """
    where = "InfoGap stage"
    within(kappa, 0.0, np.inf, f"{where}: kappa")
    within(task_reward_std, 0.0, np.inf, f"{where}: task_reward_std")
    within(bound, np.finfo(float).tiny, np.inf, f"{where}: bound")
    within(literal_weight, 0.0, np.inf, f"{where}: weight")
    _one_of(form, FORMS, "form")
    if simulated_first is None:
        simulated_first = simulated_before
    real, before, after, first = _paired([real, simulated_before, simulated_after, simulated_first], where)
    noise = noise_vector(noise, real.shape[1], where)
    scaler = Scaler.fit(real, before, after, noise=noise)

    rows = _sample_rows(len(real), within(kl_samples, 50, np.inf, f"{where}: kl_samples"), rng)
    estimate = kl_by(estimator, scaler=scaler, skew=skew, noise=noise)
    # Noise is drawn for all rows, so that the floor's draws do not depend on how many are compared.
    floor = noise_floor(lambda p, q: estimate(p[rows], q[rows]), after, noise, rng)

    make_metric = METRICS[_one_of(metric, tuple(METRICS), "metric")]
    samples = reference_samples or REFERENCE_SAMPLES.get(order, 1000)
    within(samples, 50, np.inf, f"{where}: reference_samples")
    standardised = scaler(after)
    transport = Transport.fit(standardised, rng=rng, metric=make_metric, samples=samples, order=order)
    novelty = transport.novelty(standardised).astype(np.float64)
    return InfoGapReward(
        scaler=scaler,
        transport=transport,
        kl=estimate(real[rows], before[rows]),
        kl_floor=floor,
        kl_first=estimate(real[rows], first[rows]),
        kl_conditional=kl_conditional_gaussian(real, before, scaler=scaler),
        kappa=float(kappa),
        task_reward_std=float(task_reward_std),
        novelty_mean=float(novelty.mean()),
        # Were all rows equally novel, there would be nothing to grade: do not divide by rounding.
        novelty_std=max(float(novelty.std()), 1e-3 * float(novelty.mean())),
        bound=float(bound),
        literal_weight=float(literal_weight),
        form=form,
        estimator=estimator,
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


def _one_of(name: str, known: tuple[str, ...], setting: str) -> str:
    if name not in known:
        raise ConfigError(
            got=f"{setting} '{name}'",
            expected=f"one of {', '.join(known)}",
            where=f"InfoGap stage: {setting}",
            next_step=f"Correct infogap.{setting} in params.yaml.",
        )
    return name
