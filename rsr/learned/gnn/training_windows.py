"""Short windows of trajectories to train on; those in which bodies hit each other are drawn more often."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rsr.common import CalibrationError
from rsr.learned.gnn.contact_network import State, start_state, velocities_between
from rsr.learned.gnn.graph import Scenes, scenes_of
from rsr.learned.gnn.rigid import about_z, exponential, matrix, product
from rsr.learned.gnn.trajectories import Trajectory

_RESTING_M_S = 0.02
_RESTING_WEIGHT = 0.08
_HIT_WEIGHT = 3.0
# A frame counts as a hit where the velocity changes by more than gravity does in half a frame.
_HIT_GRAVITIES = 0.5


@dataclass(frozen=True)
class TrainingWindows:
    """Trajectories of one frame time as tables, and how often each frame shall be drawn."""

    scenes: Scenes
    poses: Tensor
    """[N, T, 7], the bodies of all trajectories; shorter ones are filled up with their last frame."""
    lengths: Tensor
    """[K], frames of each trajectory."""
    weights: np.ndarray
    """[K, T], of the frames a window may start at: the second frame or a later one."""
    dt_s: float

    @property
    def fingerprint(self) -> str:
        """Equal for equal data."""
        scenes = self.scenes
        tables = (self.poses, self.lengths, scenes.masses_kg, scenes.inertias_kg_m2, scenes.vertices_m)
        return hashlib.sha256(b"".join(table.numpy().tobytes() for table in tables)).hexdigest()

    def draw(self, rng: np.random.Generator, count: int, unroll: int) -> tuple[Tensor, Tensor]:
        """Draw trajectories [count] and frames [count] from which `unroll` more follow."""
        # `unroll` frames must follow, which a shorter trajectory runs out of sooner.
        last = np.minimum(self.lengths.numpy()[:, None] - 1 - unroll, self.weights.shape[1])
        allowed = self.weights * (np.arange(self.weights.shape[1]) <= last)
        # Inverse transform: a uniform number falls into a frame as often as its weight says.
        cumulated = np.cumsum(allowed.ravel())
        places = np.searchsorted(cumulated, rng.random(count) * cumulated[-1], side="right")
        trajectories, frames = np.divmod(places, self.weights.shape[1])
        return torch.as_tensor(trajectories), torch.as_tensor(frames)

    def window(
        self, trajectories: Tensor, frames: Tensor, unroll: int, turning: np.random.Generator | None = None
    ) -> tuple[Scenes, State, Tensor]:
        """Scenes, the states they start from, and the poses [unroll, N, 7] that follow.

        Args:
            turning: turns every scene about the vertical by a random angle.
        """
        scenes = self.scenes.select(trajectories)
        rows = self.scenes.rows(trajectories)
        now = frames[scenes.scene]
        table = self.poses[rows]
        if turning is not None:
            angles = torch.as_tensor(turning.uniform(-np.pi, np.pi, len(trajectories)), dtype=table.dtype)
            table = _turned(table, angles[scenes.scene])
        each = torch.arange(len(rows))
        state = start_state(torch.stack([table[each, now - 1], table[each, now]]), self.dt_s)
        earlier = velocities_between(table[each, (now - 2).clamp_min(0)], table[each, now - 1], self.dt_s)
        # Before a window at frame 1 there is no earlier velocity: it is taken as unchanged.
        first = (now < 2)[:, None]
        state = State(
            *(state.positions_m, state.orientations, state.velocities_m_s, state.spins_rad_s),
            torch.where(first, state.velocities_m_s, earlier[0]),
            torch.where(first, state.spins_rad_s, earlier[1]),
        )
        after = torch.stack([table[each, now + step] for step in range(1, unroll + 1)])
        return scenes, state, after


def windows_of(trajectories: Sequence[Trajectory], unroll: int) -> TrainingWindows:
    """Lay trajectories out for training by windows of up to `unroll` predicted frames."""
    times = sorted({round(trajectory.dt_s, 9) for trajectory in trajectories})
    if len(times) != 1:
        got = f"trajectories with {', '.join(f'{time:g}' for time in times) or 'no'} s between frames"
        raise _refused(got, "one frame time", "Resample the others.")
    longest = max(len(trajectory) for trajectory in trajectories)
    if longest < unroll + 2:
        expected = f"at least {unroll + 2}: two to start from and {unroll} to predict"
        raise _refused(f"trajectories of up to {longest} frames", expected, "Record longer, or unroll less.")
    if max(float(_largest_step_m(trajectory)) for trajectory in trajectories) < 1e-6:
        raise _refused("bodies at rest throughout", "some motion", "Record a push: rest teaches nothing.")
    poses = [_filled(trajectory.poses, longest).transpose(1, 0, 2) for trajectory in trajectories]
    return TrainingWindows(
        scenes_of([trajectory.world for trajectory in trajectories]),
        torch.as_tensor(np.concatenate(poses), dtype=torch.float32),
        torch.as_tensor([len(trajectory) for trajectory in trajectories]),
        np.stack([_weights(trajectory, longest) for trajectory in trajectories]),
        times[0],
    )


def disturbed(state: State, rng: np.random.Generator, noise_m: float, dt_s: float) -> State:
    """A state a little off its trajectory, as a rollout's own errors put it: the network learns to live with them."""
    if noise_m == 0:
        return state

    def normal(scale: tuple[float, float, float]) -> Tensor:
        drawn = rng.normal(size=state.positions_m.shape) * np.array(scale) * noise_m
        return torch.as_tensor(drawn, dtype=state.positions_m.dtype)

    # Sideways more than up: the floor holds a body's height, and little holds its place.
    shift, turn = normal((1, 1, 0.1)), normal((1.5, 1.5, 15))
    return State(
        state.positions_m + shift,
        product(exponential(turn), state.orientations),
        state.velocities_m_s + 0.7 * shift / dt_s,
        state.spins_rad_s + 0.7 * turn / dt_s,
        state.previous_velocities_m_s,
        state.previous_spins_rad_s,
    )


def _turned(poses: Tensor, angles: Tensor) -> Tensor:
    """Poses [N, T, 7] turned about the vertical through the origin by angles [N]."""
    turns = about_z(angles)
    places = poses[..., :3] @ matrix(turns).mT
    return torch.cat([places, product(turns[:, None].expand(*poses.shape[:2], 4), poses[..., 3:])], dim=-1)


def _weights(trajectory: Trajectory, longest: int) -> np.ndarray:
    """Weights by which each of `longest` frames is drawn; rest seldom, hits often."""
    velocities = np.diff(trajectory.poses[..., :3], axis=0) / trajectory.dt_s
    speed = np.linalg.norm(velocities, axis=2).max(1)
    gravity = trajectory.world.gravity_m_s2 * trajectory.dt_s
    # Sliding slows by mu g dt at most a frame, so larger changes are hits.
    changes = np.diff(velocities, axis=0)
    fall = np.array([0, 0, gravity])  # falling freely is no hit either
    changes = np.minimum(np.linalg.norm(changes, axis=2), np.linalg.norm(changes + fall, axis=2)).max(1)
    hit = changes > max(_HIT_GRAVITIES * gravity, _RESTING_M_S)
    weights = np.zeros(longest)
    frames = len(trajectory)
    moving = np.maximum(speed[:-1], speed[1:]) > _RESTING_M_S
    weights[1 : frames - 1] = np.where(moving, 1.0, _RESTING_WEIGHT) + _HIT_WEIGHT * hit
    return weights


def _filled(poses: np.ndarray, frames: int) -> np.ndarray:
    return np.concatenate([poses, np.repeat(poses[-1:], frames - len(poses), axis=0)])


def _largest_step_m(trajectory: Trajectory) -> np.ndarray:
    return np.abs(np.diff(trajectory.poses, axis=0)).max()


def _refused(got: str, expected: str, next_step: str) -> CalibrationError:
    return CalibrationError(got=got, expected=expected, where="training of a contact network", next_step=next_step)
