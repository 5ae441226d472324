"""Eq. 3 as a reward: calibrated, centred, bounded, and gone when the gap is; or taken literally, if that is wanted."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rsr.common import CalibrationError, read_arrays, read_json, write_arrays, write_json
from rsr.infogap.features import Scaler
from rsr.infogap.transport import GroundMetric, Transport

Form = Literal["calibrated", "literal"]
BonusRegion = Literal["off_target", "everywhere"]
_NUMBERS = (
    "kl", "kl_floor", "kl_first", "kl_conditional", "kappa", "task_reward_std", "novelty_mean", "novelty_std", "bound",
    "literal_weight",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class InfoGapReward:
    """Bonus of one iteration, added to the task reward. D_sim^k is fixed, so it is a static function of (s, a, s').

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
        bonus_region: `off_target` leaves out transitions that end where the task is done, `everywhere` none. Whoever
            pays looks at
            it: what a task is, this room does not know.
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
    bonus_region: BonusRegion = "off_target"

    @property
    def open_share(self) -> float:
        """Share of the first gap that is still open, 0 to 1."""
        return open_share(self.kl, self.kl_floor, self.kl_first)

    @property
    def weight(self) -> float:
        """Factor on the score, or on the literal W: in units of the task reward."""
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
        """Compute the bonus on the task reward of transitions [b, d]: [b] float32.

        Within +-weight * bound in the calibrated form; the literal one is bounded only if its metric is.
        """
        if self.weight == 0:
            return np.zeros(len(features), np.float32)
        if self.form == "literal":
            return self.weight * self.transport.w(self.scaler(features))
        return self.weight * self.score(features)

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
            "bonus_region": self.bonus_region,
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
            metric = GroundMetric(*bounds)
            transport = Transport(arrays["reference"], document["dataset_size"], metric, document["order"])
            numbers = {name: float(document[name]) for name in _NUMBERS}
            words = {name: document[name] for name in ("form", "estimator", "bonus_region")}
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
