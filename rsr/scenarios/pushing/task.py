"""What a scenario states for a policy to learn in it: what is seen, paid, begun with, and counted as success."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from rsr.scenarios.pushing.pose import yaw_error

OBSERVATION_LIMIT = 100.0
"""No observation reaches it (rad, m); for learners that want bounded spaces."""

Reward = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""(fingertip [..., 3], block [..., k], target [..., k]) -> [...]."""


@dataclass(frozen=True)
class Starts:
    """Where episodes begin.

    Args:
        qpos: [B, 13], block pose then joints; everything at rest.
        target: [B, k], where the block shall end; k as in `Task.block_size`.
    """

    qpos: np.ndarray
    target: np.ndarray

    def __len__(self) -> int:
        return len(self.qpos)

    def repeated(self, times: int) -> Starts:
        """All of them, `times` times over."""
        return Starts(np.tile(self.qpos, (times, 1)), np.tile(self.target, (times, 1)))


@dataclass(frozen=True)
class Term:
    """A part of the observation: `size` numbers in one unit and one frame.

    Args:
        channels: of a recording, which it is computed from.
    """

    name: str
    size: int
    unit: str
    frame: str
    channels: tuple[str, ...]


@dataclass(frozen=True)
class Task:
    """A pushing task. "Block" and "target" are positions [..., 3], or poses [..., 7] where orientation counts.

    Args:
        terms: of the observation, in its order.
        block_channels, target_channels: channels of a recording that hold the block and its target.
        observation: (joints [B, 6], block [B, k], target [B, k]) -> [B, n] float32.
        reward: the task's own, as the paper has it.
        potential: training pays its increase on top of the reward, so that the task is learnt sooner; over an episode
            that adds up to where it begins and ends. None where that is not needed.
        base_velocity: observation [B, n] -> fingertip velocity [B, 2] along the block's axes, in -1..1, which the
            network corrects. None where the network alone decides.
        succeeded: (block, target) -> [...] bool.
        sample_starts: (generator, count) -> Starts.
        success_m, success_rad: what `succeeded` allows; None where orientation does not count.
    """

    name: str
    terms: tuple[Term, ...]
    block_channels: tuple[str, ...]
    target_channels: tuple[str, ...]
    observation: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    reward: Reward
    succeeded: Callable[[np.ndarray, np.ndarray], np.ndarray]
    sample_starts: Callable[[np.random.Generator, int], Starts]
    success_m: float
    success_rad: float | None = None
    potential: Reward | None = None
    base_velocity: Callable[[np.ndarray], np.ndarray] | None = None

    @property
    def observation_size(self) -> int:
        return sum(term.size for term in self.terms)

    @property
    def turns(self) -> bool:
        """True where the block's orientation counts."""
        return self.success_rad is not None

    @property
    def block_size(self) -> int:
        """Numbers that tell where the block is: 3, or 7 with its orientation."""
        return 7 if self.turns else 3

    def columns(self, *names: str) -> list[int]:
        """Columns of the observation that these terms take, in the order of the names."""
        starts = np.cumsum([0, *(term.size for term in self.terms)])
        places = {term.name: range(start, start + term.size) for term, start in zip(self.terms, starts, strict=False)}
        return [column for name in names for column in places[name]]

    def block(self, channels: Mapping[str, np.ndarray]) -> np.ndarray:
        """Gather the block [..., k] out of a recording's channels."""
        return np.concatenate([channels[name] for name in self.block_channels], axis=-1)

    def target(self, channels: Mapping[str, np.ndarray]) -> np.ndarray:
        """Gather the target [..., k] out of a recording's channels."""
        return np.concatenate([channels[name] for name in self.target_channels], axis=-1)

    def target_rows(self, target: np.ndarray) -> dict[str, np.ndarray]:
        """Undo `target`: the channels of a recording that say where the block shall go."""
        parts = np.split(target, [3], axis=-1) if self.turns else [target]
        return dict(zip(self.target_channels, parts, strict=True))

    def yaw_error_rad(self, block: np.ndarray, target: np.ndarray) -> np.ndarray | None:
        """Turn that is missing [...], in -pi..pi; None where orientation does not count."""
        return yaw_error(block, target) if self.turns else None


def away_from(rng: np.random.Generator, points: np.ndarray, half_width: float, distance: float) -> np.ndarray:
    """Uniform points in a square, redrawn until each is at least `distance` from its partner."""
    drawn = rng.uniform(-half_width, half_width, points.shape)
    while (close := np.linalg.norm(drawn - points, axis=1) < distance).any():
        drawn[close] = rng.uniform(-half_width, half_width, (int(close.sum()), 2))
    return drawn
