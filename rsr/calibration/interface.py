"""The contract of calibrators. Every method returns the same frozen `Calibration`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from rsr.common import Advance
from rsr.scenarios import Scenario
from rsr.sessions import Session

Verdict = Literal["identified", "weak", "not identifiable", "at bound"]
Status = Literal["converged", "budget spent", "no improvement"]
"""`converged`: steps became smaller than the tolerance. `budget spent`: give more evaluations.
`no improvement`: the prior, or what earlier sessions led to, explained the held-out episodes better and was kept; see
`Calibration.rejected`."""


Structure = Mapping[str, str | int | float]
"""Choices of the MJCF that a calibration made, such as {"cone": "elliptic"}; see `rsr.scenarios.structure`."""


@dataclass(frozen=True)
class Knowledge:
    """What earlier sessions say of the parameters, in unconstrained coordinates.

    Args:
        mean: [P].
        covariance: [P, P], of which `shared` [P, P] is model error that is the same in all sessions.
        data_std: [P], see `Calibration.data_std`.
        degrees: of freedom of the covariance.
        structure: choices that the parameters belong to.
    """

    mean: np.ndarray
    covariance: np.ndarray
    shared: np.ndarray
    data_std: np.ndarray
    degrees: int
    structure: Structure = field(default_factory=dict)


@dataclass(frozen=True)
class Prior:
    """A Gaussian prior in unconstrained coordinates.

    Args:
        mean, std: [P].
        earlier: what other sessions say, which a fit is compared with and added to.
    """

    mean: np.ndarray
    std: np.ndarray
    earlier: Knowledge | None = None


@dataclass(frozen=True)
class Estimate:
    """One parameter's result, physical units. [lower, upper] is the 95 % interval."""

    value: float
    lower: float
    upper: float
    unit: str
    verdict: Verdict


@dataclass(frozen=True)
class Evidence:
    """Prediction error on episodes that a fit never saw: RMS of the scenario's gap channel.

    Args:
        gap_before, gap_after: with the prior's mean, or what earlier sessions led to, and with the estimate, on the
            held-out episodes.
        channels: channel -> (before, after), RMS on the held-out episodes, each in its own unit.
        fitted, held_out: episode indices, counted over all sessions one after the other. The same ones where episodes
            are few: each was held out in turn, and replayed with a fit to others; the estimate is fitted to all.
        cross_validated: where few are held out, loss over that with the prior's mean, on windows of all fitted
            episodes, each predicted by a fit that did not see it. It then decides, not the gap.
    """

    gap_before: float
    gap_after: float
    gap_unit: str
    channels: Mapping[str, tuple[float, float]]
    fitted: tuple[int, ...]
    held_out: tuple[int, ...]
    cross_validated: float | None = None

    @property
    def crossed(self) -> bool:
        """Whether all were fitted, and held out in turn."""
        return bool(self.fitted) and self.held_out == self.fitted


@dataclass(frozen=True)
class Misfit:
    """How wrong the fitted model still is in one channel, at the end of the windows that it was fitted on.

    Args:
        error: standard deviation, in the channel's unit (rad for orientations); sensor noise is taken off.
        after_s: that long after a window's start.
        noises: the same in multiples of the channel's noise.
        motion_share: the same over how far the channel moves in that time.
        after_impact: share of all squared errors in rows that follow a window's first impact or kink.
        divergence: how far simulations whose starts differ as much as they err have parted by then, in the channel's
            unit, where the system amplifies such differences; else 0.
    """

    error: float
    unit: str
    after_s: float
    noises: float
    motion_share: float
    after_impact: float
    divergence: float = 0.0


@dataclass(frozen=True)
class Replays:
    """A few held-out episodes in the gap channel: as recorded, and as replayed before and after.

    Args:
        episode: [n], episode indices as in `Evidence.held_out`.
        real, before, after: [n, T + 1, width]; shorter episodes stay at their last row.
        restarts: rows at which the simulations were put back on the recording; such a row still shows the prediction
            before. Empty in files of earlier versions, which do not say.
    """

    episode: np.ndarray
    real: np.ndarray
    before: np.ndarray
    after: np.ndarray
    restarts: np.ndarray = field(default_factory=lambda: np.zeros(0, int))


@dataclass(frozen=True)
class Checks:
    """Checks beside the held-out episodes; those that were not made are empty.

    Args:
        sensitivity: how derivatives were computed, of methods that use them.
        gradients: MJX's derivatives against differences in C, of the method `mjx`.
        parity: whether MJX steps as C does.
        bootstrap: parameter -> standard deviation of the refits to resampled episodes, over that of the covariance
            before it was widened to them.
        horizon: parameter -> how far the estimate moves if windows are half as long, in its standard deviations.
        doubts: parameter -> why it is not called *identified* though its interval is narrow enough.
        windows: how many, how long and from which rows the parameters were fitted on.
        model_error: how wrong the model still is where it fits best, in words; see `Calibration.misfits`.
    """

    sensitivity: str = ""
    gradients: str = ""
    parity: str = ""
    bootstrap: Mapping[str, float] = field(default_factory=dict)
    horizon: Mapping[str, float] = field(default_factory=dict)
    doubts: Mapping[str, str] = field(default_factory=dict)
    windows: str = ""
    model_error: str = ""


@dataclass(frozen=True)
class Calibration:
    """Parameters with intervals, verdicts, status and held-out evidence.

    Args:
        covariance: [P, P] of the estimate, in unconstrained coordinates.
        shared: [P, P], the part of it that is model error, the same in all sessions; None of methods that do not say.
        data_std: parameter -> standard deviation that recordings alone leave, of this session or of earlier ones: what
            the verdicts go by. Empty of methods that do not say.
        degrees: of freedom of the covariance: the fitted episodes less one, of the session that had most of them.
        trace: one row per optimiser generation: (simulated steps so far, best loss).
        samples: [N, P] of the posterior in unconstrained coordinates, of methods that draw them; where there are none,
            the Gaussian of the estimate and `covariance` stands for it.
        misfits: channel -> how wrong the model is that fits best.
        rejected: values of the fit that was not taken, where the status is *no improvement*.
        structure: choices that its parameters belong to; empty where the MJCF's own were kept unasked.
        structure_losses: candidate structures, as words -> loss on episodes left out of their fits; of the last round
            of the successive halving in which a candidate took part.
    """

    scenario: str
    method: str
    estimates: Mapping[str, Estimate]
    covariance: np.ndarray
    status: Status
    evidence: Evidence
    shared: np.ndarray | None = None
    data_std: Mapping[str, float] = field(default_factory=dict)
    degrees: int = 1
    trace: np.ndarray = field(default_factory=lambda: np.zeros((0, 2)))
    warnings: tuple[str, ...] = ()
    replays: Replays | None = None
    checks: Checks = field(default_factory=Checks)
    misfits: Mapping[str, Misfit] = field(default_factory=dict)
    rejected: Mapping[str, float] = field(default_factory=dict)
    structure: Structure = field(default_factory=dict)
    structure_losses: Mapping[str, float] = field(default_factory=dict)
    samples: np.ndarray | None = None

    def vector(self) -> np.ndarray:
        """[P] in physical units, order of the scenario's parameter space."""
        return np.array([estimate.value for estimate in self.estimates.values()])


class Calibrator(Protocol):
    """The contract of every method, `clash` and `gnn` included (`rsr.pipelines.methods.REGISTRY`).

    Deterministic: equal arguments give an equal calibration. The estimate and its interval respect the bounds.
    """

    def fit(
        self, scenario: Scenario, sessions: tuple[Session, ...], prior: Prior, seed: int, advance: Advance
    ) -> Calibration: ...
