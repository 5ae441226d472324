"""Whether an estimate is taken: does it predict episodes that its fit did not see better than the prior's mean?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rsr.calibration.interface import Evidence
from rsr.calibration.problem.held_out import HeldOut, Replayed

_WORSE = 1.1
"""Replays of a few episodes that are worse by less than this are luck, and no reason to warn."""
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Of the way from the prior's mean to a fit to few episodes, of which cross-validation chooses one."""


def best_share(losses: np.ndarray) -> tuple[float, float]:
    """Choose of `SHARES` by losses [E, S] on episodes, each with a fit that did not see it.

    The fit weighs the prior already, so it is departed from only where that predicts better by more than one standard
    error: the largest share is taken whose loss is within that of the least.

    Returns:
        The share, and its loss over that with the prior's mean; with the whole fit where no share is taken.
    """
    totals = losses.sum(axis=0)
    more = losses - losses[:, [totals.argmin()]]
    error = np.sqrt(len(more)) * more.std(axis=0, ddof=1)
    taken = int(np.flatnonzero(more.sum(axis=0) <= error).max())
    return SHARES[taken], float(totals[taken or -1] / max(float(totals[0]), 1e-300))


def gap_warning(evidence: Evidence) -> str:
    """Say that a fit which cross-validation takes replays the held-out episodes worse; empty where it does not."""
    before, after = evidence.gap_before, evidence.gap_after
    if evidence.cross_validated is None or after <= _WORSE * before:
        return ""
    worse = [name for name, (then, now) in evidence.channels.items() if now > _WORSE * then]
    return (
        f"held-out episodes are replayed worse than before, {before:.4g} to {after:.4g} {evidence.gap_unit} (of all "
        f"channels worse: {', '.join(worse)}), though short windows of fitted episodes are predicted better. Few "
        "episodes: this may be luck, or the fit makes up for what the model lacks. Record more before you use the "
        "values."
    )


@dataclass(frozen=True)
class Acceptance:
    """Replays of held-out episodes with the prior's mean and with the estimate.

    Args:
        baseline: whose values the estimate is compared with.
        share: of the way from the prior's mean to the fit, where the estimate lies; one of `SHARES`.
        cross_validated: see `Evidence`; None where enough episodes are held out.
    """

    held_out: HeldOut
    before: Replayed
    after: Replayed
    baseline: str = "the prior"
    share: float = 1.0
    cross_validated: float | None = None

    @property
    def taken(self) -> float:
        """Share of the way from the prior's mean to the fit where the estimate lies: 0 if the fit is rejected."""
        if self.cross_validated is not None:
            return self.share
        evidence = self.held_out.evidence(self.before, self.after)
        return 1.0 if evidence.gap_after < evidence.gap_before else 0.0

    @property
    def remark(self) -> str:
        """Say that the estimate is only a part of the way to the fit; empty where it is the fit."""
        if self.taken in (0.0, 1.0):
            return ""
        return (
            f"few episodes: {100 * self.share:.0f} % of the way from the prior's values to the fit predicts best, "
            "cross-validated over those that are fitted, so that is the estimate, and intervals reach to the fit. "
            "Record more episodes."
        )

    def reason(self, rejected: Mapping[str, float]) -> str:
        """Explain a rejection, and show what was rejected."""
        evidence = self.held_out.evidence(self.before, self.after)
        judged = (
            f"{evidence.gap_after:.4g} {evidence.gap_unit}, and {evidence.gap_before:.4g} with those of {self.baseline}"
            if self.cross_validated is None
            else f"{self.cross_validated:.3f} times the loss of the prior's values, cross-validated over the fitted "
            "episodes; what lies between is worse than these too"
        )
        values = ", ".join(f"{name} {value:.4g}" for name, value in rejected.items())
        return (
            f"no improvement: the fit predicts unseen episodes worse ({judged}), so the values of {self.baseline} were "
            f"kept. It had come to {values}. Record more episodes, or see the model's error for what it cannot express."
        )
