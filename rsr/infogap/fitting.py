"""The InfoGap stage of one iteration: three datasets in, a reward out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np

from rsr.common import check_choice
from rsr.infogap._arrays import matrix, noise_vector, same_shape, within
from rsr.infogap.densities import kl_conditional_gaussian
from rsr.infogap.estimators import kl_by, noise_floor
from rsr.infogap.features import Scaler
from rsr.infogap.reward import BonusRegion, Form, InfoGapReward
from rsr.infogap.transport import METRICS, Order, Transport

FORMS: tuple[str, ...] = get_args(Form)
BONUS_REGIONS: tuple[str, ...] = get_args(BonusRegion)
REFERENCE_SAMPLES = {1: 1000, 2: 250}
"""Rows of D_sim^k that stand for it, by order: order 2 takes their square of steps for every transition."""
_WHERE = "InfoGap stage"


@dataclass(frozen=True)
class RewardSettings:
    """Settings of the InfoGap reward.

    Args:
        form: `calibrated`, or `literal` for Eq. 3 as it is written, times `literal_weight`.
        metric: a name in `METRICS`.
        order: beta of W_beta.
        estimator: a name in `ESTIMATORS`, of KL.
        kappa, bound, literal_weight: see `InfoGapReward`.
        skew: share of the other density that caps KL.
        kl_samples: rows drawn for KL. Its bandwidth depends on the number, so keep it equal over iterations.
        bonus_region: see `InfoGapReward`; Eq. 3 as it is written is paid everywhere in any case.
        reference_samples: rows of D_sim^k that stand for it in the reward; by default those of `REFERENCE_SAMPLES`.
    """

    form: Form = "calibrated"
    metric: str = "saturating"
    order: Order = 1
    estimator: str = "kde"
    kappa: float = 0.7
    literal_weight: float = 1.0
    skew: float = 0.05
    bound: float = 5.0
    kl_samples: int = 1000
    bonus_region: BonusRegion = "off_target"
    reference_samples: int | None = None

    def __post_init__(self) -> None:
        _one_of(self.form, FORMS, "form")
        _one_of(self.bonus_region, BONUS_REGIONS, "bonus_region")
        _one_of(self.metric, tuple(METRICS), "metric")
        within(self.kappa, 0.0, np.inf, f"{_WHERE}: kappa")
        within(self.bound, np.finfo(float).tiny, np.inf, f"{_WHERE}: bound")
        within(self.literal_weight, 0.0, np.inf, f"{_WHERE}: weight")
        within(self.kl_samples, 50, np.inf, f"{_WHERE}: kl_samples")
        if self.reference_samples is not None:
            within(self.reference_samples, 50, np.inf, f"{_WHERE}: reference_samples")


def fit_infogap(
    real: np.ndarray,
    simulated_before: np.ndarray,
    simulated_after: np.ndarray,
    noise: np.ndarray | float,
    task_reward_std: float,
    *,
    rng: np.random.Generator,
    simulated_first: np.ndarray | None = None,
    counted: np.ndarray | None = None,
    settings: RewardSettings | None = None,
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
        counted: [d] of bool, columns that the ground metric of W compares; all by default. KL compares all.
    """
    settings = settings or RewardSettings()
    within(task_reward_std, 0.0, np.inf, f"{_WHERE}: task_reward_std")
    first = simulated_before if simulated_first is None else simulated_first
    data = _Datasets(*_paired([real, simulated_before, simulated_after, first]))
    noise = noise_vector(noise, data.real.shape[1], _WHERE)
    scaler = Scaler.fit(data.real, data.before, data.after, noise=noise)
    divergences = _divergences(data, scaler, noise, rng, settings)
    compared = scaler if counted is None else scaler.only(counted)
    transport = _transport(compared(data.after), rng, settings)
    novelty = transport.novelty(compared(data.after)).astype(np.float64)
    return InfoGapReward(
        scaler=compared,
        transport=transport,
        **divergences,
        kappa=float(settings.kappa),
        task_reward_std=float(task_reward_std),
        novelty_mean=float(novelty.mean()),
        # Were all rows equally novel, there would be nothing to grade: do not divide by rounding.
        novelty_std=max(float(novelty.std()), 1e-3 * float(novelty.mean())),
        bound=float(settings.bound),
        literal_weight=float(settings.literal_weight),
        form=settings.form,
        estimator=settings.estimator,
        bonus_region="everywhere" if settings.form == "literal" else settings.bonus_region,
    )


@dataclass(frozen=True)
class _Datasets:
    real: np.ndarray
    before: np.ndarray
    after: np.ndarray
    first: np.ndarray


def _divergences(
    data: _Datasets, scaler: Scaler, noise: np.ndarray, rng: np.random.Generator, settings: RewardSettings
) -> dict[str, float]:
    """The KL of this iteration's simulator and of the first, and what noise alone leaves of it."""
    rows = _sample_rows(len(data.real), settings.kl_samples, rng)
    estimate = kl_by(settings.estimator, scaler=scaler, skew=settings.skew, noise=noise)
    # Noise is drawn for all rows, so that the floor's draws do not depend on how many are compared.
    floor = noise_floor(lambda p, q: estimate(p[rows], q[rows]), data.after, noise, rng)
    return {
        "kl": estimate(data.real[rows], data.before[rows]),
        "kl_floor": floor,
        "kl_first": estimate(data.real[rows], data.first[rows]),
        "kl_conditional": kl_conditional_gaussian(data.real, data.before, scaler=scaler),
    }


def _transport(standardised: np.ndarray, rng: np.random.Generator, settings: RewardSettings) -> Transport:
    samples = settings.reference_samples or REFERENCE_SAMPLES.get(settings.order, 1000)
    metric = METRICS[settings.metric]
    return Transport.fit(standardised, rng=rng, metric=metric, samples=samples, order=settings.order)


def _paired(datasets: list[np.ndarray]) -> list[np.ndarray]:
    """Check that datasets are equal in shape and large enough for a density: 50 rows and 5 a column."""
    names = ("real", "simulated_before", "simulated_after", "simulated_first")
    at_least = max(50, 5 * matrix(datasets[0], f"{_WHERE}: real").shape[1])
    checked = [matrix(data, f"{_WHERE}: {name}", at_least=at_least) for data, name in zip(datasets, names, strict=True)]
    for data, name in zip(checked[1:], names[1:], strict=True):
        same_shape(checked[0], data, f"{_WHERE}: real and {name}")
    return checked


def _sample_rows(size: int, samples: int, rng: np.random.Generator) -> np.ndarray:
    return np.arange(size) if size <= samples else np.sort(rng.choice(size, samples, replace=False))


def _one_of(name: str, known: tuple[str, ...], setting: str) -> None:
    check_choice(
        name,
        known,
        got=f"{setting} '{name}'",
        where=f"{_WHERE}: {setting}",
        next_step=f"Correct infogap.{setting} in params.yaml.",
    )
