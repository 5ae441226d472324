"""What is unknown beside the parameters: whatever it could explain is no evidence about them.

Each window begins in a measured state, which is wrong by the sensors' noise: a cube that begins a little inside the
table is kicked out of it. Each episode has zeros of its own (`rsr.scenarios.zeros`). Neither is searched for, they are
eliminated: for any parameters, what explains a window or an episode best is subtracted before its misfit counts (a
profile likelihood), so that every method keeps its few dimensions, and intervals know what is uncertain. Differences
are linear in a zero or in a start's error as long as it is small, so elimination is repeated around what was found
first (`rsr.calibration.zeros`, `rsr.calibration.starts`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

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
        return replace(self, slopes=_shortened(self.slopes, self.widths, steps))

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


@dataclass(frozen=True)
class StartSlopes:
    """How the scaled differences of windows answer to errors of the states that these begin in.

    Args:
        slopes: [W, R, D], an error by one standard deviation counts as one.
        widths: see `ZeroSlopes`.
        noise: standard deviation of the scaled differences where the start is right.
    """

    slopes: np.ndarray
    widths: tuple[int, ...]
    noise: float

    def shortened(self, steps: int) -> StartSlopes:
        """The same for windows that are broken off after some steps."""
        return replace(self, slopes=_shortened(self.slopes, self.widths, steps))

    def take(self, chosen: np.ndarray) -> StartSlopes:
        """The same for some of the windows, by index."""
        return replace(self, slopes=self.slopes[chosen])

    def removed(self, scaled: np.ndarray) -> np.ndarray:
        """Scaled differences [K, W, R] whitened: what a probable error of a window's start explains counts little.

        Half their square is the least that any error leaves, its own improbability included.
        """
        explained = np.matmul(self.slopes.transpose(0, 2, 1), scaled.transpose(1, 2, 0))
        return scaled - np.matmul(self.slopes, self._weights @ explained).transpose(2, 0, 1)

    @cached_property
    def _weights(self) -> np.ndarray:
        """[W, D, D]: I - S weights S' is the root of the inverse of I + S S' / noise^2."""
        information = np.matmul(self.slopes.transpose(0, 2, 1), self.slopes) / self.noise**2
        sizes, axes = np.linalg.eigh(information)
        sizes = np.maximum(sizes, 1e-12)
        shares = (1.0 - 1.0 / np.sqrt(1.0 + sizes)) / (sizes * self.noise**2)
        return (axes * shares[:, None]) @ axes.transpose(0, 2, 1)


def _shortened(slopes: np.ndarray, widths: tuple[int, ...], steps: int) -> np.ndarray:
    """Slopes [W, R, D] of windows that are broken off after some steps."""
    count, rows, size = slopes.shape
    total = rows // sum(widths)
    blocks = [
        block.reshape(count, total, -1, size)[:, :steps].reshape(count, -1, size)
        for block in np.split(slopes, np.cumsum(widths)[:-1] * total, axis=1)
    ]
    return np.concatenate(blocks, axis=1)
