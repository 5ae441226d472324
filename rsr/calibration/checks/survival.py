"""Whether a verdict *identified* survives: an episode left out, shorter windows, the prior, and what `rsr check` sees.

Intervals hold if the model is right. Where it is wrong, a narrow interval may be the work of one episode, of one length
of windows, or of a place far from the prior where noise passes for sensitivity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rsr.calibration.checks.observability import NOT_OBSERVED, std_share
from rsr.calibration.problem import Loss
from rsr.calibration.search.refinement import Linearisation
from rsr.calibration.uncertainty import (
    IDENTIFIED_SHRINKAGE,
    IDENTIFIED_STD,
    SURPRISING,
    UNSTABLE,
    Posterior,
    by_episode,
    half_widths,
)
from rsr.sessions import Episode


def doubts(
    loss: Loss,
    episodes: Sequence[Episode],
    point: np.ndarray,
    slope: Linearisation,
    posterior: Posterior,
    horizon: Mapping[str, float],
) -> dict[str, str]:
    """Say why parameters with a narrow interval are not to be called *identified*: parameter -> reason.

    Args:
        episodes: those that were fitted.
        horizon: parameter -> how far it moves on windows half as long, in its standard deviations.
    """
    space = loss.scenario.space
    narrow = (posterior.data_std <= IDENTIFIED_SHRINKAGE * space.prior_std) & (posterior.data_std <= IDENTIFIED_STD)
    if not narrow.any():
        return {}
    found = {
        name: f"windows half as long move it by {abs(horizon[name]):.1f} standard deviations"
        for name in space.names
        if abs(horizon.get(name, 0.0)) > UNSTABLE
    }
    found |= _carried_by_one(loss, point, slope, posterior)
    if loss.tangents is None:  # whole runs, fitted where the model is right, tell more than the usual windows
        shares = dict(zip(space.names, std_share(loss.scenario, episodes), strict=True))
        unseen = "around nominal these motions say nothing of it"
        found |= {name: unseen for name in shares if shares[name] > NOT_OBSERVED}
    found |= _surprising(loss, point, posterior)
    return {
        name: found[name] for name, is_narrow in zip(space.names, narrow, strict=True) if is_narrow and name in found
    }


def _surprising(loss: Loss, point: np.ndarray, posterior: Posterior) -> dict[str, str]:
    """Find parameters that a wrong model may have driven to where the scenario did not expect them."""
    space, wrong = loss.scenario.space, posterior.has_shared_error
    if wrong is None:
        return {}
    away = space.to_coordinates(loss.values(point)) - space.to_coordinates(space.nominal)
    return {
        name: f"it is {abs(away[index]) / space.prior_std[index]:.1f} prior standard deviations from its nominal value "
        "and may make up for the model's errors"
        for index, name in enumerate(space.names)
        if wrong[index] and abs(away[index]) > SURPRISING * space.prior_std[index]
    }


def _carried_by_one(loss: Loss, point: np.ndarray, slope: Linearisation, posterior: Posterior) -> dict[str, str]:
    """Find parameters that one episode alone moves out of their interval, or determines; to first order."""
    gradients, shares = by_episode(loss, point, slope)
    if len(gradients) < 2:
        return dict.fromkeys(loss.scenario.space.names, "a single episode was fitted")
    units, numbers = loss.prior.std, np.unique(loss.windows.episode)
    whole = shares.sum(axis=0) + np.diag(np.square(units / loss.scenario.space.prior_std))
    inverses = np.linalg.inv(whole - shares)
    # Without episode e the gradient at the estimate is -g_e, so a Gauss-Newton step moves it by (H - H_e)^-1 g_e.
    moved = np.abs(np.einsum("epq,eq->ep", inverses, gradients))
    width = half_widths(posterior.degrees, np.sqrt(np.diag(posterior.covariance))) / units
    wider = np.sqrt(np.diagonal(inverses, axis1=1, axis2=2) / np.diag(np.linalg.inv(whole)))
    limit = np.minimum(IDENTIFIED_SHRINKAGE * loss.scenario.space.prior_std, IDENTIFIED_STD)
    found = {}
    for index, name in enumerate(loss.scenario.space.names):
        far, alone = int(moved[:, index].argmax()), int(wider[:, index].argmax())
        if wider[alone, index] * posterior.data_std[index] > limit[index]:
            found[name] = f"without episode {numbers[alone]} the others do not determine it"
        elif moved[far, index] > width[index]:
            found[name] = f"without episode {numbers[far]} it leaves its interval"
    return found


def doubt_warnings(found: Mapping[str, str]) -> list[str]:
    """Warn of what was not called *identified* for a reason beside its interval."""
    return [f"{name} is weak though its interval is narrow: {reason}." for name, reason in found.items()]
