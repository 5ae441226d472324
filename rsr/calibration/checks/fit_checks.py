"""Checks of every fit, once its estimate is known: shorter windows, resamples, derivatives, and those beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rsr.calibration import Checks
from rsr.calibration.checks.clock_offset import clock_offset_warnings
from rsr.calibration.checks.survival import doubts
from rsr.calibration.problem import Loss, mjx_simulator
from rsr.calibration.search.refinement import Linearisation
from rsr.calibration.uncertainty import Posterior, bootstrap, widened
from rsr.common import Advance, derive_seed
from rsr.sessions import Episode


@dataclass(frozen=True)
class FitChecks:
    """Posterior after its checks, their results, and their warnings."""

    posterior: Posterior
    checks: Checks
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class FittedProblem:
    """An estimate [P], with the loss and its linearisation around it.

    Args:
        episodes: those that the windows were cut from.
        sensitivity: how the search computed derivatives, if it did.
        unseen: those that were not fitted.
    """

    loss: Loss
    episodes: Sequence[Episode]
    point: np.ndarray
    slope: Linearisation
    posterior: Posterior
    sensitivity: str
    unseen: Sequence[Episode] = ()


def check(problem: FittedProblem, resamples: int, seed: int, advance: Advance) -> FitChecks:
    """Run the checks; refits to `resamples` sets of episodes, if any, may widen the posterior."""
    loss, point = problem.loss, problem.point
    names, units = loss.scenario.space.names, loss.prior.std
    std = np.sqrt(np.diag(problem.posterior.covariance))
    moved = bootstrap.horizon_shift(loss, point, derive_seed(seed, "horizon")) * units / std
    horizon = dict(zip(names, moved.tolist(), strict=True))
    posterior, ratios = problem.posterior, {}
    if resamples > 1:
        found = bootstrap.refits(loss, point, resamples, derive_seed(seed, "bootstrap"), advance)
        # A refit from another prior mean may scatter wider than the prior itself, which stays the limit.
        spread = np.minimum(found.std(axis=0, ddof=1), 1.0) * units
        posterior, ratios = widened(posterior, spread), dict(zip(names, (spread / std).tolist(), strict=True))
    checks = Checks(sensitivity=problem.sensitivity, bootstrap=ratios, horizon=horizon)
    if problem.sensitivity == "mjx":
        health = check_mjx(loss, point, derive_seed(seed, "parity"))
        checks = replace(checks, gradients=health.gradients, parity=health.parity)
    offsets = clock_offset_warnings(loss, problem.episodes, problem.unseen, point, problem.slope)
    checks = replace(checks, doubts=doubts(loss, problem.episodes, point, problem.slope, posterior, horizon))
    return FitChecks(posterior, checks, (*offsets, *bootstrap.warnings(ratios, horizon)))


# MJX's derivatives at the estimate, against differences in C, and its steps against C's.

WINDOWS = 4
STEPS = 2
"""Control steps: over longer windows differences straddle the kinks of contact."""
STATES = 4
"""Random states for each pair of geometries."""


def check_mjx(loss: Loss, point: np.ndarray, seed: int) -> Checks:
    """Check gradients on a few windows at a point [P], and parity in random states."""
    from rsr.simulators.mjx import check_gradients, check_parity

    simulator = mjx_simulator(loss.scenario)
    few = loss.windows.shortened(STEPS)
    chosen = np.linspace(0, len(few) - 1, min(WINDOWS, len(few))).round().astype(int)
    values = loss.values(point)
    gradients = check_gradients(simulator, loss.starts(values)[chosen], few.commands[chosen], values, _TOLERANCE)
    parity = check_parity(simulator, np.random.default_rng(seed), STATES)
    return Checks(gradients=str(gradients), parity=str(parity))


_TOLERANCE = 1e-3
"""Relative; 1e-4 with the pyramidal cone, but differences through the elliptic one are not better than this."""
