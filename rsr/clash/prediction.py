"""What a model of strikes predicts, and with what uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rsr.clash.bases import Base
from rsr.clash.frame import from_contact, to_contact
from rsr.clash.residual import STRENGTHS, Z90, Residual, fit_residual, seen
from rsr.scenarios.strike import RecordedStrikes, Shape, Strikes

_TEMPER = 0.25
"""Two wrong models are better averaged than chosen between: evidence counts a quarter."""


@dataclass(frozen=True)
class Corrected:
    """A base model and what it leaves over, added up in the contact frame."""

    shape: Shape
    base: Base
    residual: Residual

    def __call__(self, strikes: Strikes) -> np.ndarray:
        """Velocity after, [N, 3]."""
        base = to_contact(self.shape, strikes, self.base(strikes))
        return from_contact(self.shape, strikes, base + self.residual.mean(seen(self.shape, strikes, base)))

    def intervals(self, strikes: Strikes) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of a measurement, [N, 3], contact frame, shares of the striking speed."""
        base = to_contact(self.shape, strikes, self.base(strikes))
        mean, std = self.residual.predict(seen(self.shape, strikes, base))
        return base + mean, std

    def inside(self, recorded: RecordedStrikes, z: float = Z90) -> np.ndarray:
        """Which measured components [N, 3] lie in their intervals, 90 % wide by default."""
        mean, std = self.intervals(recorded.strikes)
        return np.abs(to_contact(self.shape, recorded.strikes, recorded.after) - mean) <= z * std


@dataclass(frozen=True)
class Blended:
    """Corrected models of several bases, averaged by how well each predicts strikes that were left out.

    Args:
        weights: [M], of the members; they add up to one.
    """

    members: tuple[Corrected, ...]
    weights: np.ndarray

    def __call__(self, strikes: Strikes) -> np.ndarray:
        """Velocity after, [N, 3]."""
        return np.tensordot(self.weights, [member(strikes) for member in self.members], axes=1)

    def intervals(self, strikes: Strikes) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of a measurement, [N, 3], contact frame, shares of the striking speed."""
        means, stds = map(np.array, zip(*(member.intervals(strikes) for member in self.members), strict=True))
        mean = np.tensordot(self.weights, means, axes=1)
        return mean, np.sqrt(np.tensordot(self.weights, stds**2 + (means - mean) ** 2, axes=1))

    def inside(self, recorded: RecordedStrikes, z: float = Z90) -> np.ndarray:
        """Which measured components [N, 3] lie in their intervals, 90 % wide by default."""
        mean, std = self.intervals(recorded.strikes)
        return np.abs(to_contact(self.members[0].shape, recorded.strikes, recorded.after) - mean) <= z * std


def blend(shape: Shape, bases: Sequence[Base], recorded: RecordedStrikes) -> Blended:
    """Correct each base by recorded strikes, and average."""
    members = tuple(correct(shape, base, recorded) for base in bases)
    evidence = np.array([member.residual.evidence for member in members])
    weights = np.exp(_TEMPER * (evidence - evidence.max()))
    return Blended(members, weights / weights.sum())


def correct(shape: Shape, base: Base, recorded: RecordedStrikes, strengths: tuple[float, ...] = STRENGTHS) -> Corrected:
    """Fit the residual of a base model to recorded strikes."""
    strikes = recorded.strikes
    predicted, wanted = (to_contact(shape, strikes, motion) for motion in (base(strikes), recorded.after))
    return Corrected(shape, base, fit_residual(shape, strikes, predicted, wanted, strengths))
