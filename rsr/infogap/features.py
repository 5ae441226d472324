"""Features of Eq. 3's datasets: transitions as vectors, and the scale on which they are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rsr.common import CalibrationError
from rsr.infogap._arrays import matrix, noise_vector


def transitions(
    states: np.ndarray, actions: np.ndarray, next_states: np.ndarray, *, angle_columns: Sequence[int] = ()
) -> np.ndarray:
    """Build x = (s, a, s' - s).

    The map from {s, a, s'} is one to one, so no divergence changes; but a density estimate sees the step s' - s,
    and hardly sees it inside s'. Leave the target out of s: it is no part of the dynamics. Beyond a dozen columns
    a kernel density says little.

    Args:
        states, next_states: [n, S]; row i of `next_states` is one control step after row i of `states`.
        actions: [n, A], held during that step.
        angle_columns: columns of the state in rad whose step is taken the short way round. An angle that itself
            passes +-pi belongs in the state as its sine and cosine.

    Returns:
        [n, S + A + S].
    """
    start = matrix(states, "transitions: states")
    end = matrix(next_states, "transitions: next_states", columns=start.shape[1])
    action = matrix(actions, "transitions: actions")
    if not len(start) == len(end) == len(action):
        raise CalibrationError(
            got=f"{len(start)} states, {len(action)} actions, {len(end)} next states",
            expected="equally many of each",
            where="transitions",
            next_step="An episode of T + 1 states has T transitions: states[:-1], actions, states[1:].",
        )
    step = end - start
    angles = list(angle_columns)
    step[:, angles] = (step[:, angles] + np.pi) % (2 * np.pi) - np.pi
    return np.concatenate([start, action, step], axis=1)


def transition_noise(state_noise: np.ndarray, action_count: int) -> np.ndarray:
    """Compute the sensor noise of a real transition that its simulated partner does not have.

    Both start from the same measured state and action, so those columns share their noise; the step carries that
    of both of its ends.

    Args:
        state_noise: [S], standard deviation of the measurement per state column.

    Returns:
        [S + action_count + S], for `Scaler.fit` and `fit_infogap`.
    """
    noise = np.asarray(state_noise, dtype=np.float64)
    return np.concatenate([np.zeros(len(noise) + action_count), np.sqrt(2) * noise])


@dataclass(frozen=True, eq=False)
class Scaler:
    """Standardises features column by column; fitted once an iteration, so its numbers stay comparable within it.

    Full whitening would blow up the directions that hold only noise, so columns are scaled and not rotated.

    Args:
        mean, std: [d].
        kept: [d] of bool; columns that never change say nothing and are dropped.
    """

    mean: np.ndarray
    std: np.ndarray
    kept: np.ndarray

    @classmethod
    def fit(cls, *datasets: np.ndarray, noise: np.ndarray | float = 0.0) -> Scaler:
        """Pool the datasets [n_i, d] (real and simulated) and take mean and standard deviation per column.

        Args:
            noise: [d] or one number, standard deviation of the sensor noise: no column is read more finely.
        """
        where = "InfoGap scaler"
        columns = matrix(datasets[0], where).shape[1]
        pooled = np.concatenate([matrix(data, where, columns=columns) for data in datasets])
        std = pooled.std(axis=0)
        kept = std > 1e-9 + 1e-6 * np.abs(pooled).max(axis=0)
        _check_kept(kept, where)
        floored = np.maximum(std, noise_vector(noise, len(std), where))
        return cls(mean=pooled.mean(axis=0), std=np.where(kept, floored, 1.0), kept=kept)

    def only(self, columns: np.ndarray) -> Scaler:
        """Drop all but these columns [d] of bool."""
        kept = self.kept & columns
        _check_kept(kept, "InfoGap scaler, columns that count")
        return replace(self, kept=kept)

    @property
    def columns(self) -> int:
        """Columns of the features it takes."""
        return len(self.mean)

    @property
    def kept_columns(self) -> int:
        """Columns that it gives back."""
        return int(self.kept.sum())

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Standardise [n, d] to [n, kept_columns]."""
        values = matrix(features, "InfoGap features", columns=self.columns)
        return ((values - self.mean) / self.std)[:, self.kept]

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Name its arrays for `rsr.common.files.write_arrays`."""
        return {"scaler_mean": self.mean, "scaler_std": self.std, "scaler_kept": self.kept}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Scaler:
        """Undo `to_arrays`."""
        return cls(mean=arrays["scaler_mean"], std=arrays["scaler_std"], kept=arrays["scaler_kept"])


def _check_kept(kept: np.ndarray, where: str) -> None:
    if kept.any():
        return
    raise CalibrationError(
        got="samples that are all equal",
        expected="at least one column that changes",
        where=where,
        next_step="Check that the robot moved during the recording and that the channels are mapped rightly.",
    )
