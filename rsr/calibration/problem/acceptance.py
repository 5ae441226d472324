"""Whether an estimate is taken: does it predict episodes that its fit did not see better than the prior's mean?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rsr.calibration.problem.held_out import HeldOut, Replayed, replay_errors
from rsr.scenarios import rms

FEW = 10
"""Held-out episodes below which two folds are cross-validated in the loss: a whole replay of three tosses is mostly
their luck, for impacts amplify every error."""
CLEARLY_WORSE = 1.05
"""Two good estimates predict episodes equally well but for chance."""


@dataclass(frozen=True)
class Acceptance:
    """Replays of held-out episodes with the prior's mean and with the estimate.

    Args:
        cross_validated: see `Evidence`.
        adds_up: the estimate is one from several sessions, and the other what it was before the last of them: it is
            taken unless it is clearly worse.
    """

    held_out: HeldOut
    before: Replayed
    after: Replayed
    cross_validated: float | None = None
    adds_up: bool = False

    @property
    def better(self) -> bool:
        limit = CLEARLY_WORSE if self.adds_up else 1.0
        if self.cross_validated is not None:
            return self.cross_validated < limit
        evidence = self.held_out.evidence(self.before, self.after)
        return evidence.gap_after < limit * evidence.gap_before

    @property
    def log_ratios(self) -> np.ndarray:
        """Logarithms [E, channels] of the error after over that before: no single episode rules their mean."""
        before, after = (np.log(self._errors(replays)) for replays in (self.before, self.after))
        return np.nan_to_num(after - before, nan=_WORSE, posinf=_WORSE)

    def _errors(self, replays: Replayed) -> np.ndarray:
        """RMS [E, channels] of each episode, at least the noise: below it there is nothing to gain."""
        scenario, pairs = self.held_out.scenario, zip(replays.episodes, replays.states, strict=True)
        found = [replay_errors(scenario, *pair) for pair in pairs]
        observed = scenario.observed
        return np.array([[np.fmax(rms(each[o.channel.name]), o.noise) for o in observed] for each in found])

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


_WORSE = 5.0
"""Charged for a replay that became unstable."""
