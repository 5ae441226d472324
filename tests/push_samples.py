"""A hand-written pusher and recordings made with it, for tests that need contact without training a policy first."""

from __future__ import annotations

from functools import cache

import numpy as np

from rsr.policies import World, tool_plane
from rsr.scenarios import Scenario, load_scenario
from rsr.scenarios.push_cube import task

BESIDE_M = np.array([0.0, 0.01])


class ScriptedPusher:
    """Drives the fingertip through a point beside the cube's middle, so that it pushes and slides along its face."""

    def act(self, observation: np.ndarray) -> np.ndarray:
        tip, block = observation[:, 6:8], observation[:, 12:14]
        return tool_plane.displacements(observation, 10 * (block - tip + BESIDE_M))


@cache
def push_cube() -> Scenario:
    return load_scenario("push_cube")


def pushes(count: int = 4, steps: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Starts [B, nq + nv] at rest and commands [B, H + steps, nu] under which the finger pushes the cube around."""
    scenario = push_cube()
    starts = task.sample_starts(np.random.default_rng(seed), count)
    sent = [starts.qpos[:, 7:]] * scenario.history_steps
    with World.simulated(scenario, scenario.space.nominal, count) as world:
        world.place(np.arange(count), starts)
        states = world.states.copy()
        for _ in range(steps):
            world.step(ScriptedPusher().act(world.observation()))
            sent.append(world.setpoint.copy())
        assert (np.linalg.norm(world.block - starts.qpos[:, :3], axis=1) > 0.02).all(), "every cube is pushed"
    return states, np.stack(sent, axis=1)
