"""What a policy does that is paid for InfoGap alone: how fast its fingertip moves, and how far the block gets.

    max_tip_speed_m_s      fastest movement of the fingertip itself, in any physics step of any copy
    tip_speed_limit_m_s    what it may not exceed
    max_block_distance_m   farthest that a block came from the middle of the workspace
    workspace_radius_m     what it may not exceed
    violations             physics steps in which one of the two was exceeded

PPO from scratch, no task reward, `--steps` environment steps in each of four worlds: push_cube and push_t, with nominal
friction and with that of a polished table (0.05), over which blocks slide ten times as far.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from _common import Figure, run
from environments import sample_reward

from rsr.policies.novelty import bonus_of
from rsr.policies.training import PPOSettings, make_learner
from rsr.policies.vec_env import PushVecEnv
from rsr.scenarios import Scenario, load_scenario, task_of
from rsr.scenarios.pushing import kinematics
from rsr.scenarios.pushing.arm import CENTRE_M

TIP_SPEED_LIMIT_M_S = 0.60
WORKSPACE_RADIUS_M = 0.50
POLISHED = 0.05
QUICK_STEPS = 20_000


def measure(quick: bool, steps: int) -> dict[str, Figure]:
    """Train in each world and report the worst of all."""
    steps = min(steps, QUICK_STEPS) if quick else steps
    watches = {}
    for name in ("push_cube", "push_t"):
        scenario = load_scenario(name)
        watches[name] = watched_training(scenario, scenario.space.nominal, steps)
        slippery = scenario.space.vector({"table_friction": POLISHED})
        watches[f"{name}_polished"] = watched_training(scenario, slippery, steps)
    details = {f"{name}_{key}": value for name, watch in watches.items() for key, value in watch.figures.items()}
    return {
        "max_tip_speed_m_s": max(watch.tip_speed_m_s for watch in watches.values()),
        "tip_speed_limit_m_s": TIP_SPEED_LIMIT_M_S,
        "max_block_distance_m": max(watch.block_distance_m for watch in watches.values()),
        "workspace_radius_m": WORKSPACE_RADIUS_M,
        "violations": sum(watch.violations for watch in watches.values()),
        "train_steps": steps,
        **details,
    }


class Watch:
    """Looks at every physics step of every copy while the bonus is asked for."""

    def __init__(self, envs: PushVecEnv) -> None:
        self._envs = envs
        self.tip_speed_m_s = self.block_distance_m = 0.0
        self.violations = 0

    def look(self) -> None:
        """Take note of what the last control step went through."""
        states = self._envs.world.passed
        tip_speed = tip_speeds_m_s(states)
        distance = np.linalg.norm(states[..., :2] - CENTRE_M, axis=-1)
        self.tip_speed_m_s = max(self.tip_speed_m_s, float(tip_speed.max()))
        self.block_distance_m = max(self.block_distance_m, float(distance.max()))
        self.violations += int(((tip_speed > TIP_SPEED_LIMIT_M_S) | (distance > WORKSPACE_RADIUS_M)).sum())

    @property
    def figures(self) -> dict[str, float]:
        """What the report has of each world."""
        return {"tip_speed_m_s": self.tip_speed_m_s, "block_distance_m": self.block_distance_m}


def watched_training(scenario: Scenario, params: np.ndarray, steps: int) -> Watch:
    """Train for InfoGap alone, and watch."""
    task = task_of(scenario)
    pay = bonus_of(sample_reward(scenario), task)
    settings = PPOSettings(steps)
    envs = PushVecEnv(scenario, params, settings.copies, seed=0)
    watch = Watch(envs)

    def bonus(observation: np.ndarray, action: np.ndarray, after: np.ndarray) -> np.ndarray:
        watch.look()
        return pay(observation, action, after)

    envs.bonus = bonus
    torch.set_num_threads(1)
    envs.world.task = replace(task, reward=nothing, potential=None)
    make_learner(envs, settings, seed=0).model.learn(steps)
    envs.close()
    return watch


def nothing(tip: np.ndarray, block: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The task's reward, where InfoGap alone is paid."""
    return np.zeros(len(tip))


def tip_speeds_m_s(states: np.ndarray) -> np.ndarray:
    """Speed of the fingertip [...] in states [..., nq + nv]: 7 of block, 6 of arm; 6 of block, 6 of arm."""
    joints, rates = states[..., 7:13], states[..., 19:25]
    return np.linalg.norm(kinematics.fingertip(joints + 1e-6 * rates) - kinematics.fingertip(joints), axis=-1) / 1e-6


if __name__ == "__main__":
    run(measure, __doc__, steps=300_000)
