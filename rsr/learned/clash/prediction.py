"""Models of impact: a base, the residual upon it, and averages of such models, with their uncertainty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rsr.learned.clash.frame import from_contact, to_contact
from rsr.learned.clash.residual import STRENGTHS, Z90, Residual, fit_residual, observe
from rsr.learned.clash.surrogate import Surrogate
from rsr.scenarios.built_in.strike import RecordedStrikes, Shape, Strikes

BaseModel = Callable[[Strikes], np.ndarray]
"""From strikes to velocities after, [N, 3]: m/s, m/s, rad/s, in the frame of the block at the impact."""
Trust = Callable[[Strikes], np.ndarray]
"""From strikes to [N], True where a base model may be asked."""
_TEMPER = 0.25
"""Two wrong models are better averaged than chosen between: evidence counts a quarter."""


def surrogate_base(surrogate: Surrogate, params: np.ndarray) -> BaseModel:
    """Make a base model of a surrogate with parameters [4]."""
    return surrogate.at(params)


def everywhere(strikes: Strikes) -> np.ndarray:
    """Trust a model whatever it is asked, as the law is: `Trust`."""
    return np.ones(len(strikes), bool)


@dataclass(frozen=True)
class Corrected:
    """A base model and what it leaves over, added up in the contact frame.

    Args:
        trusted: where the base may be asked; a surrogate knows the ranges of its training alone.
    """

    shape: Shape
    base: BaseModel
    residual: Residual
    trusted: Trust = everywhere

    def __call__(self, strikes: Strikes) -> np.ndarray:
        """Velocity after, [N, 3]."""
        base = to_contact(self.shape, strikes, self.base(strikes))
        return from_contact(self.shape, strikes, base + self.residual.mean(observe(self.shape, strikes, base)))

    def intervals(self, strikes: Strikes) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of a measurement, [N, 3], contact frame, shares of the striking speed."""
        base = to_contact(self.shape, strikes, self.base(strikes))
        mean, std = self.residual.predict(observe(self.shape, strikes, base))
        return base + mean, std

    def inside(self, recorded: RecordedStrikes, z: float = Z90) -> np.ndarray:
        """Find the measured components [N, 3] that lie in their intervals, 90 % wide by default."""
        mean, std = self.intervals(recorded.strikes)
        return np.abs(to_contact(self.shape, recorded.strikes, recorded.after) - mean) <= z * std


@dataclass(frozen=True)
class Blended:
    """Corrected models of several bases, averaged by how well each predicts strikes that were left out.

    Args:
        weights: [M], of the members; they add up to one. A member has none of a strike that it is not trusted with.
    """

    members: tuple[Corrected, ...]
    weights: np.ndarray

    def __call__(self, strikes: Strikes) -> np.ndarray:
        """Velocity after, [N, 3]."""
        return np.einsum("mn,mnk->nk", self._shares(strikes), [member(strikes) for member in self.members])

    def intervals(self, strikes: Strikes) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of a measurement, [N, 3], contact frame, shares of the striking speed."""
        means, stds = map(np.array, zip(*(member.intervals(strikes) for member in self.members), strict=True))
        shares = self._shares(strikes)
        return mixed(shares, means, stds)

    def inside(self, recorded: RecordedStrikes, z: float = Z90) -> np.ndarray:
        """Find the measured components [N, 3] that lie in their intervals, 90 % wide by default."""
        mean, std = self.intervals(recorded.strikes)
        return np.abs(to_contact(self.members[0].shape, recorded.strikes, recorded.after) - mean) <= z * std

    def _shares(self, strikes: Strikes) -> np.ndarray:
        """Weights [M, N] of the members for each strike."""
        shares = self.weights[:, None] * np.array([member.trusted(strikes) for member in self.members])
        total = shares.sum(axis=0)
        return np.where(total > 0, shares / np.where(total > 0, total, 1.0), self.weights[:, None])


def blend(
    shape: Shape, bases: Sequence[BaseModel], recorded: RecordedStrikes, trusts: Sequence[Trust] | None = None
) -> Blended:
    """Correct each base by recorded strikes, and average.

    Args:
        trusts: where each base may be asked; everywhere by default.
    """
    trusted = [everywhere] * len(bases) if trusts is None else trusts
    corrected = (correct(shape, base, recorded) for base in bases)
    members = tuple(replace(one, trusted=trust) for one, trust in zip(corrected, trusted, strict=True))
    return Blended(members, evidence_weights(np.array([member.residual.evidence for member in members])))


def evidence_weights(evidence: np.ndarray) -> np.ndarray:
    """Weights [M] of models with these log-evidences."""
    # Subtracted before exponentiating: log-evidences of fifty strikes overflow otherwise.
    weights = np.exp(_TEMPER * (evidence - evidence.max()))
    return weights / weights.sum()


def mixed(shares: np.ndarray, means: np.ndarray, stds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation [N, 3] of a mixture with weights [M, N]."""
    mean = np.einsum("mn,mnk->nk", shares, means)
    # The members' variances, and their disagreement about the mean.
    return mean, np.sqrt(np.einsum("mn,mnk->nk", shares, stds**2 + (means - mean) ** 2))


def correct(
    shape: Shape, base: BaseModel, recorded: RecordedStrikes, strengths: tuple[float, ...] = STRENGTHS
) -> Corrected:
    """Fit the residual of a base model to recorded strikes."""
    strikes = recorded.strikes
    predicted, wanted = (to_contact(shape, strikes, motion) for motion in (base(strikes), recorded.after))
    return Corrected(shape, base, fit_residual(shape, strikes, predicted, wanted, strengths))
