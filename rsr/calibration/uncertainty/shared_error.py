"""Model error that all episodes share: no scatter between them shows it, and no number of episodes averages it out.

Each episode is simulated by the same wrong model, so what sensor noise and initial-state errors leave unexplained may
push the estimate the same way in all of them. How large that is, the residuals say; how much of it is shared, they
cannot, for the fit has absorbed that part. So all of it is taken as shared, and E episodes then know as much as one.
The estimate that weighs its residuals so, and lies nearer to the prior, differs from the one that was found: its
variance and the distance to it are what intervals lack otherwise. Where the model is right, both are zero.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rsr.calibration.problem import Loss, tangent_widths
from rsr.calibration.search.refinement import Linearisation
from rsr.calibration.uncertainty.information_matrices import information

ABSORBED = 2.0
"""Variance of the model's error over that of what a fit leaves of it: as much is absorbed as is left."""


def shared_error(loss: Loss, point: np.ndarray, slope: Linearisation) -> np.ndarray:
    """Mean square [P, P] of the errors that the model's shared error causes in a point [P], in units of the prior.

    Args:
        loss: with initial-state errors marginalised, else they pass for the model's.
        slope: around the point.
    """
    misfits, plain, shared = loss.misfits(point[None])[0], _Weighed(point), _Weighed(point)
    episodes = len(np.unique(loss.windows.episode))
    for rows, variance in zip(_channels(loss), _unexplained(loss, misfits), strict=True):
        there = slope.sensitivities[:, rows]
        found, pull = information(there), np.einsum("wrp,wr->p", there, misfits[:, rows])
        plain.add(found, pull, 1.0)
        # If all episodes err alike, the gradient's variance is E^2 that of one, while information is E times one's.
        shared.add(found, pull, max(1.0, episodes * ABSORBED * variance))
    moved = shared.step() - plain.step()
    return shared.covariance() - plain.covariance() + np.outer(moved, moved)


class _Weighed:
    """Precision and gradient of a linearised loss at a point [P], to which channels are added with their weights."""

    def __init__(self, point: np.ndarray) -> None:
        self._precision, self._gradient = np.eye(len(point)), point.copy()  # those of the prior

    def add(self, found: np.ndarray, gradient: np.ndarray, times: float) -> None:
        """Add a channel's information [P, P] and gradient [P], so many rows of which count as one."""
        self._precision = self._precision + found / times
        self._gradient = self._gradient + gradient / times

    def covariance(self) -> np.ndarray:
        return np.linalg.inv(self._precision)

    def step(self) -> np.ndarray:
        """Compute the step [P] to the minimum."""
        return -np.linalg.solve(self._precision, self._gradient)


def _channels(loss: Loss) -> Iterator[slice]:
    """Rows of the residuals of each channel."""
    first = 0
    for width in tangent_widths(loss.scenario):
        yield slice(first, first + loss.windows.steps * width)
        first += loss.windows.steps * width


def _unexplained(loss: Loss, misfits: np.ndarray) -> Iterator[float]:
    """Variance of each channel's scaled residuals beyond sensor noise and what initial-state errors leave of theirs."""
    squares, inside = np.square(misfits) * loss.rows_as_one, loss.windows.inside
    if loss.initial_states is not None:
        slopes = loss.initial_states.slopes
        squares = squares - np.square(loss.initial_states.whiten(np.moveaxis(slopes, 2, 0))).sum(axis=0)
    for rows, observed in zip(_channels(loss), loss.scenario.observed, strict=True):
        each = squares[:, rows].reshape(*inside.shape, -1).mean(axis=-1)
        noise = np.square(observed.noise / loss.scales[observed.channel.name][:, 0])
        yield max(0.0, float((each - noise)[inside].mean()))
