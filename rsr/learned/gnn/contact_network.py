"""The contract of a learned simulator: a network that carries a batch of scenes one frame on, and its rollout.

Everything is differentiable: in the two frames it starts from, in forces, in masses, and in the network's weights.

Example:
    >>> network = load_network(Path("trained/impulse"))            # doctest: +SKIP
    >>> poses = rollout(network, world, trajectory.start[None], frames=28)   # [1, 28, n, 7]
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rsr.common import ConfigError
from rsr.learned.gnn.bodies import RigidWorld
from rsr.learned.gnn.graph import Scenes, scenes_of
from rsr.learned.gnn.rigid import conjugate, exponential, logarithm, normalised, product


@dataclass(frozen=True)
class State:
    """Where the N bodies of a batch of scenes are, in the world's frame, and how they moved in the last two frames.

    Velocities are differences of poses, never of a solver: a frame's velocity is what carried the body into it.
    """

    positions_m: Tensor
    """[N, 3], centres of mass."""
    orientations: Tensor
    """[N, 4], unit quaternions wxyz."""
    velocities_m_s: Tensor
    """[N, 3]"""
    spins_rad_s: Tensor
    """[N, 3], in the world's frame."""
    previous_velocities_m_s: Tensor
    """[N, 3], of the frame before; where there is none, the velocity again."""
    previous_spins_rad_s: Tensor
    """[N, 3]"""

    def moved(self, velocities_m_s: Tensor, spins_rad_s: Tensor, dt_s: float) -> State:
        """The state one frame on, reached with these velocities."""
        return State(
            self.positions_m + dt_s * velocities_m_s,
            # Spins are in the world's frame, so their rotation multiplies from the left.
            normalised(product(exponential(dt_s * spins_rad_s), self.orientations)),
            velocities_m_s,
            spins_rad_s,
            self.velocities_m_s,
            self.spins_rad_s,
        )

    @property
    def poses(self) -> Tensor:
        """[N, 7], x y z and wxyz."""
        return torch.cat([self.positions_m, self.orientations], dim=-1)


class ContactNetwork(nn.Module):
    """A network that knows how touching bodies move. Implementations are final."""

    kind: str
    """The name it is stored under."""
    settings: Any
    """A frozen dataclass of JSON numbers; `settings.dt_s` is the time of a frame, at which it was trained."""

    equivariant: bool = True
    """Whether turning a scene about the vertical turns its motion; if not, training turns its scenes at random."""

    @abstractmethod
    def forward(self, scenes: Scenes, state: State, forces_n: Tensor | None = None) -> State:
        """Carry all scenes one frame on; forces [N, 3] act on the centres of mass throughout the frame."""


def start_state(first_two: Tensor, dt_s: float, before: Tensor | None = None) -> State:
    """State at the second of two frames of poses [2, N, 7]; `before` [N, 7] is the frame before both, where known."""
    # Verlet: the velocity that the paper's networks see is a difference of poses.
    velocities, spins = velocities_between(first_two[0], first_two[1], dt_s)
    previous = (velocities, spins) if before is None else velocities_between(before, first_two[0], dt_s)
    return State(first_two[1][..., :3], normalised(first_two[1][..., 3:]), velocities, spins, *previous)


def velocities_between(first: Tensor, second: Tensor, dt_s: float) -> tuple[Tensor, Tensor]:
    """Velocities [..., 3] in m/s and spins [..., 3] in rad/s that carry poses [..., 7] into the next frame's."""
    turn = product(normalised(second[..., 3:]), conjugate(normalised(first[..., 3:])))
    return (second[..., :3] - first[..., :3]) / dt_s, logarithm(turn) / dt_s


def rollout_scenes(
    network: ContactNetwork, scenes: Scenes, first_two: Tensor, frames: int, forces_n: Tensor | None = None
) -> Tensor:
    """Roll scenes of any sizes out. Returns the poses [frames, N, 7] after the first two.

    Args:
        first_two: [2, N, 7], the bodies of all scenes in one row after another, as `Scenes` has them.
        forces_n: [frames, N, 3] on the centres of mass, N.
    """
    state = start_state(first_two, network.settings.dt_s)
    poses = []
    for frame in range(frames):
        state = network(scenes, state, None if forces_n is None else forces_n[frame])
        poses.append(state.poses)
    return torch.stack(poses)


def rollout(
    network: ContactNetwork,
    world: RigidWorld,
    first_two_poses: Tensor | np.ndarray,
    frames: int,
    *,
    masses_kg: Tensor | None = None,
    forces_n: Tensor | None = None,
) -> Tensor:
    """Roll one world of n bodies out from B starts. Returns the poses [B, frames, n, 7] after the first two.

    Args:
        first_two_poses: [B, 2, n, 7]; a tensor may carry gradients.
        masses_kg: [n] or [B, n] instead of the world's; inertias scale with them.
        forces_n: [B, frames, n, 3] on the centres of mass, N.
    """
    dtype = next(network.parameters()).dtype
    # as_tensor keeps the graph of a tensor that carries gradients; torch.tensor would cut it.
    starts = torch.as_tensor(first_two_poses, dtype=dtype)
    count = len(world.bodies)
    if starts.ndim != 4 or starts.shape[1:] != (2, count, 7):
        raise ConfigError(
            got=f"starts of shape {list(starts.shape)}",
            expected=f"[B, 2, {count}, 7]: two frames of {count} poses",
            where="rollout of a learned simulator",
            next_step="Give the first two frames; their difference is the velocity.",
        )
    batch = len(starts)
    scenes = scenes_of([world], dtype).repeated(batch)
    if masses_kg is not None:
        scenes = scenes.with_masses(masses_kg.to(dtype).expand(batch, count).reshape(-1))
    # Rollouts go frame by frame over all bodies in a row: [B, frames, n, 3] -> [frames, B n, 3].
    forces = None if forces_n is None else forces_n.to(dtype).transpose(0, 1).reshape(frames, batch * count, 3)
    flat = starts.transpose(0, 1).reshape(2, batch * count, 7)
    poses = rollout_scenes(network, scenes, flat, frames, forces)
    return poses.reshape(frames, batch, count, 7).transpose(0, 1)
