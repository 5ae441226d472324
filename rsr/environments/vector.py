"""Base of the vector environments: copies live in one simulation and have no methods of their own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from rsr.environments.gymnasium import action_space, observation_space
from rsr.environments.measuring import Measuring
from rsr.environments.novelty import Bonus, bonus_features
from rsr.environments.task_trial import tried_task
from rsr.environments.world import World
from rsr.scenarios import Channels, Scenario


class JointVecEnv(VecEnv):
    """Copies that advance together: what is read or set of one is read or set of all."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        setattr(self, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        raise NotImplementedError("the copies share one simulation: there is no method of a single copy")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * len(list(self._get_indices(indices)))


# A Stable-Baselines3 VecEnv whose copies advance in one `mujoco.rollout` call, and the policy's action head.


class TaskVecEnv(JointVecEnv):
    """`count` copies of a scenario with its task.

    Args:
        params: of the simulator to train in: [P], or [count, P] where each copy has its own.
        bonus: reward to add, such as InfoGap.
        stagger: start the copies at random ages, so that their resets do not coincide.
        noisy: observe as the sensors show it, with their noise, delay, gain and bias; reward and bonus see the true
            state.
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
        tried_task(scenario)
        self.world = World.simulated(scenario, params, count, threads, seed)
        self.task = self.world.task
        super().__init__(count, observation_space(self.task), action_space(self.task))
        self.bonus = bonus
        self._scenario, self._params = scenario, params
        self._limit = scenario.episode_steps
        self._stagger, self._noisy = stagger, noisy
        self._begin_randomness(seed)
        self._age = np.zeros(count, int)
        self._return = np.zeros(count)
        self._whole = np.ones(count, bool)  # False in the first episode of a copy that starts in the middle of it
        self.task_reward = np.zeros(count)  # of the last step, without the bonus
        self._passed: tuple[Channels, Channels] = ({}, {})  # before and after the last step
        self._observation = np.zeros((count, self.task.observation_size), np.float32)
        self._action = np.zeros((count, self.task.action.size))

    def reset(self) -> np.ndarray:
        everyone = np.arange(self.num_envs)
        self._begin(everyone)
        if self._stagger:
            self._age = self._rng.integers(0, self._limit, self.num_envs)
            self._whole = self._age == 0
        self._observation = self._observe(everyone)
        return self._observation

    def step_async(self, actions: np.ndarray) -> None:
        self._action = np.clip(actions, -1.0, 1.0)

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        before = self.world.channels
        self.world.step(self._action)
        self._passed = before, self.world.channels
        after = self._observe()
        reward = self.task_reward = self.world.reward()
        if self.bonus is not None:
            seen, then = self.passed
            reward = reward + self.bonus(seen, self._action, then)
        self._age += 1
        self._return += reward
        failed = self._failed()
        done = failed | (self._age >= self._limit)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if done.any():
            ended = np.flatnonzero(done)
            self._report(infos, ended, after, failed)
            self._begin(ended)
            after = after.copy()
            after[ended] = self._observe(ended)[ended]
        self._observation = after
        return after, reward.astype(np.float32), done, infos

    def _observe(self, begun: np.ndarray | None = None) -> np.ndarray:
        """What a policy sees [B, n]; of all copies anew, or of those alone that have just begun."""
        if self._measuring is None:
            return self.world.observation()
        measuring, world = self._measuring, self.world
        return self.task.observe(measuring(world) if begun is None else measuring.first(world, begun))

    @property
    def passed(self) -> tuple[np.ndarray, np.ndarray]:
        """`bonus_features` [B, f] before and after the last step, of episodes that ended in it as well."""
        before, after = (bonus_features(self.task, self.world.limits, each) for each in self._passed)
        return before, after

    def _failed(self) -> np.ndarray:
        if self.task.failure is None:
            return np.zeros(self.num_envs, bool)
        return self.task.failure(self.world.channels)

    def _begin(self, copies: np.ndarray) -> None:
        self.world.place(copies, self.task.reset(self._rng, len(copies)))
        self._age[copies] = 0
        self._return[copies] = 0.0
        self._whole[copies] = True

    def _begin_randomness(self, seed: int | None) -> None:
        self._rng = np.random.default_rng(seed)
        rng = self._rng if self._noisy else None
        self._measuring = rng and Measuring(self._scenario, self.task, self.world.count, rng, self._params)

    def _report(self, infos: list[dict[str, Any]], ended: np.ndarray, last: np.ndarray, failed: np.ndarray) -> None:
        success = self.task.succeeded(self.world.channels)
        for i in ended:
            infos[i] = {"terminal_observation": last[i].copy(), "TimeLimit.truncated": not failed[i]}
            if self._whole[i]:  # what a part of an episode returned would make learning curves begin with a spike
                infos[i]["is_success"] = bool(success[i])
                infos[i]["episode"] = {"r": float(self._return[i]), "l": int(self._age[i]), "t": 0.0}

    def snapshot(self) -> dict[str, np.ndarray]:
        """Everything that the coming steps depend on, copied."""
        return {
            **self.world.snapshot(),
            **({} if self._measuring is None else self._measuring.snapshot("measured")),
            "age": self._age.copy(),
            "return": self._return.copy(),
            "whole": self._whole.copy(),
            "observation": self._observation.copy(),
            "generator": np.array(json.dumps(self._rng.bit_generator.state)),
        }

    def restore(self, snapshot: dict[str, np.ndarray]) -> None:
        """Undo `snapshot`."""
        self.world.restore(snapshot)
        if self._measuring is not None:
            self._measuring.restore(snapshot, "measured")
        self._age, self._return = snapshot["age"].copy(), snapshot["return"].copy()
        self._whole = snapshot["whole"].copy()
        self._observation = snapshot["observation"].copy()
        self._rng.bit_generator.state = json.loads(str(snapshot["generator"]))  # the noise draws from it, too

    def close(self) -> None:
        self.world.close()

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        self._begin_randomness(seed)
        return [seed] * self.num_envs


class HeadVecEnv(VecEnvWrapper):
    """Lets a learner choose what the policy's network chooses; the task's head makes actions of it."""

    def __init__(self, envs: TaskVecEnv) -> None:
        super().__init__(envs, action_space=gymnasium.spaces.Box(-1.0, 1.0, (envs.task.chosen_size,), np.float32))
        self._envs = envs
        self._last = np.zeros((envs.num_envs, envs.task.observation_size), np.float32)

    def reset(self) -> np.ndarray:
        self._last = self._envs.reset()
        return self._last

    def step_async(self, actions: np.ndarray) -> None:
        self._envs.step_async(self._envs.task.act(self._last, actions))

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        self._last, reward, done, infos = self._envs.step_wait()
        return self._last, reward, done, infos

    @property
    def task_reward(self) -> np.ndarray:
        """Task reward [B] of the last step, without the bonus."""
        return self._envs.task_reward

    @property
    def feature_size(self) -> int:
        """Numbers that a bonus looks at."""
        return len(self._envs.task.states.names) + 2

    @property
    def passed(self) -> tuple[np.ndarray, np.ndarray]:
        """[B, f] each, what a bonus looks at: before the last step and after it."""
        return self._envs.passed

    def bonus(self, seen: np.ndarray, chosen: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Compute the bonus [n] for transitions in which a network chose `chosen` [n, k].

        Args:
            seen: observations that it was chosen for, through the sensors' noise.
            before, after: `bonus_features`, which know no noise.
        """
        if self._envs.bonus is None:
            return np.zeros(len(chosen))
        return self._envs.bonus(before, self._envs.task.act(seen, chosen), after)

    def snapshot(self) -> dict[str, np.ndarray]:
        """Everything that the coming steps depend on; the last observation is the environment's own."""
        return self._envs.snapshot()

    def restore(self, snapshot: dict[str, np.ndarray]) -> None:
        """Undo `snapshot`."""
        self._envs.restore(snapshot)
        self._last = snapshot["observation"].copy()
