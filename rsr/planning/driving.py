"""Closed-loop candidates of pushing scenarios: a scripted hand or a policy drives the simulated arm."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rsr.policies import Policy, World, tool_plane
from rsr.scenarios import Scenario, task_of
from rsr.scenarios.pushing import kinematics

Act = Callable[[World, int], np.ndarray]
"""Displacements [B, 6] in -1..1 that a world gets in a control step."""
Driver = Callable[[int, np.random.Generator], tuple[Act, list[str]]]
"""For a number of copies: how they are driven, and each one's description."""

BESIDE_M = 0.018
"""A scripted hand pushes at most this far beside the middle of the block."""
PERIOD_STEPS = (16, 60)
BACKING_SHARE = (0.0, 0.4)
SPEEDS = (0.3, 1.0)


def driven(
    scenario: Scenario, params: np.ndarray, driver: Driver, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Drive episodes in the simulator: starts [B, nq + nv], the setpoints sent [B, H + T, 6], and descriptions."""
    starts = task_of(scenario).sample_starts(rng, count)
    act, words = driver(count, rng)
    with World.simulated(scenario, params, count) as world:
        world.place(np.arange(count), starts)
        begun = world.states.copy()
        sent = [world.setpoint.copy()] * scenario.history_steps
        for step in range(scenario.episode_steps):
            world.step(act(world, step))
            sent.append(world.setpoint.copy())
    return begun, np.stack(sent, axis=1), words


def push_driver(count: int, rng: np.random.Generator) -> tuple[Act, list[str]]:
    """A hand that pushes beside the block's middle, backs off now and then, and pushes again."""
    beside_m = rng.uniform(-BESIDE_M, BESIDE_M, (count, 1))
    speed = rng.uniform(*SPEEDS, (count, 1))
    period = rng.integers(*PERIOD_STEPS, (count, 1))
    backing = rng.uniform(*BACKING_SHARE, (count, 1))

    def act(world: World, step: int) -> np.ndarray:
        towards = world.block[:, :2] - kinematics.fingertip(world.joints)[:, :2]
        across = np.stack([-towards[:, 1], towards[:, 0]], axis=1)
        across /= np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-9)
        towards = towards + beside_m * across
        towards /= np.maximum(np.linalg.norm(towards, axis=1, keepdims=True), 1e-9)
        forwards = np.where(step % period < (1 - backing) * period, 1.0, -1.0)
        return tool_plane.displacements(world.joints, forwards * speed * towards)

    words = [
        f"push {1000 * float(side):.0f} mm beside the middle at {tool_plane.SPEED_M_S * float(pace):.2f} m/s, "
        f"backing off {float(share):.0%} of the time"
        for side, pace, share in zip(beside_m[:, 0], speed[:, 0], backing[:, 0], strict=True)
    ]
    return act, words


def policy_driver(policy: Policy) -> Driver:
    """The policy from fresh starts towards fresh targets."""

    def driver(count: int, rng: np.random.Generator) -> tuple[Act, list[str]]:
        words = ["let the policy act from a fresh start"] * count
        return (lambda world, step: policy.act(world.observation())), words

    return driver
