"""Find the push after which another body stops at a target: gradients through the simulator, many starts at once.

The paper's Fig. 1. Two backward passes a step give how the resting place follows the push (a 2 x 2 Jacobian), which
Levenberg and Marquardt turn into a step; plain gradient descent takes several times as many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from rsr.errors import ConfigError
from rsr.gnn.pushes import pushed
from rsr.progress import Advance, ignore
from rsr.randomness import generator

Rollout = Callable[[torch.Tensor], torch.Tensor]
"""From first two frames [B, 2, n, 7] to poses [B, T, n, 7]; differentiable."""

FASTEST_M_S = 2.0
_STARTS_M_S, _ASIDE_RAD = (0.7, 1.5), 0.12
_LARGEST_STEP_M_S = 0.35
_FAR_M = 1e6
_DAMPING, _FLOOR = 5e-3, 1e-9
_DAMPING_UP, _DAMPING_DOWN = 8.0, 0.25


@dataclass(frozen=True)
class PushTask:
    """Bring one body to a place by pushing another into it.

    Args:
        poses: [n, 7], where everything lies at the start.
        target_m: [2], where the struck body shall stop.
    """

    poses: torch.Tensor
    target_m: torch.Tensor
    dt_s: float
    pusher: int = 0
    struck: int = 1

    @classmethod
    def along_x(cls, side_m: float, gap_m: float, target_m: Sequence[float], dt_s: float) -> PushTask:
        """Two cubes in a row along x, the one to push in the origin, faces `gap_m` apart."""
        upright = [side_m / 2, 1.0, 0.0, 0.0, 0.0]
        poses = torch.tensor([[0.0, 0.0, *upright], [side_m + gap_m, 0.0, *upright]])
        return cls(poses, torch.tensor([float(each) for each in target_m]), dt_s)


@dataclass(frozen=True)
class Pushes:
    """What was found from each start.

    Args:
        velocity_m_s: [S, 2], the best push from each start.
        distance_m: [S], how far from the target the simulator says the struck body then stops.
        tried_m_s: [S, K + 1, 2], the push after each gradient step.
        trace_m: [S, K + 1], the distance after each gradient step.
    """

    velocity_m_s: torch.Tensor
    distance_m: torch.Tensor
    tried_m_s: torch.Tensor
    trace_m: torch.Tensor


def sample_starts(task: PushTask, count: int, seed: int) -> torch.Tensor:
    """Pushes [count, 2] roughly towards the struck body, of any usual speed."""
    rng = generator(seed, "gnn", "starts")
    way = (task.poses[task.struck, :2] - task.poses[task.pusher, :2]).numpy()
    heading = np.arctan2(way[1], way[0]) + rng.normal(0, _ASIDE_RAD, count)
    speed = rng.uniform(*_STARTS_M_S, count)
    return torch.as_tensor(speed[:, None] * np.stack([np.cos(heading), np.sin(heading)], axis=1), dtype=torch.float32)


def optimise_push(
    rollout: Rollout, task: PushTask, starts_m_s: torch.Tensor, steps: int = 10, advance: Advance = ignore
) -> Pushes:
    """Improve all starts [S, 2] at once by `steps` gradient steps each.

    Raises:
        ConfigError: no start, or one that is no velocity on the table; no target; fewer than no steps.
    """
    _check(starts_m_s, task, steps)
    search = _Search(rollout, task, starts_m_s)
    tried, trace = [], []
    candidate = starts_m_s
    for step in range(steps + 1):
        tried.append(candidate)
        trace.append(search.learn(candidate, differentiate=step < steps))
        candidate = search.propose()
        advance((step + 1) / (steps + 1), f"{1e3 * float(search.missed.norm(dim=1).median()):.1f} mm, median")
    return Pushes(search.best, search.missed.norm(dim=1), torch.stack(tried, 1), torch.stack(trace, 1))


class _Search:
    """Levenberg and Marquardt's method for S starts side by side, each with its own damping."""

    def __init__(self, rollout: Rollout, task: PushTask, starts: torch.Tensor) -> None:
        self._rollout, self._task = rollout, task
        self._poses = task.poses.to(starts.dtype).expand(len(starts), -1, -1)
        self.best = starts
        self.missed = torch.full_like(starts, _FAR_M)
        self._jacobian = starts.new_zeros(len(starts), 2, 2)
        self._damping = torch.full((len(starts),), _DAMPING, dtype=torch.float64)

    def learn(self, candidate: torch.Tensor, differentiate: bool) -> torch.Tensor:
        """Simulate candidates [S, 2], keep those that are better; returns their distances [S]."""
        missed, jacobian = self._simulated(candidate, differentiate)
        better = missed.norm(dim=1) < self.missed.norm(dim=1)
        self.best = torch.where(better[:, None], candidate, self.best)
        self.missed = torch.where(better[:, None], missed, self.missed)
        self._jacobian = torch.where(better[:, None, None], jacobian, self._jacobian)
        self._damping = (self._damping * torch.where(better, _DAMPING_DOWN, _DAMPING_UP)).clamp(1e-6, 1e3)
        return missed.norm(dim=1)

    def propose(self) -> torch.Tensor:
        """The next candidates, [S, 2]: one damped step from the best so far, no longer than the trust region."""
        jacobian, missed = self._jacobian.double(), self.missed.double()
        slope = (jacobian.mT @ missed[:, :, None])[:, :, 0]
        curvature = jacobian.mT @ jacobian
        size = curvature.diagonal(dim1=1, dim2=2).sum(dim=1)
        damped = curvature + (self._damping * size + _FLOOR)[:, None, None] * torch.eye(2, dtype=torch.float64)
        step = -torch.linalg.solve(damped, slope).to(self.best.dtype)
        step = step * (_LARGEST_STEP_M_S / step.norm(dim=1, keepdim=True).clamp_min(1e-12)).clamp(max=1.0)
        candidate = self.best + step
        return candidate * (FASTEST_M_S / candidate.norm(dim=1, keepdim=True).clamp_min(1e-12)).clamp(max=1.0)

    def _simulated(self, velocity: torch.Tensor, differentiate: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """By how much the struck body misses, [S, 2], and how that follows the push, [S, 2, 2]."""
        velocity = velocity.detach().requires_grad_(differentiate)
        with torch.set_grad_enabled(differentiate):
            poses = self._rollout(pushed(self._poses, self._task.pusher, velocity, self._task.dt_s))
            missed = poses[:, -1, self._task.struck, :2] - self._task.target_m.to(velocity.dtype)
        if not differentiate:
            return missed, torch.zeros_like(self._jacobian)
        rows = [torch.autograd.grad(missed[:, axis].sum(), velocity, retain_graph=axis == 0)[0] for axis in range(2)]
        return missed.detach(), torch.nan_to_num(torch.stack(rows, dim=1))


def _check(starts: torch.Tensor, task: PushTask, steps: int) -> None:
    if steps < 0 or not torch.isfinite(task.target_m).all():
        raise ConfigError(
            got=f"{steps} steps to the target {task.target_m.tolist()}",
            expected="0 steps or more, and a place in m",
            where="optimise_push",
            next_step="Correct --steps or --target.",
        )
    if starts.ndim != 2 or starts.shape[1] != 2 or not len(starts) or not torch.isfinite(starts).all():
        raise ConfigError(
            got=f"starts of shape {list(starts.shape)}",
            expected="finite velocities [S, 2] in m/s, one a start",
            where="optimise_push",
            next_step="Give at least one velocity along x and y.",
        )
    if task.pusher == task.struck:
        raise ConfigError(
            got=f"body {task.pusher} as pusher and struck body",
            expected="two different bodies",
            where="PushTask",
            next_step="Name the body that is pushed, and the one that shall stop at the target.",
        )
