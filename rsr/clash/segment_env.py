"""A segment as an environment: one block for Gymnasium, many at once for Stable-Baselines3. One step is one strike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from rsr.clash.planning import Rollouts
from rsr.clash.segment import ACTIONS, OBSERVATIONS, Blocks, Outcome, SegmentTask
from rsr.policies.joint_envs import JointVecEnv

_LIMIT = 20.0


def spaces() -> tuple[gymnasium.spaces.Box, gymnasium.spaces.Box]:
    """Observations and actions."""
    observation = gymnasium.spaces.Box(-_LIMIT, _LIMIT, (len(OBSERVATIONS),), np.float32)
    return observation, gymnasium.spaces.Box(-1.0, 1.0, (len(ACTIONS),), np.float32)


class SegmentEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """One block.

    Args:
        rollouts: from strikes to where blocks come to rest: `HybridStrikes`, or a rollout of MuJoCo.
    """

    def __init__(self, task: SegmentTask, rollouts: Rollouts) -> None:
        self.observation_space, self.action_space = spaces()
        self._task, self._rollouts = task, rollouts

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._blocks = self._task.starts(1, self.np_random)
        return self._task.observe(self._blocks)[0], {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        outcome = strike(self._task, self._rollouts, self._blocks, action[None])
        self._blocks = outcome.blocks
        # Spent strikes end the task itself, and are observed: a terminal state, not a truncated episode.
        ended = bool(outcome.ended[0])
        info = {"is_success": bool(outcome.reached[0])}
        return self._task.observe(self._blocks)[0], float(outcome.reward[0]), ended, False, info


class SegmentVecEnv(JointVecEnv):
    """`count` blocks, struck together; `rollouts` is asked once a step."""

    def __init__(self, task: SegmentTask, rollouts: Rollouts, count: int, seed: int) -> None:
        self.render_mode = None
        super().__init__(count, *spaces())
        self._task, self._rollouts = task, rollouts
        self._rng = np.random.default_rng(seed)
        self._blocks = task.starts(count, self._rng)
        self._returns = np.zeros(count)
        self._actions = np.zeros((count, len(ACTIONS)))

    def reset(self) -> np.ndarray:
        self._blocks = self._task.starts(self.num_envs, self._rng)
        self._returns[:] = 0
        return self._task.observe(self._blocks)

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        outcome = strike(self._task, self._rollouts, self._blocks, self._actions)
        self._returns += outcome.reward
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        last = self._task.observe(outcome.blocks)
        ended = np.flatnonzero(outcome.ended)
        for copy in ended:
            infos[copy] = {"terminal_observation": last[copy], "is_success": bool(outcome.reached[copy])}
            infos[copy]["episode"] = {"r": self._returns[copy], "l": outcome.blocks.struck[copy], "t": 0.0}
        self._returns[ended] = 0
        self._blocks = _anew(outcome.blocks, ended, self._task.starts(len(ended), self._rng))
        return self._task.observe(self._blocks), outcome.reward.astype(np.float32), outcome.ended, infos

    def close(self) -> None:
        pass

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        self._rng = np.random.default_rng(seed)
        return [seed] * self.num_envs


def strike(task: SegmentTask, rollouts: Rollouts, blocks: Blocks, actions: np.ndarray) -> Outcome:
    """Strike each block once."""
    return task.outcome(blocks, rollouts(task.strikes(actions)))


def _anew(blocks: Blocks, rows: np.ndarray, starts: Blocks) -> Blocks:
    """Put other blocks in some rows."""
    columns = {name: getattr(blocks, name).copy() for name in Blocks.__annotations__}
    for name, column in columns.items():
        column[rows] = getattr(starts, name)
    return Blocks(**columns)
