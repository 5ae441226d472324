"""What gradients through the network are good for, and how fast its rollouts are."""

from __future__ import annotations

import copy
from collections.abc import Callable

import mujoco
import numpy as np
import torch
from _common import Figure, best_seconds_in_turn
from _gnn_networks import USUAL
from mujoco import rollout as mujoco_rollout
from torch import Tensor

from rsr.gnn.contract import ContactNetwork, rollout
from rsr.gnn.optimisation import PushTask, Rollout, optimise_push, sample_starts
from rsr.gnn.policy_learning import Tasks, distances, learn_by_gradients, learn_from_rewards, sample_tasks
from rsr.gnn.pushes import pushed
from rsr.gnn.scenes import Scene, cube_world, sample_bowling
from rsr.gnn.teacher import substeps, teacher_model, teacher_rollout
from rsr.gnn.trajectories import FRAME_S
from rsr.progress import bar
from rsr.randomness import generator
from rsr.scenarios.two_cubes import SIDE_M

CONVERGED_M = 0.01
STARTS, STEPS = 10, 10
_PUSH_FRAMES, _CHAIN_FRAMES = 45, 45
_GAP_M = 0.04
_AHEAD_M = (0.03, 0.09)
"""Farther targets need pushes that are faster than any the network was taught."""
_CHECKED_FRAMES = 20
_DIFFERENCE = 1e-4
_ALIKE = 0.95


def through(network: ContactNetwork, bodies: int, frames: int) -> Rollout:
    world = cube_world(bodies)
    return lambda start: rollout(network, world, start, frames)


def by_teacher(bodies: int, frames: int) -> Rollout:
    """The same of MuJoCo with the teacher's contacts, without gradients."""
    world = cube_world(bodies)

    def simulated(start: Tensor) -> Tensor:
        return torch.as_tensor(teacher_rollout(world, USUAL, start.numpy().astype(float), frames + 2)[:, 2:])

    return simulated


def gradients(network: ContactNetwork, quick: bool) -> dict[str, Figure]:
    """Derivatives of where the struck cube is after 20 frames against central differences, in float64."""
    precise = copy.deepcopy(network).double()
    simulate = through(precise, 2, _CHECKED_FRAMES)
    task = PushTask.along_x(SIDE_M, 0.02, (0.2, 0.0), FRAME_S)
    starts = sample_starts(task, 4 if quick else 40, seed=3).double()
    poses = task.poses.double().expand(len(starts), -1, -1)
    directions = torch.as_tensor(generator(3, "gnn", "directions").normal(size=(len(starts), 2)))

    def objective(velocity: Tensor) -> Tensor:
        after = simulate(pushed(poses, task.pusher, velocity, FRAME_S))
        return (after[:, -1, task.struck, :2] * directions).sum(dim=1)

    free = torch.cat([starts, torch.zeros(len(starts), 1, dtype=starts.dtype)], dim=1).requires_grad_()
    (slope,) = torch.autograd.grad(objective(free).sum(), free)
    with torch.no_grad():
        columns = [_difference(objective, free.detach(), axis) for axis in range(3)]
    cosine = torch.nn.functional.cosine_similarity(slope, torch.stack(columns, dim=1), dim=1)
    return {
        "gradients_finite": bool(torch.isfinite(slope).all()),
        "gradient_cosine_fraction": float((cosine > _ALIKE).double().mean()),
        "gradient_cosine_median": float(cosine.median()),
    }


def _difference(objective: Callable[[Tensor], Tensor], velocity: Tensor, axis: int) -> Tensor:
    step = torch.zeros(velocity.shape[1], dtype=velocity.dtype)
    step[axis] = _DIFFERENCE
    return (objective(velocity + step) - objective(velocity - step)) / (2 * _DIFFERENCE)


def pushes(network: ContactNetwork, quick: bool) -> dict[str, Figure]:
    """Optimise pushes to several targets from ten starts each, and carry them out in MuJoCo, the teacher."""
    rng = generator(4, "gnn", "targets")
    targets = SIDE_M + _GAP_M + rng.uniform(*_AHEAD_M, 2), rng.uniform(-0.008, 0.008, 2)
    missed, expected = [], []
    simulate = by_teacher(2, _PUSH_FRAMES)
    for number, target in enumerate(np.stack(targets, axis=1)[: 1 if quick else None]):
        task = PushTask.along_x(SIDE_M, _GAP_M, target, FRAME_S)
        starts = sample_starts(task, STARTS, seed=number)
        found = optimise_push(through(network, 2, _PUSH_FRAMES), task, starts, 2 if quick else STEPS)
        poses = task.poses.expand(STARTS, -1, -1)
        after = simulate(pushed(poses, task.pusher, found.velocity_m_s, FRAME_S))
        missed.append((after[:, -1, task.struck, :2] - task.target_m).norm(dim=1).numpy())
        expected.append(found.distance_m.numpy())
    return {
        "push_converged_fraction": float(np.mean(np.array(missed) < CONVERGED_M)),
        "push_converged_fraction_worst_target": float((np.array(missed) < CONVERGED_M).mean(axis=1).min()),
        "push_error_mm_median": 1e3 * float(np.median(missed)),
        "push_error_mm_expected_median": 1e3 * float(np.median(expected)),
    }


def policy(network: ContactNetwork, quick: bool) -> dict[str, Figure]:
    """Learn to strike a third cube through a second one; judged by MuJoCo on tasks that were not trained on."""
    simulate = through(network, 3, _CHAIN_FRAMES)
    steps, batch = (2, 4) if quick else (30, 16)
    with bar("policy") as advance:
        by_gradients = learn_by_gradients(simulate, FRAME_S, steps, batch, seed=0, advance=advance)
    with bar("by rewards") as advance:
        by_rewards = learn_from_rewards(simulate, FRAME_S, steps, batch, seed=0, advance=advance)
    tasks = sample_tasks(20 if quick else 200, seed=1)
    judge = by_teacher(3, _CHAIN_FRAMES)
    untrained = learn_by_gradients(simulate, FRAME_S, 0)
    still = (tasks.poses[:, 2, :2] - tasks.targets_m).norm(dim=1)
    return {
        "policy_simulations": steps * batch,
        "policy_error_mm": _missed_mm(judge, tasks, by_gradients),
        "policy_error_mm_by_rewards": _missed_mm(judge, tasks, by_rewards),
        "policy_error_mm_untrained": _missed_mm(judge, tasks, untrained),
        "policy_error_mm_nothing_done": 1e3 * float(still.mean()),
    }


def _missed_mm(judge: Rollout, tasks: Tasks, learnt: torch.nn.Module) -> float:
    with torch.no_grad():
        return 1e3 * float(distances(judge, tasks, learnt(tasks.observations), FRAME_S).mean())


def speed(network: ContactNetwork, quick: bool) -> dict[str, Figure]:
    """Ten cubes struck by one, 64 scenes over half a second: the network against MuJoCo on two threads."""
    batch, frames = (2, 6) if quick else (64, 30)
    scene = sample_bowling(cube_world(11), generator(5, "gnn", "speed"))
    velocity = torch.as_tensor(scene.velocities[:1, :2], dtype=torch.float32)
    start = pushed(torch.as_tensor(scene.poses[None], dtype=torch.float32), 0, velocity, FRAME_S)
    pair = PushTask.along_x(SIDE_M, _GAP_M, (0.2, 0.0), FRAME_S)
    two_cubes = pushed(pair.poses[None], 0, torch.tensor([[1.0, 0.0]]), FRAME_S)
    many, one = through(network, len(scene.poses), frames), through(network, 2, frames)
    with torch.no_grad(), mujoco_rollout.Rollout(nthread=2) as pool:
        calls = (
            lambda: many(start.expand(batch, -1, -1, -1)),
            _in_c(pool, scene, batch, frames),
            lambda: many(start),
            lambda: one(two_cubes),
        )
        seconds = best_seconds_in_turn(calls, 1 if quick else 2)
    return {
        "speed_ratio_mujoco_over_network": seconds[1] / seconds[0],
        "ten_cubes_frames_per_second_network": batch * frames / seconds[0],
        "ten_cubes_frames_per_second_mujoco": batch * frames / seconds[1],
        "real_time_factor_ten_cubes": frames * FRAME_S / seconds[2],
        "real_time_factor_two_cubes": frames * FRAME_S / seconds[3],
    }


def _in_c(pool: mujoco_rollout.Rollout, scene: Scene, batch: int, frames: int) -> Callable[[], object]:
    model = teacher_model(scene.world, USUAL)
    row = np.concatenate([[0.0], scene.poses.ravel(), scene.velocities.ravel()])
    data = [mujoco.MjData(model) for _ in range(2)]
    return lambda: pool.rollout(model, data, np.tile(row, (batch, 1)), nstep=frames * substeps(FRAME_S))
