"""A Stable-Baselines3 VecEnv whose copies advance in one `mujoco.rollout` call, and the tool-plane action head."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from stable_baselines3.common.vec_env import VecEnvWrapper

from rsr.policies import tool_plane
from rsr.policies.env import action_space, observation_space
from rsr.policies.joint_envs import JointVecEnv
from rsr.policies.world import MeasurementNoise, World
from rsr.scenarios import Scenario, task_of
from rsr.scenarios.pushing.arm import ACTION_SIZE

Bonus = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""Extra reward of transitions: (observation [B, n], action [B, 6], next observation [B, n]) -> [B], without noise."""


class PushVecEnv(JointVecEnv):
    """`count` copies of a pushing scene with six joint displacements as action.

    Args:
        params: of the simulator to train in: [P], or [count, P] where each copy has its own.
        bonus: reward to add, such as InfoGap.
        stagger: start the copies at random ages, so that their resets do not coincide.
        noisy: observe through the scenario's sensor noise; reward and bonus see the true state.
    """

    def __init__(
        self,
        scenario: Scenario,
        params: np.ndarray,
        count: int = 64,
        seed: int = 0,
        threads: int = 2,
        bonus: Bonus | None = None,
        stagger: bool = True,
        noisy: bool = True,
    ) -> None:
        self.render_mode = None
        self.task = task_of(scenario)
        super().__init__(count, observation_space(self.task), action_space())
        self.world = World.simulated(scenario, params, count, threads)
        self.bonus = bonus
        self._scenario = scenario
        self._limit = scenario.episode_steps
        self._stagger = stagger
        self._rng = np.random.default_rng(seed)
        self._noise = MeasurementNoise(scenario, self._rng) if noisy else None
        self._age = np.zeros(count, int)
        self._return = np.zeros(count)
        self._whole = np.ones(count, bool)  # False in the first episode of a copy that starts in the middle of it
        self.task_reward = np.zeros(count)  # of the last step, without the bonus
        self.passed = (np.zeros(0), np.zeros(0))  # what there truly was to see before the last step, and after it
        self._observation = np.zeros((count, self.task.observation_size), np.float32)
        self._action = np.zeros((count, ACTION_SIZE))

    def reset(self) -> np.ndarray:
        everyone = np.arange(self.num_envs)
        self._begin(everyone)
        if self._stagger:
            self._age = self._rng.integers(0, self._limit, self.num_envs)
            self._whole = self._age == 0
        self._observation = self.world.observation(self._noise)
        return self._observation

    def step_async(self, actions: np.ndarray) -> None:
        self._action = np.clip(actions, -1.0, 1.0)

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        before = self.world.observation()
        self.world.step(self._action)
        after = self.world.observation(self._noise)
        self.passed = before, self.world.observation()
        reward = self.task_reward = self.world.reward()
        if self.bonus is not None:
            reward = reward + self.bonus(before, self._action, self.passed[1])
        self._age += 1
        self._return += reward
        done = self._age >= self._limit
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if done.any():
            ended = np.flatnonzero(done)
            self._report(infos, ended, after)
            self._begin(ended)
            after = after.copy()
            after[ended] = self.world.observation(self._noise)[ended]
        self._observation = after
        return after, reward.astype(np.float32), done, infos

    def _begin(self, copies: np.ndarray) -> None:
        self.world.place(copies, self.task.sample_starts(self._rng, len(copies)))
        self._age[copies] = 0
        self._return[copies] = 0.0
        self._whole[copies] = True

    def _report(self, infos: list[dict[str, Any]], ended: np.ndarray, last: np.ndarray) -> None:
        success = self.task.succeeded(self.world.block, self.world.target)
        for i in ended:
            infos[i] = {"terminal_observation": last[i].copy(), "TimeLimit.truncated": True}
            if self._whole[i]:  # what a part of an episode returned would make learning curves begin with a spike
                infos[i]["is_success"] = bool(success[i])
                infos[i]["episode"] = {"r": float(self._return[i]), "l": int(self._age[i]), "t": 0.0}

    def snapshot(self) -> dict[str, np.ndarray]:
        """Everything that the coming steps depend on, copied."""
        return {
            **self.world.snapshot(),
            "age": self._age.copy(),
            "return": self._return.copy(),
            "whole": self._whole.copy(),
            "observation": self._observation.copy(),
            "generator": np.array(json.dumps(self._rng.bit_generator.state)),
        }

    def restore(self, snapshot: dict[str, np.ndarray]) -> None:
        """Undo `snapshot`."""
        self.world.restore(snapshot)
        self._age, self._return = snapshot["age"].copy(), snapshot["return"].copy()
        self._whole = snapshot["whole"].copy()
        self._observation = snapshot["observation"].copy()
        self._rng.bit_generator.state = json.loads(str(snapshot["generator"]))  # the noise draws from it, too

    def close(self) -> None:
        self.world.close()

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        self._rng = np.random.default_rng(seed)
        self._noise = MeasurementNoise(self._scenario, self._rng) if self._noise else None
        return [seed] * self.num_envs


class ToolPlaneVecEnv(VecEnvWrapper):
    """Lets a learner choose the fingertip's velocity in the plane; the analytic head makes six displacements of it."""

    def __init__(self, envs: PushVecEnv) -> None:
        super().__init__(envs, action_space=gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32))
        self._envs = envs
        self._last = np.zeros((envs.num_envs, envs.task.observation_size), np.float32)

    def reset(self) -> np.ndarray:
        self._last = self._envs.reset()
        return self._last

    def step_async(self, actions: np.ndarray) -> None:
        self._envs.step_async(tool_plane.act(self._envs.task, self._last, actions))

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        self._last, reward, done, infos = self._envs.step_wait()
        return self._last, reward, done, infos

    @property
    def task_reward(self) -> np.ndarray:
        """[B], what the task alone paid for the last step."""
        return self._envs.task_reward

    @property
    def passed(self) -> tuple[np.ndarray, np.ndarray]:
        """[B, n] each, what there truly was to see before the last step and after it."""
        return self._envs.passed

    def bonus(self, seen: np.ndarray, velocity: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """[n], what is paid beyond the task's reward for transitions in which velocities [n, 2] were chosen.

        Args:
            seen: what they were chosen for, through the sensors' noise; `before` and `after` are without it.
        """
        if self._envs.bonus is None:
            return np.zeros(len(velocity))
        return self._envs.bonus(before, tool_plane.act(self._envs.task, seen, velocity), after)

    def snapshot(self) -> dict[str, np.ndarray]:
        """Everything that the coming steps depend on; the last observation is the environment's own."""
        return self._envs.snapshot()

    def restore(self, snapshot: dict[str, np.ndarray]) -> None:
        """Undo `snapshot`."""
        self._envs.restore(snapshot)
        self._last = snapshot["observation"].copy()
