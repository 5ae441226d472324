"""A hand-written pusher and recordings made with it, for tests that need contact without training a policy first."""

from __future__ import annotations

from functools import cache

import numpy as np

from rsr.environments import World
from rsr.scenarios import Channels, Scenario, load_scenario
from rsr.scenarios.built_in.push_cube import task
from rsr.scenarios.built_in.pushing import tool_plane
from rsr.scenarios.built_in.pushing.kinematics import fingertip

BESIDE_M = np.array([0.0, 0.01])


class ScriptedPusher:
    """Drives the fingertip through a point beside the cube's middle, so that it pushes and slides along its face."""

    task = task.TASK

    def act(self, observation: np.ndarray) -> np.ndarray:
        tip, block = observation[:, 6:8], observation[:, 12:14]
        return tool_plane.displacements(observation, 10 * (block - tip + BESIDE_M))


@cache
def push_cube() -> Scenario:
    return load_scenario("push_cube")


def channels_of(joints: np.ndarray | None, block: np.ndarray, target: np.ndarray, **others: np.ndarray) -> Channels:
    """Channels of an arm at rest as a pushing task gets them; block and target: poses or positions [..., 7 or 3]."""
    channels = {"block_position": block[..., :3], "target_position": target[..., :3], **others}
    if block.shape[-1] > 3:
        channels |= {"block_orientation": block[..., 3:], "target_orientation": target[..., 3:]}
    if joints is None:
        return channels
    resting = {"joint_setpoint": joints, "action": 0 * joints, "velocity:joint_position": 0 * joints}
    resting |= {f"velocity:{name}": 0 * channels[name][..., :3] for name in channels if name.startswith("block_")}
    return {"joint_position": joints, "tip_position": fingertip(joints), **resting, **channels}


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
            sent.append(world.command.copy())
        moved_m = np.linalg.norm(world.channels["block_position"] - starts.qpos[:, :3], axis=1)
        assert (moved_m > 0.02).all(), "every cube is pushed"
    return states, np.stack(sent, axis=1)
