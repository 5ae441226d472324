"""Running a policy in a simulator from given starts: the simulated half of every comparison with reality."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.policies.policy import Policy
from rsr.policies.world import MeasurementNoise, World
from rsr.scenarios import Scenario, task_named, task_of
from rsr.scenarios.pushing import Starts, Task
from rsr.scenarios.pushing.kinematics import fingertip
from rsr.sessions import Session


@dataclass(frozen=True)
class Rollouts:
    """Closed-loop episodes.

    Args:
        block: position [B, T + 1, 3] of the block, or pose [B, T + 1, 7] where the task is about its orientation, too.
        tip: fingertip position [B, T + 1, 3].
        target: [B, 3 or 7].
        success: [B].
    """

    task: Task
    block: np.ndarray
    tip: np.ndarray
    target: np.ndarray
    success: np.ndarray

    def __len__(self) -> int:
        return len(self.success)

    def final_yaw_error_rad(self) -> np.ndarray | None:
        """Turn [B] that is missing at the end; None where the task is not about orientation."""
        return self.task.yaw_error_rad(self.block[:, -1], self.target)

    def first(self, count: int) -> Rollouts:
        """Keep the first episodes."""
        return Rollouts(self.task, self.block[:count], self.tip[:count], self.target[:count], self.success[:count])


def run(scenario: Scenario, params: np.ndarray, policy: Policy, starts: Starts, rng: np.random.Generator) -> Rollouts:
    """Run the policy in the simulator with parameters [P], seeing through the scenario's sensor noise."""
    count = len(starts)
    noise = MeasurementNoise(scenario, rng)
    with World.simulated(scenario, params, count) as world:
        world.place(np.arange(count), starts)
        states = [world.states]
        for _ in range(scenario.episode_steps):
            world.step(policy.act(world.observation(noise)))
            states.append(world.states)
        task, success = world.task, world.task.succeeded(world.block, world.target)
    joints, block = np.stack(states, 1)[..., 7:13], np.stack(states, 1)[..., : task.block_size]
    return Rollouts(task, block, fingertip(joints), starts.target, success)


def starts_of(scenario: Scenario, session: Session) -> Starts:
    """Where the episodes of a recording began, at rest, and what their targets were."""
    qpos = [scenario.states(episode)[0, : scenario.base_model.nq] for episode in session.episodes]
    target = [task_of(scenario).target(episode.values)[0] for episode in session.episodes]
    return Starts(np.stack(qpos), np.stack(target))


def recorded(session: Session) -> Rollouts:
    """The episodes of a recording in the same form; the block is where the sensors saw it."""
    task = task_named(session.card.scenario)
    block = np.stack([task.block(episode.values) for episode in session.episodes])
    tip = np.stack([episode["tip_position"] for episode in session.episodes])
    target = np.stack([task.target(episode.values)[0] for episode in session.episodes])
    return Rollouts(task, block, tip, target, task.succeeded(block[:, -1], target))
