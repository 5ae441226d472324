"""What gradients through the network of the first stand-in are good for, and how fast its rollouts are."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from _common import Figure, best_seconds_in_turn
from _gnn_stand_ins import learnt, problem_of, seeds
from baselines.gnn_policy import Tasks, distances, learn_by_gradients, learn_from_rewards, sample_tasks
from baselines.gnn_scenes import contact_of, cube_world, pair_task, rollout_in_mujoco
from torch import Tensor

from rsr.common import bar, generator
from rsr.learned.gnn import ContactNetwork, PushTask, Rollout, carry_out, optimise_push, pushed, rollout, sample_starts
from rsr.learned.gnn.trajectories import FRAME_S
from rsr.scenarios.built_in.two_cubes import SIDE_M
from rsr.simulators import MujocoSimulator

CONVERGED_M = 0.01
STARTS, STEPS = 10, 10
_PUSH_FRAMES, _CHAIN_FRAMES = 45, 45
# Farther targets need pushes that are faster than any the network was taught.
_AHEAD_M = (0.03, 0.09)
_CHECKED_FRAMES = 20
_DIFFERENCE = 1e-4
_ALIKE = 0.95


def through(network: ContactNetwork, bodies: int, frames: int) -> Rollout:
    world = cube_world(bodies)
    return lambda start: rollout(network, world, start, frames)


def _network(folder: Path, quick: bool) -> ContactNetwork:
    return learnt(folder, seeds(quick)[0], quick)[0]


def gradients(folder: Path, quick: bool) -> dict[str, Figure]:
    """Derivatives of where the struck cube is after 20 frames against central differences, in float64."""
    precise = copy.deepcopy(_network(folder, quick)).double()
    simulate = through(precise, 2, _CHECKED_FRAMES)
    task = pair_task(0.02, (0.2, 0.0))
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


def pushes(folder: Path, quick: bool) -> dict[str, Figure]:
    """Optimise pushes to several targets from ten starts each, and carry them out in MuJoCo, the teacher."""
    network, problem = _network(folder, quick), problem_of(folder, seeds(quick)[0], quick)
    rng = generator(4, "gnn", "targets")
    targets = SIDE_M + rng.uniform(*_AHEAD_M, 2), rng.uniform(-0.008, 0.008, 2)
    missed, expected = [], []
    for number, target in enumerate(np.stack(targets, axis=1)[: 1 if quick else None]):
        task = PushTask.of(problem.scenario, problem.teacher, target.tolist())
        starts = sample_starts(task, STARTS, seed=number)
        found = optimise_push(through(network, 2, _PUSH_FRAMES), task, starts, 2 if quick else STEPS)
        missed.append(carry_out(problem.scenario, problem.teacher, task, found.velocity_m_s, _PUSH_FRAMES))
        expected.append(found.distance_m.numpy())
    return {
        "push_converged_fraction": float(np.mean(np.array(missed) < CONVERGED_M)),
        "push_converged_fraction_worst_target": float((np.array(missed) < CONVERGED_M).mean(axis=1).min()),
        "push_error_mm_median": 1e3 * float(np.median(missed)),
        "push_error_mm_expected_median": 1e3 * float(np.median(expected)),
    }


def policy(folder: Path, quick: bool) -> dict[str, Figure]:
    """Learn to strike a third cube through a second one; judged by MuJoCo on tasks that were not trained on."""
    contact = contact_of(problem_of(folder, seeds(quick)[0], quick).teacher)

    def judge(start: Tensor) -> Tensor:
        frames = _CHAIN_FRAMES + 2
        return torch.as_tensor(rollout_in_mujoco(cube_world(3), contact, start.numpy().astype(float), frames)[:, 2:])

    simulate = through(_network(folder, quick), 3, _CHAIN_FRAMES)
    steps, batch = (2, 4) if quick else (30, 16)
    with bar("policy") as advance:
        by_gradients = learn_by_gradients(simulate, FRAME_S, steps, batch, seed=0, advance=advance)
    with bar("by rewards") as advance:
        by_rewards = learn_from_rewards(simulate, FRAME_S, steps, batch, seed=0, advance=advance)
    tasks = sample_tasks(20 if quick else 200, seed=1)
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


def speed(folder: Path, quick: bool) -> dict[str, Figure]:
    """64 pushes of half a second: the network on one thread against MuJoCo on two."""
    problem, batch, frames = problem_of(folder, seeds(quick)[0], quick), 2 if quick else 64, 6 if quick else 30
    scenario, many = problem.scenario, through(_network(folder, quick), 2, frames)
    task = PushTask.of(scenario, problem.teacher, (0.2, 0.0))
    start = pushed(task.poses[None], 0, torch.tensor([[1.0, 0.0]]), FRAME_S)
    state = np.concatenate([scenario.base_model.qpos0, np.zeros(scenario.base_model.nv)])
    state[scenario.base_model.nq] = 1.0
    states, commands = np.tile(state, (batch, 1)), np.zeros((batch, frames, 0))
    with torch.no_grad(), MujocoSimulator(scenario, threads=2) as simulator:
        calls = (
            lambda: many(start.expand(batch, -1, -1, -1)),
            lambda: simulator.rollout(states, commands, problem.teacher),
            lambda: many(start),
        )
        seconds = best_seconds_in_turn(calls, 1 if quick else 2)
    return {
        "speed_ratio_mujoco_over_network": seconds[1] / seconds[0],
        "frames_per_second_network": batch * frames / seconds[0],
        "frames_per_second_mujoco": batch * frames / seconds[1],
        "real_time_factor": frames * FRAME_S / seconds[2],
    }
