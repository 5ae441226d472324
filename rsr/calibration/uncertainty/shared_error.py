"""Model error that all episodes share: no scatter between them shows it, and no number of episodes averages it out.

Each episode is simulated by the same wrong model, so what sensor noise and initial-state errors leave unexplained may
push the estimate the same way in all of them. How large that is, the residuals say; how much of it is shared, they
cannot, for the fit has absorbed that part. So all of it is taken as shared, and E episodes then know as much as one.
The estimate that weighs its residuals so, and lies nearer to the prior, differs from the one that was found: its
variance and the distance to it are what intervals lack otherwise. Where the model is right, both are zero.

Where it is wrong, parameters may also be driven to where nobody expects them, such as a light cube on a rough table in
place of a heavy one on a smooth one: another minimum, which no slope around the first one sees.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rsr.calibration.problem import Loss
from rsr.calibration.search.refinement import Linearisation
from rsr.scenarios import Scenario

ABSORBED = 2.0
"""Variance of the model's error over that of what a fit leaves of it: as much is absorbed as is left."""
SURPRISING = 2.5
"""Standard deviations from the prior's mean, beyond which one estimate in eighty lies if prior and model are right."""


def shared_error(loss: Loss, point: np.ndarray, slope: Linearisation) -> np.ndarray:
    """Mean square [P, P] of the errors that the model's shared error causes in a point [P], in units of the prior.

    Args:
        loss: with initial-state errors marginalised, else they pass for the model's.
        slope: around the point.
    """
    misfits, weights = loss.misfits(point[None])[0], np.ones(slope.sensitivities.shape[1])
    episodes = len(np.unique(loss.windows.episode))
    variances = _joined(loss.scenario, _unexplained(loss, misfits))
    for rows, variance in zip(loss.channel_rows.values(), variances, strict=True):
        # If all episodes err alike, the gradient's variance is E^2 that of one, while information is E times one's.
        weights[rows] = 1.0 / np.sqrt(max(1.0, episodes * ABSORBED * variance))
    plain = Linearisation(point, misfits, slope.sensitivities)
    shared = Linearisation(point, misfits * weights, slope.sensitivities * weights[:, None])
    moved = shared.step() - plain.step()
    return np.linalg.inv(shared.precision) - np.linalg.inv(plain.precision) + np.outer(moved, moved)


def conflict(point: np.ndarray, slope: Linearisation) -> np.ndarray:
    """Mean square [P, P] of the ways back to the prior of parameters that surprise, others following as correlated.

    Args:
        slope: around the point [P].
    """
    scatter, surprising = np.linalg.inv(slope.precision), np.flatnonzero(np.abs(point) > SURPRISING)
    back = scatter[:, surprising] / np.diag(scatter)[surprising] * point[surprising]
    return back @ back.T


def _joined(scenario: Scenario, variances: Iterator[float]) -> list[float]:
    """Give channels of joined bodies the largest variance among them: a wrong force moves all that hang together.

    Parameters may absorb it wholly in the one channel, and leave it in the other.
    """
    tree_of, found = scenario.base_model.dof_treeid, list(variances)
    trees = [set(tree_of[list(each.dofs)].tolist()) or {each.channel.name} for each in scenario.observed]
    return [max(variance for variance, other in zip(found, trees, strict=True) if other & tree) for tree in trees]


def _unexplained(loss: Loss, misfits: np.ndarray) -> Iterator[float]:
    """Variance of each channel's scaled residuals beyond sensor noise and what initial-state errors leave of theirs.

    The median over episodes: what one of them alone shows, in which a contact came out otherwise, all do not share.
    """
    squares, inside = np.square(misfits) * loss.rows_as_one, loss.windows.inside
    if loss.initial_states is not None:
        slopes = loss.initial_states.slopes
        squares = squares - np.square(loss.initial_states.whiten(np.moveaxis(slopes, 2, 0))).sum(axis=0)
    mine = [loss.windows.episode == index for index in np.unique(loss.windows.episode)]
    for name, rows in loss.by_channel(squares).items():
        left = rows.mean(axis=-1) - np.square(loss.scenario.channel_noise[name] / loss.scales[name][:, 0])
        yield max(0.0, float(np.median([left[windows][inside[windows]].mean() for windows in mine])))
