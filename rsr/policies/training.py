"""Training a policy in the batched world with PPO or SAC, from scratch or on from an earlier policy."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.vec_env import VecNormalize

from rsr.errors import PolicyError
from rsr.files import DAMAGED, read_arrays, write_arrays, write_json
from rsr.policies.checkpoint import Checkpoint, fingerprint
from rsr.policies.learner import OBSERVATION_LIMIT, Learner
from rsr.policies.policy import Policy
from rsr.policies.ppo import PPOAlgorithm, PPOSettings
from rsr.policies.recipes import Settings
from rsr.policies.sac import SACAlgorithm, SACSettings
from rsr.policies.vec_env import Bonus, PushVecEnv, ToolPlaneVecEnv
from rsr.progress import Advance
from rsr.scenarios import Scenario

_STATE = "training.npz"
_CURVE = "curve.json"


@dataclass(frozen=True)
class Trained:
    """A policy, what a later training needs to go on from it, and how it was learnt.

    Args:
        state: every network weight, the optimisers, the statistics of both normalisers, and SAC's replay buffer.
        curve: one row a rollout: environment steps, mean return and share of successes of the last 100 episodes.
    """

    policy: Policy
    state: dict[str, np.ndarray]
    curve: list[dict[str, float]]

    def save(self, folder: Path) -> None:
        self.policy.save(folder)
        write_arrays(folder / _STATE, self.state)
        write_json(folder / _CURVE, self.curve)


def load_state(folder: Path) -> dict[str, np.ndarray]:
    """Read what `train` needs to go on from a saved policy."""
    try:
        return read_arrays(folder / _STATE)
    except DAMAGED as error:
        raise PolicyError(
            got=f"{type(error).__name__}: {error}",
            expected=f"{_STATE}, written when the policy was trained",
            where=str(folder),
            next_step="Restore the folder with `dvc checkout`, or make it again with `dvc repro`.",
        ) from error


def train(
    scenario: Scenario,
    params: np.ndarray,
    settings: Settings,
    seed: int,
    advance: Advance,
    state: dict[str, np.ndarray] | None = None,
    bonus: Bonus | None = None,
    checkpoint: Path | None = None,
) -> Trained:
    """Train in the simulator with parameters [P], or each copy in its own with [copies, P].

    Args:
        settings: `PPOSettings` or `SACSettings`, which chooses the algorithm.
        state: of an earlier training to go on from (`load_state`); from scratch where None.
        bonus: reward to add to the task's, such as InfoGap; a function of its arguments alone.
        checkpoint: file to keep the unfinished training in. Where a killed one of the same scenario, settings, seed,
            state and bonus left it, training goes on from there to the same result; removed at the end.
    """
    torch.set_num_threads(1)  # small networks: a second thread costs more than it gives, and sums stay in one order
    with closing(PushVecEnv(scenario, params, settings.copies, seed, bonus=bonus)) as envs:
        learner = make_learner(envs, settings, seed)
        if state is not None:
            learner.go_on_from(state)
        kept = None
        if checkpoint is not None:
            kept = Checkpoint(checkpoint, fingerprint(scenario, params, settings, seed, state, bonus))
            kept.resume(learner)
        _learn(learner, settings, advance, kept)
    if kept is not None:
        kept.remove()
    return Trained(learner.policy(scenario.name, _card(learner, settings, seed)), learner.knowledge(), learner.curve)


def make_learner(envs: PushVecEnv, settings: Settings, seed: int) -> Learner:
    """Put algorithm and normaliser around the environment."""
    plane = ToolPlaneVecEnv(envs)
    normaliser = VecNormalize(plane, gamma=settings.gamma, clip_obs=OBSERVATION_LIMIT)
    match settings:
        case PPOSettings():
            algorithm = PPOAlgorithm(normaliser, settings, seed)
        case SACSettings():
            algorithm = SACAlgorithm(normaliser, settings, seed)
    return Learner(algorithm, normaliser, plane, [])


def _card(learner: Learner, settings: Settings, seed: int) -> dict[str, Any]:
    plain = {**asdict(settings), "hidden": list(settings.hidden)}
    return {"settings": plain, "seed": seed, "algorithm": learner.algorithm.name.upper()}


def _learn(learner: Learner, settings: Settings, advance: Advance, kept: Checkpoint | None) -> None:
    """Learn what is left to learn. SB3 resets neither counters nor world when told that this is a continuation."""
    model = learner.model
    callbacks: list[BaseCallback] = [_Recorder(learner.curve, settings.train_steps, advance)]
    if kept is not None:
        steps_between = settings.checkpoint_rollouts * settings.rollout_steps * settings.copies
        callbacks.append(_Keeper(kept, learner, steps_between))
    model.learn(settings.train_steps - model.num_timesteps, CallbackList(callbacks), reset_num_timesteps=False)


class _Recorder(BaseCallback):
    """Notes the learning curve and moves the progress bar, once a rollout."""

    def __init__(self, curve: list[dict[str, float]], total: int, advance: Advance) -> None:
        super().__init__()
        self._curve = curve
        self._total = total
        self._advance = advance

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        episodes = self.model.ep_info_buffer or []
        successes = self.model.ep_success_buffer or []
        if not episodes:
            self._advance(self.num_timesteps / self._total, "first episodes")
            return
        row = {
            "steps": float(self.num_timesteps),
            "mean_return": float(np.mean([episode["r"] for episode in episodes])),
            "success": float(np.mean(successes)),
        }
        self._curve.append(row)
        self._advance(self.num_timesteps / self._total, f"success {row['success']:.0%} while exploring")


class _Keeper(BaseCallback):
    """Writes the checkpoint where a rollout starts: after an update, before anything new is drawn."""

    def __init__(self, checkpoint: Checkpoint, learner: Learner, steps_between: int) -> None:
        super().__init__()
        self._checkpoint = checkpoint
        self._learner = learner
        self._steps_between = steps_between

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        steps = self._learner.model.num_timesteps
        if steps > 0 and steps % self._steps_between == 0:
            self._checkpoint.save(self._learner)
