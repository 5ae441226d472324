"""What a model of strikes predicts, and with what uncertainty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.clash.bases import Base
from rsr.clash.frame import from_contact, to_contact
from rsr.clash.residual import STRENGTHS, Residual, fit_residual, seen
from rsr.scenarios.strike import RecordedStrikes, Shape, Strikes

Z90 = 1.6449


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


def correct(shape: Shape, base: Base, recorded: RecordedStrikes, strengths: tuple[float, ...] = STRENGTHS) -> Corrected:
    """Fit the residual of a base model to recorded strikes."""
    strikes = recorded.strikes
    predicted, wanted = (to_contact(shape, strikes, motion) for motion in (base(strikes), recorded.after))
    return Corrected(shape, base, fit_residual(shape, strikes, predicted, wanted, strengths))
