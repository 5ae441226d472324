"""Zeros of sensors as a nuisance: whatever a shifted zero could explain is no evidence about the parameters.

Each episode has zeros of its own (`rsr.scenarios.zeros`). They are not searched for, they are eliminated: for any
parameters, the zeros that explain an episode best are subtracted before its misfit counts (a profile likelihood), so
that every method keeps its few dimensions, and intervals know that zeros are uncertain. Differences are linear in a
zero as long as it is small, so a search is repeated around the zeros that the first one found
(`rsr.calibration.zeros`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

REWEIGHTED = 4
"""Weighted least-squares steps on one episode's zeros: robust weights follow what the zeros leave."""


@dataclass(frozen=True)
class ZeroSlopes:
    """How the scaled differences of windows answer to a shift of their episode's zeros.

    Args:
        slopes: [W, R, Z], a shift by one `zero_std` counts as one.
        episode: [W].
        widths: columns of each channel; R is T rows of the first channel, then T of the second, and so on.
        robust_scales: scaled differences beyond this count linearly.
    """

    slopes: np.ndarray
    episode: np.ndarray
    widths: tuple[int, ...]
    robust_scales: float

    def shortened(self, steps: int) -> ZeroSlopes:
        """The same for windows that are broken off after some steps."""
        count, rows, size = self.slopes.shape
        total = rows // sum(self.widths)
        ends = np.cumsum(self.widths)[:-1] * total
        blocks = [
            block.reshape(count, total, -1, size)[:, :steps].reshape(count, -1, size)
            for block in np.split(self.slopes, ends, axis=1)
        ]
        return replace(self, slopes=np.concatenate(blocks, axis=1))

    def take(self, chosen: np.ndarray) -> ZeroSlopes:
        """The same for some of the windows, by index."""
        return replace(self, slopes=self.slopes[chosen], episode=self.episode[chosen])

    def removed(self, scaled: np.ndarray) -> np.ndarray:
        """Scaled differences [K, W, R] less what the best zeros of each episode explain."""
        left, zeros = scaled.copy(), self.best(scaled)
        for owner in np.unique(self.episode):
            mine = self.episode == owner
            left[:, mine] -= np.einsum("wrz,kz->kwr", self.slopes[mine], zeros[:, owner])
        return left

    def best(self, scaled: np.ndarray) -> np.ndarray:
        """Zeros [K, E, Z], in `zero_std`s, that explain differences [K, W, R] best; episodes without windows get 0."""
        zeros = np.zeros((len(scaled), int(self.episode.max()) + 1, self.slopes.shape[-1]))
        for owner in np.unique(self.episode):
            mine = self.episode == owner
            zeros[:, owner] = self._best(scaled[:, mine], self.slopes[mine])
        return zeros

    def _best(self, scaled: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """[K, Z] of one episode's windows, in `zero_std`s; steps of a window count together as one, as in the loss."""
        rows, size = slopes.reshape(-1, slopes.shape[-1]), slopes.shape[-1]
        flat = scaled.reshape(len(scaled), -1)
        zeros = np.zeros((len(scaled), size))
        for _ in range(REWEIGHTED):
            left = flat - zeros @ rows.T
            weights = 1.0 / np.sqrt(1.0 + np.square(left / self.robust_scales)) / scaled.shape[2]
            information = np.einsum("kr,rz,ry->kzy", weights, rows, rows, optimize=True) + np.eye(size)
            zeros = np.linalg.solve(information, ((weights * flat) @ rows)[..., None])[..., 0]
        return zeros
