"""Pushes found by gradients through a learned simulator: which velocity brings another body to a target.

A push is the velocity that one body has at the start; nobody touches it afterwards. The search is Levenberg and
Marquardt's on the 2 x 2 derivative of the resting place, many starts side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from rsr.common import Advance, ConfigError, ScenarioError, generator, ignore
from rsr.learned.gnn.rigid import about_z, product
from rsr.learned.gnn.scenario_bodies import free_bodies
from rsr.scenarios import Scenario
from rsr.simulators import MujocoSimulator

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
    def of(cls, scenario: Scenario, params: np.ndarray, target_m: Sequence[float]) -> PushTask:
        """The first free body of a scenario is pushed into the second; all lie where the MJCF puts them."""
        bodies = free_bodies(scenario, params)
        if len(bodies.world.bodies) < 2:
            raise ScenarioError(
                got="a scenario of one free body",
                expected="two: one to push, and one to strike with it",
                where=f"scenario {scenario.name}, pushes",
                next_step="Choose a scenario of two bodies, such as two_cubes.",
            )
        poses = bodies.poses(_resting(scenario))
        target = torch.tensor([float(each) for each in target_m])
        return cls(torch.as_tensor(poses, dtype=torch.float32), target, bodies.dt_s)


def pushed(poses: torch.Tensor, body: int, velocity: torch.Tensor, dt_s: float) -> torch.Tensor:
    """Make the first two frames of worlds at rest in which one body is given a velocity on the table.

    Args:
        poses: [B, n, 7], where everything lies when the push ends, which is frame 1.
        body: which one is pushed.
        velocity: [B, 2] or [B, 3], of its centre along x and y in m/s and, if given, its spin about z in rad/s.

    Returns:
        [B, 2, n, 7]. The pushed body was a little behind in frame 0; frames tell velocities (Verlet).
    """
    # Not in place: the poses may carry gradients of their own.
    before = poses.clone()
    before[:, body, :2] = poses[:, body, :2] - dt_s * velocity[:, :2]
    if velocity.shape[1] > 2:
        before[:, body, 3:] = product(about_z(-dt_s * velocity[:, 2]), poses[:, body, 3:])
    return torch.stack([before, poses], dim=1)


@dataclass(frozen=True)
class Pushes:
    """Pushes found from each start, and their course.

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
    towards = (task.poses[task.struck, :2] - task.poses[task.pusher, :2]).numpy()
    # A start that misses the other body has no gradient to follow, so all aim at it.
    heading = np.arctan2(towards[1], towards[0]) + rng.normal(0, _ASIDE_RAD, count)
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


def carry_out(
    scenario: Scenario, params: np.ndarray, task: PushTask, velocities_m_s: torch.Tensor, frames: int
) -> np.ndarray:
    """Let MuJoCo do pushes [S, 2]; returns how far from the target the struck body then is, [S], m."""
    bodies = free_bodies(scenario, params)
    states = np.tile(_resting(scenario), (len(velocities_m_s), 1))
    # The free joint's linear velocity, in the world's frame.
    states[:, bodies.size[0] + bodies.dofs[task.pusher, :2]] = velocities_m_s.numpy()
    commands = np.zeros((len(states), scenario.history_steps + frames, scenario.base_model.nu))
    with MujocoSimulator(scenario) as simulator:
        last = bodies.poses(simulator.rollout(states, commands, params)[:, -1])
    return np.linalg.norm(last[:, task.struck, :2] - task.target_m.numpy(), axis=1)


def _resting(scenario: Scenario) -> np.ndarray:
    """State [nq + nv] with everything at rest where the MJCF puts it."""
    return np.concatenate([scenario.base_model.qpos0, np.zeros(scenario.base_model.nv)])


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
        # Starts do not wait for each other: each keeps its best and damps its own step.
        better = missed.norm(dim=1) < self.missed.norm(dim=1)
        self.best = torch.where(better[:, None], candidate, self.best)
        self.missed = torch.where(better[:, None], missed, self.missed)
        self._jacobian = torch.where(better[:, None, None], jacobian, self._jacobian)
        self._damping = (self._damping * torch.where(better, _DAMPING_DOWN, _DAMPING_UP)).clamp(1e-6, 1e3)
        return missed.norm(dim=1)

    def propose(self) -> torch.Tensor:
        """The next candidates, [S, 2]: one damped step from the best so far, no longer than the trust region."""
        jacobian, missed = self._jacobian.double(), self.missed.double()
        # Levenberg-Marquardt: (J^T J + damping) step = -J^T r, r by how much the body misses.
        slope = (jacobian.mT @ missed[:, :, None])[:, :, 0]
        curvature = jacobian.mT @ jacobian
        # Damping in units of the curvature, so that it means the same near a target and far from it.
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
        # Starts are independent, so the gradient of their sum holds all their Jacobians' rows.
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
