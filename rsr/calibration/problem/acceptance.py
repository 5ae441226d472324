"""Whether an estimate is taken: does it predict episodes that its fit did not see better than the prior's mean?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rsr.calibration.problem.held_out import HeldOut, Replayed

FEW = 10
"""Held-out episodes below which two folds are cross-validated in the loss: a whole replay of three tosses is mostly
their luck, for impacts amplify every error."""


@dataclass(frozen=True)
class Acceptance:
    """Replays of held-out episodes with the prior's mean and with the estimate.

    Args:
        cross_validated: see `Evidence`; None where enough episodes are held out.
    """

    held_out: HeldOut
    before: Replayed
    after: Replayed
    cross_validated: float | None = None

    @property
    def better(self) -> bool:
        if self.cross_validated is not None:
            return self.cross_validated < 1.0
        evidence = self.held_out.evidence(self.before, self.after)
        return evidence.gap_after < evidence.gap_before

    def reason(self, rejected: Mapping[str, float]) -> str:
        """Explain a rejection, and show what was rejected."""
        evidence = self.held_out.evidence(self.before, self.after)
        judged = (
            f"{evidence.gap_after:.4g} {evidence.gap_unit} instead of {evidence.gap_before:.4g} with the prior's values"
            if self.cross_validated is None
            else f"{self.cross_validated:.3f} times the loss of the prior's values, cross-validated over all episodes"
        )
        values = ", ".join(f"{name} {value:.4g}" for name, value in rejected.items())
        return (
            f"no improvement: the fit predicts unseen episodes worse ({judged}), so the prior's values were kept. It "
            f"had come to {values}. Record more episodes, or see the model's error for what it cannot express."
        )
