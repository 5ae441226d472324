"""A policy for a task of several bodies, learnt by gradients through the simulator.

Three cubes in a ragged row: the first is pushed into the second, which strikes the third, which shall stop at a target.
The policy sees where everything is and says with which velocity to push. Beside it, the same policy learnt from rewards
alone (REINFORCE) out of as many simulations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from rsr.common import Advance, about_z, derive_seed, generator, ignore
from rsr.learned.gnn import FASTEST_M_S, Rollout, pushed
from rsr.scenarios.built_in.two_cubes import SIDE_M

PUSHED, LAST = 0, 2
_GAP_M = (0.02, 0.05)
_ASIDE_M = 0.008
_YAW_RAD = 0.1
_TARGET_M = (0.03, 0.10)
_TARGET_ASIDE_M = 0.01
_WIDTH = 64
_USUAL_M_S = 1.1
_RATE = 4e-3
_EXPLORED_M_S = 0.12
_LARGEST_GRADIENT = 1.0


@dataclass(frozen=True)
class Tasks:
    """What the policy has to solve.

    Args:
        poses: [B, 3, 7], where the cubes lie.
        targets_m: [B, 2], where the last one shall stop.
    """

    poses: Tensor
    targets_m: Tensor

    def __len__(self) -> int:
        return len(self.poses)

    @property
    def observations(self) -> Tensor:
        """[B, 12], in sides of a cube: the others and the target from the first; how each is turned, four times as far.

        A cube turned by a quarter is the same cube.
        """
        places = (self.poses[:, 1:, :2] - self.poses[:, :1, :2]).flatten(1) / SIDE_M
        target = (self.targets_m - self.poses[:, LAST, :2]) / SIDE_M
        turned = 8 * torch.atan2(self.poses[..., 6], self.poses[..., 3])
        return torch.cat([places, target, torch.cos(turned), torch.sin(turned)], dim=1)


class PushPolicy(nn.Module):
    """From observations [B, 12] to velocities [B, 2] of the first cube, m/s."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(12, _WIDTH), nn.Tanh(), nn.Linear(_WIDTH, _WIDTH), nn.Tanh())
        self.head = nn.Linear(_WIDTH, 2)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, observations: Tensor) -> Tensor:
        ahead, aside = self.head(self.layers(observations)).unbind(dim=1)
        speed = FASTEST_M_S * torch.sigmoid(ahead + np.log(_USUAL_M_S / (FASTEST_M_S - _USUAL_M_S)))
        return torch.stack([speed, 0.5 * torch.tanh(aside)], dim=1)


def sample_tasks(count: int, seed: int, dtype: torch.dtype = torch.float32) -> Tasks:
    """Draw tasks; the row points along x."""
    rng = generator(seed, "gnn", "tasks")
    apart = SIDE_M + rng.uniform(*_GAP_M, (count, 2))
    places = np.zeros((count, 3, 2))
    places[:, 1:, 0] = apart.cumsum(axis=1)
    places[:, 1:, 1] = rng.uniform(-_ASIDE_M, _ASIDE_M, (count, 2))
    height = np.full((count, 3, 1), SIDE_M / 2)
    poses = np.concatenate([places, height, about_z(rng.normal(0, _YAW_RAD, (count, 3)))], axis=2)
    ahead = rng.uniform(*_TARGET_M, count)
    aside = rng.uniform(-_TARGET_ASIDE_M, _TARGET_ASIDE_M, count)
    targets = places[:, LAST] + np.stack([ahead, aside], axis=1)
    return Tasks(torch.as_tensor(poses, dtype=dtype), torch.as_tensor(targets, dtype=dtype))


def distances(rollout: Rollout, tasks: Tasks, velocities_m_s: Tensor, dt_s: float) -> Tensor:
    """How far from its target the last cube is at the end, [B], m; differentiable where the rollout is."""
    poses = rollout(pushed(tasks.poses, PUSHED, velocities_m_s, dt_s))
    return (poses[:, -1, LAST, :2] - tasks.targets_m).norm(dim=1)


def learn_by_gradients(
    rollout: Rollout, dt_s: float, steps: int = 60, batch: int = 32, seed: int = 0, advance: Advance = ignore
) -> PushPolicy:
    """Descend the mean distance itself: every simulation says in which direction its push was wrong."""

    def loss(policy: PushPolicy, tasks: Tasks, step: int) -> Tensor:
        return (distances(rollout, tasks, policy(tasks.observations), dt_s) / SIDE_M).mean()

    return _learnt(loss, steps, batch, seed, advance)


def learn_from_rewards(
    rollout: Rollout, dt_s: float, steps: int = 60, batch: int = 32, seed: int = 0, advance: Advance = ignore
) -> PushPolicy:
    """REINFORCE with the batch's mean as baseline: pushes are scattered, and the nearer half is made likelier."""

    def loss(policy: PushPolicy, tasks: Tasks, step: int) -> Tensor:
        mean = policy(tasks.observations)
        scatter = generator(seed, "gnn", "explored", step).normal(0, _EXPLORED_M_S, mean.shape)
        tried = mean.detach() + torch.as_tensor(scatter, dtype=mean.dtype)
        with torch.no_grad():
            missed = distances(rollout, tasks, tried, dt_s)
        advantage = -(missed - missed.mean()) / (missed.std() + 1e-6)
        return (advantage * ((tried - mean) / _EXPLORED_M_S).square().sum(dim=1) / 2).mean()

    return _learnt(loss, steps, batch, seed, advance)


Loss = Callable[[PushPolicy, Tasks, int], Tensor]


def _learnt(loss: Loss, steps: int, batch: int, seed: int, advance: Advance) -> PushPolicy:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "gnn", "policy"))
        policy = PushPolicy()
    optimiser = torch.optim.Adam(policy.parameters(), lr=_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for step in range(steps):
        value = loss(policy, sample_tasks(batch, derive_seed(seed, "gnn", "batch", step)), step)
        optimiser.zero_grad()
        value.backward()
        norm = nn.utils.clip_grad_norm_(policy.parameters(), _LARGEST_GRADIENT)
        if torch.isfinite(norm):
            optimiser.step()
        schedule.step()
        advance((step + 1) / steps, f"loss {float(value.detach()):.3f}")
    return policy.requires_grad_(False)
