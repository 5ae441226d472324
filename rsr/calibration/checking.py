"""What every fit is checked by, once its estimate is known: clocks, shorter windows, resamples, derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rsr.calibration import bootstrap, lateness
from rsr.calibration.contract import Checks
from rsr.calibration.gradient_health import check_mjx
from rsr.calibration.identifiability import Posterior, widened
from rsr.calibration.loss import Loss
from rsr.calibration.refine import Slope
from rsr.progress import Advance
from rsr.randomness import derive_seed
from rsr.sessions import Episode


@dataclass(frozen=True)
class Checked:
    """A posterior after its checks, what they found, and what they warn of."""

    posterior: Posterior
    checks: Checks
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Subject:
    """What is checked: an estimate [P] and its surroundings.

    Args:
        episodes: those that the windows were cut from.
        sensitivity: how the search computed derivatives, if it did.
    """

    loss: Loss
    episodes: Sequence[Episode]
    point: np.ndarray
    slope: Slope
    posterior: Posterior
    sensitivity: str


def check(subject: Subject, resamples: int, seed: int, advance: Advance) -> Checked:
    """Run the checks; refits to `resamples` sets of episodes, if any, may widen the posterior."""
    loss, point = subject.loss, subject.point
    names, units = loss.scenario.space.names, loss.prior.std
    std = np.sqrt(np.diag(subject.posterior.covariance))
    moved = bootstrap.horizon_shift(loss, point, derive_seed(seed, "horizon")) * units / std
    horizon = dict(zip(names, moved.tolist(), strict=True))
    posterior, ratios = subject.posterior, {}
    if resamples > 1:
        found = bootstrap.refits(loss, point, resamples, derive_seed(seed, "bootstrap"), advance)
        spread = np.minimum(found.std(axis=0, ddof=1), 1.0) * units
        posterior, ratios = widened(posterior, spread), dict(zip(names, (spread / std).tolist(), strict=True))
    checks = Checks(sensitivity=subject.sensitivity, bootstrap=ratios, horizon=horizon)
    if subject.sensitivity == "mjx":
        health = check_mjx(loss, point, derive_seed(seed, "parity"))
        checks = replace(checks, gradients=health.gradients, parity=health.parity)
    late = lateness.warnings(loss, subject.episodes, point, subject.slope)
    return Checked(posterior, checks, (*late, *bootstrap.warnings(ratios, horizon)))
