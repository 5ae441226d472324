"""Training a policy of strikes with soft actor-critic, in whatever simulator; the best of its checkpoints is kept."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import gymnasium
import numpy as np
from stable_baselines3 import SAC
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger

from rsr.common import Advance, derive_seed, ignore, one_thread
from rsr.environments import JointVecEnv
from rsr.learned.clash.planning import Rollouts
from rsr.learned.clash.pushing import Pushed, StrikePolicy, strike
from rsr.learned.clash.segment import ACTIONS, OBSERVATIONS, Blocks, SegmentTask
from rsr.policies import snapshots

_LIMIT = 20.0
_LAYERS = ("latent_pi.0", "latent_pi.2", "mu")
COLLAPSED = 0.5
"""A training whose last checkpoint succeeds less than this share as often as its best one has collapsed."""


@dataclass(frozen=True)
class PushSettings:
    """Settings of SAC; by default many copies and few large batches, which learns a segment in some thousand strikes.

    Args:
        train_steps: strikes, over all copies.
        final_rate: share of the learning rate that is left in the end; it falls evenly.
        rollout_steps: strikes of each copy from one round of gradient steps to the next.
        gradient_steps: in each round.
        warm_up_steps: random strikes before anything is learnt.
        judged_every: strikes from one checkpoint to the next. judged_on: episodes that a checkpoint is judged on.
    """

    train_steps: int = 16_384
    copies: int = 64
    rollout_steps: int = 4
    gradient_steps: int = 32
    batch_size: int = 512
    learning_rate: float = 3e-3
    final_rate: float = 0.1
    gamma: float = 0.98
    target_rate: float = 0.01
    warm_up_steps: int = 2048
    hidden: tuple[int, int] = (64, 64)
    judged_every: int = 2048
    judged_on: int = 256


SB3_DEFAULTS = PushSettings(
    train_steps=200_000,
    copies=1,
    rollout_steps=1,
    gradient_steps=1,
    batch_size=256,
    learning_rate=3e-4,
    final_rate=1.0,
    gamma=0.99,
    target_rate=0.005,
    warm_up_steps=100,
    hidden=(256, 256),
    judged_every=10_000,
)
"""As the paper does it: 200,000 steps, and the rest as Stable-Baselines3 has it; most of an hour of CPU."""


@dataclass(frozen=True)
class PushCheck:
    """A checkpoint: share of segments that it succeeds on in its own simulator, without exploring."""

    steps: int
    success: float
    mean_return: float


@dataclass(frozen=True)
class TrainedPush:
    """The best checkpoint, and all of them in order.

    Args:
        seconds: wall time of the training.
    """

    policy: StrikePolicy
    checkpoints: tuple[PushCheck, ...]
    seconds: float

    @property
    def best(self) -> PushCheck:
        return max(self.checkpoints, key=_worth)

    @property
    def collapsed(self) -> bool:
        return self.checkpoints[-1].success < COLLAPSED * self.best.success


class SegmentVecEnv(JointVecEnv):
    """A segment for Stable-Baselines3: `count` blocks, struck together. One step is one strike of each."""

    def __init__(self, task: SegmentTask, rollouts: Rollouts, count: int, seed: int) -> None:
        self.render_mode = None
        observation = gymnasium.spaces.Box(-_LIMIT, _LIMIT, (len(OBSERVATIONS),), np.float32)
        super().__init__(count, observation, gymnasium.spaces.Box(-1.0, 1.0, (len(ACTIONS),), np.float32))
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
        # Spent strikes end the task itself, and are observed: a terminal state, not a truncated episode.
        self._returns[ended] = 0
        self._blocks = _anew(outcome.blocks, ended, self._task.starts(len(ended), self._rng))
        return self._task.observe(self._blocks), outcome.reward.astype(np.float32), outcome.ended, infos

    def close(self) -> None:
        pass

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        self._rng = np.random.default_rng(seed)
        return [seed] * self.num_envs


def _anew(blocks: Blocks, rows: np.ndarray, starts: Blocks) -> Blocks:
    """Put other blocks in some rows."""
    columns = {name: getattr(blocks, name).copy() for name in Blocks.__annotations__}
    for name, column in columns.items():
        column[rows] = getattr(starts, name)
    return Blocks(**columns)


def train_push(
    task: SegmentTask, rollouts: Rollouts, settings: PushSettings, seed: int = 0, advance: Advance = ignore
) -> TrainedPush:
    """Train from scratch. Equal arguments give equal policies."""
    start_s = time.perf_counter()
    judge = _Judge(task, rollouts, settings, derive_seed(seed, "judge"), advance)
    with one_thread():  # small networks: a second thread costs more than it gives
        _learner(task, rollouts, settings, seed).learn(settings.train_steps, judge)
    layers = judge.best_layers
    card = {"settings": asdict(settings) | {"hidden": list(settings.hidden)}, "seed": seed}
    card |= {"checkpoints": [asdict(checked) for checked in judge.checkpoints]}
    return TrainedPush(StrikePolicy(task, layers, card), tuple(judge.checkpoints), time.perf_counter() - start_s)


def _learner(task: SegmentTask, rollouts: Rollouts, settings: PushSettings, seed: int) -> SAC:
    learner = SAC(
        "MlpPolicy",
        SegmentVecEnv(task, rollouts, settings.copies, derive_seed(seed, "segments")),
        train_freq=settings.rollout_steps,
        gradient_steps=settings.gradient_steps,
        batch_size=settings.batch_size,
        learning_rate=lambda left: settings.learning_rate * max(left, settings.final_rate),
        gamma=settings.gamma,
        tau=settings.target_rate,
        # Nothing is ever forgotten: strikes are dear and a segment is learnt from some thousand of them.
        buffer_size=settings.train_steps + settings.copies,
        learning_starts=settings.warm_up_steps,
        seed=derive_seed(seed, "sac") % 2**31,
        device="cpu",
        policy_kwargs={"net_arch": list(settings.hidden), "optimizer_kwargs": {"fused": True}},
    )
    learner.set_logger(Logger(folder=None, output_formats=[]))  # SB3's own leaves a folder in the temporary one
    return learner


def success_in(policy: StrikePolicy, rollouts: Rollouts, episodes: int, seed: int) -> tuple[float, float]:
    """Share of segments that a policy succeeds on, from starts as in training, and the mean return."""
    task = policy.task
    blocks = task.starts(episodes, np.random.default_rng(seed))
    reached, total = 0, 0.0
    while len(blocks):
        outcome = strike(task, rollouts, blocks, policy.act(task.observe(blocks)))
        reached += int(outcome.reached.sum())
        total += float(outcome.reward.sum())
        blocks = outcome.blocks.take(~outcome.ended)
    return reached / episodes, total / episodes


def push_figures(trained: TrainedPush, pushed: Sequence[Pushed]) -> dict[str, Any]:
    """Figures of a training for JSON: routes, checkpoints, time."""
    routes = {
        run.route.name: {"success": run.success, "segments_completed": run.segments_completed, "trials": len(run.paths)}
        for run in pushed
    }
    checkpoints = [asdict(checked) for checked in trained.checkpoints]
    flags = {"collapsed": trained.collapsed, "training_seconds": trained.seconds}
    return flags | {"routes": routes, "checkpoints": checkpoints, "best_success": trained.best.success}


Layers = tuple[tuple[np.ndarray, np.ndarray], ...]


def _worth(checked: PushCheck) -> tuple[float, float]:
    return checked.success, checked.mean_return


class _Judge(BaseCallback):
    """Judges the policy every so many strikes and keeps the best."""

    def __init__(
        self, task: SegmentTask, rollouts: Rollouts, settings: PushSettings, seed: int, advance: Advance
    ) -> None:
        super().__init__()
        self.checkpoints: list[PushCheck] = []
        self.best_layers: Layers = ()
        self._task, self._rollouts, self._settings = task, rollouts, settings
        self._seed, self._advance = seed, advance

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        due = (len(self.checkpoints) + 1) * self._settings.judged_every
        if self.num_timesteps >= due and self.num_timesteps > self._settings.warm_up_steps:
            self._check()

    def _on_training_end(self) -> None:
        self._check()

    def _check(self) -> None:
        weights = snapshots.weights(cast(SAC, self.model).actor)
        # The mean of SAC's Gaussian, without its exploration: what is judged is what is carried out.
        layers = tuple((weights[f"{name}.weight"], weights[f"{name}.bias"]) for name in _LAYERS)
        policy = StrikePolicy(self._task, layers)
        judged = success_in(policy, self._rollouts, self._settings.judged_on, self._seed)
        checked = PushCheck(self.num_timesteps, *judged)
        if not self.checkpoints or _worth(checked) > max(map(_worth, self.checkpoints)):
            self.best_layers = layers
        self.checkpoints.append(checked)
        self._advance(self.num_timesteps / self._settings.train_steps, f"success {checked.success:.0%}")
