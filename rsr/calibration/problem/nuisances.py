"""Nuisance parameters: sensor biases of each episode, and the initial-state error of each window.

A window begins in a measured state, which is wrong by the sensors' noise: a cube that begins a little inside the table
is pushed out of it. An episode has sensor biases of its own (`rsr.scenarios.channels.sensors`). Neither is searched
for. For any parameters, the biases or the initial-state error that explain the differences best are subtracted before
the misfit counts (a profile likelihood), so that every method keeps its few dimensions and intervals contain this
uncertainty.
Differences are linear in a small error, so elimination is repeated around the estimate before
(`rsr.calibration.search.marginalise`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

REWEIGHTED = 4
"""Weighted least-squares steps on one episode's biases: the robust weights follow the remaining differences."""


@dataclass(frozen=True)
class BiasSlopes:
    """Derivative of the scaled differences of windows by the sensor biases of their episode.

    Args:
        slopes: [W, R, Z], by biases in units of `bias_std`.
        episode: [W].
        widths: columns of each channel; R is T rows of the first channel, then T of the second, and so on.
        robust_scales: scaled differences beyond this count linearly.
    """

    slopes: np.ndarray
    episode: np.ndarray
    widths: tuple[int, ...]
    robust_scales: float

    def shortened(self, steps: int) -> BiasSlopes:
        """Cut them to windows that end after some steps."""
        return replace(self, slopes=_shortened(self.slopes, self.widths, steps))

    def take(self, chosen: np.ndarray) -> BiasSlopes:
        """Keep those of some of the windows, by index."""
        return replace(self, slopes=self.slopes[chosen], episode=self.episode[chosen])

    def subtract(self, scaled: np.ndarray) -> np.ndarray:
        """Subtract from scaled differences [K, W, R] the contribution of each episode's estimated biases."""
        left, biases = scaled.copy(), self.estimate(scaled)
        for index in np.unique(self.episode):
            mine = self.episode == index
            left[:, mine] -= np.einsum("wrz,kz->kwr", self.slopes[mine], biases[:, index])
        return left

    def estimate(self, scaled: np.ndarray) -> np.ndarray:
        """Estimate biases [K, E, Z], in `bias_std`s, from differences [K, W, R]; 0 for episodes without windows."""
        biases = np.zeros((len(scaled), int(self.episode.max()) + 1, self.slopes.shape[-1]))
        for index in np.unique(self.episode):
            mine = self.episode == index
            biases[:, index] = self._of_episode(scaled[:, mine], self.slopes[mine])
        return biases

    def _of_episode(self, scaled: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """Solve for the biases [K, Z] of one episode; the steps of a window count together as one, as in the loss."""
        rows, size = slopes.reshape(-1, slopes.shape[-1]), slopes.shape[-1]
        flat = scaled.reshape(len(scaled), -1)
        biases = np.zeros((len(scaled), size))
        # Iteratively reweighted least squares: w = 1 / sqrt(1 + (r / d)^2) is the pseudo-Huber loss's weight.
        for _ in range(REWEIGHTED):
            left = flat - biases @ rows.T
            weights = 1.0 / np.sqrt(1.0 + np.square(left / self.robust_scales)) / scaled.shape[2]
            # + I: the prior. Biases are in units of `bias_std`, so its precision is one.
            information = np.einsum("kr,rz,ry->kzy", weights, rows, rows, optimize=True) + np.eye(size)
            biases = np.linalg.solve(information, ((weights * flat) @ rows)[..., None])[..., 0]
        return biases


@dataclass(frozen=True)
class InitialStateSlopes:
    """Derivative of the scaled differences of windows by errors of their initial states.

    Args:
        slopes: [W, R, D], by errors in standard deviations.
        widths: see `BiasSlopes`.
    """

    slopes: np.ndarray
    widths: tuple[int, ...]

    def shortened(self, steps: int) -> InitialStateSlopes:
        """Cut them to windows that end after some steps."""
        return replace(self, slopes=_shortened(self.slopes, self.widths, steps))

    def take(self, chosen: np.ndarray) -> InitialStateSlopes:
        """Keep those of some of the windows, by index."""
        return replace(self, slopes=self.slopes[chosen])

    def whiten(self, scaled: np.ndarray) -> np.ndarray:
        """Whiten scaled differences [K, W, R]: what a probable initial-state error explains counts little.

        Half their square is the minimum over all errors, the error's own improbability included.
        """
        # r - S A S' r, without ever forming the [R, R] matrix: D is some ten, R some hundreds.
        explained = np.matmul(self.slopes.transpose(0, 2, 1), scaled.transpose(1, 2, 0))
        return scaled - np.matmul(self.slopes, self._weights @ explained).transpose(2, 0, 1)

    @cached_property
    def _weights(self) -> np.ndarray:
        """A [W, D, D], with which I - S A S' is the root of the inverse of I + S S'."""
        # By the eigenvalues s of S'S: the root's are 1 / sqrt(1 + s), hence A's (1 - 1 / sqrt(1 + s)) / s.
        information = np.matmul(self.slopes.transpose(0, 2, 1), self.slopes)
        sizes, axes = np.linalg.eigh(information)
        # Coordinates without effect have s = 0, where the quotient is 0 / 0 (its limit is 1/2, times no slope).
        sizes = np.maximum(sizes, 1e-12)
        shares = (1.0 - 1.0 / np.sqrt(1.0 + sizes)) / sizes
        return (axes * shares[:, None]) @ axes.transpose(0, 2, 1)


def _shortened(slopes: np.ndarray, widths: tuple[int, ...], steps: int) -> np.ndarray:
    """Cut slopes [W, R, D] to windows that end after some steps."""
    count, rows, size = slopes.shape
    total = rows // sum(widths)
    # R is channel by channel, so each channel's block of rows is cut on its own.
    blocks = [
        block.reshape(count, total, -1, size)[:, :steps].reshape(count, -1, size)
        for block in np.split(slopes, np.cumsum(widths)[:-1] * total, axis=1)
    ]
    return np.concatenate(blocks, axis=1)
