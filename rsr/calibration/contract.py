"""What a calibrator takes and gives. Every method returns the same frozen `Calibration`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from rsr.progress import Advance
from rsr.scenarios import Scenario
from rsr.sessions import Session

Verdict = Literal["identified", "weak", "not identifiable", "at bound"]
Status = Literal["converged", "budget spent", "no improvement"]
"""`converged`: steps became smaller than the tolerance. `budget spent`: give more evaluations.
`no improvement`: the prior explained the held-out episodes better and was kept."""


@dataclass(frozen=True)
class Prior:
    """What was known before: a Gaussian in unconstrained coordinates.

    Args:
        mean, std: [P].
    """

    mean: np.ndarray
    std: np.ndarray


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
    """How well the simulator predicts episodes that the fit never saw: RMS of the scenario's gap channel.

    Args:
        gap_before, gap_after: with the prior's mean and with the estimate, on the held-out episodes.
        channels: channel -> (before, after), RMS on the held-out episodes, each in its own unit.
        fitted, held_out: episode indices, counted over all sessions one after the other.
    """

    gap_before: float
    gap_after: float
    gap_unit: str
    channels: Mapping[str, tuple[float, float]]
    fitted: tuple[int, ...]
    held_out: tuple[int, ...]


@dataclass(frozen=True)
class Replays:
    """A few held-out episodes in the gap channel: as recorded, and as replayed with the prior's mean and the estimate.

    Args:
        episode: [n], episode indices as in `Evidence.held_out`.
        real, before, after: [n, T + 1, width]; shorter episodes stay at their last row.
    """

    episode: np.ndarray
    real: np.ndarray
    before: np.ndarray
    after: np.ndarray


@dataclass(frozen=True)
class Checks:
    """What else was looked at, beside the held-out episodes. What was not looked at is empty.

    Args:
        sensitivity: how derivatives were computed, of methods that use them.
        gradients: MJX's derivatives against differences in C, of the method `mjx`.
        parity: whether MJX steps as C does.
        bootstrap: parameter -> standard deviation of the refits to resampled episodes, over that of the covariance
            before it was widened to them.
        horizon: parameter -> how far the estimate moves if windows are half as long, in its standard deviations.
    """

    sensitivity: str = ""
    gradients: str = ""
    parity: str = ""
    bootstrap: Mapping[str, float] = field(default_factory=dict)
    horizon: Mapping[str, float] = field(default_factory=dict)


Structure = Mapping[str, str | int | float]
"""Choices of the MJCF that a calibration made, such as {"cone": "elliptic"}; see `rsr.scenarios.structure`."""


@dataclass(frozen=True)
class Calibration:
    """Parameters with intervals, verdicts, status and held-out evidence.

    Args:
        covariance: [P, P] of the estimate, in unconstrained coordinates.
        trace: one row per optimiser generation: (simulated steps so far, best loss).
        structure: choices that its parameters belong to; empty where the MJCF's own were kept unasked.
        race: candidate structures, as words -> score on episodes left out of their fits, lower is better; the score of
            the last round in which a candidate took part.
    """

    scenario: str
    method: str
    estimates: Mapping[str, Estimate]
    covariance: np.ndarray
    status: Status
    evidence: Evidence
    trace: np.ndarray = field(default_factory=lambda: np.zeros((0, 2)))
    warnings: tuple[str, ...] = ()
    replays: Replays | None = None
    checks: Checks = field(default_factory=Checks)
    structure: Structure = field(default_factory=dict)
    race: Mapping[str, float] = field(default_factory=dict)

    def vector(self) -> np.ndarray:
        """[P] in physical units, order of the scenario's parameter space."""
        return np.array([estimate.value for estimate in self.estimates.values()])


class Calibrator(Protocol):
    """Deterministic: equal arguments give an equal calibration. The estimate and its interval respect the bounds."""

    def fit(
        self, scenario: Scenario, sessions: tuple[Session, ...], prior: Prior, seed: int, advance: Advance
    ) -> Calibration: ...
