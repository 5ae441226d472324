"""Training a policy with Stable-Baselines3 PPO in the batched world, from scratch or on from an earlier policy."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.vec_env import VecNormalize

from rsr.errors import ConfigError, PolicyError
from rsr.files import DAMAGED, read_arrays, write_arrays, write_json
from rsr.policies.checkpoint import ROLLOUTS_BETWEEN, Checkpoint, Learner, fingerprint
from rsr.policies.policy import Normaliser, Policy
from rsr.policies.vec_env import Bonus, PushCubeVecEnv, ToolPlaneVecEnv
from rsr.progress import Advance
from rsr.scenarios import Scenario

SCENARIOS_WITH_TASK = ("push_cube",)
_STATE = "training.npz"
_CURVE = "curve.json"
_OBSERVATION_LIMIT = 5.0
_LAYERS = ("mlp_extractor.policy_net.0", "mlp_extractor.policy_net.2", "action_net")


@dataclass(frozen=True)
class PPOSettings:
    """What was measured to learn fastest on two cores: large batches, ten epochs, a high rate that decays to 5 %.

    Args:
        train_steps: environment steps, over all copies.
        exploration_std: standard deviation of the actions to begin with; a policy trained on starts with at least
            `continued_std`.
    """

    train_steps: int
    copies: int = 64
    rollout_steps: int = 128
    batch_size: int = 2048
    epochs: int = 10
    learning_rate: float = 1e-3
    gamma: float = 0.98
    exploration_std: float = 0.6
    continued_std: float = 0.37
    hidden: tuple[int, ...] = (64, 64)


@dataclass(frozen=True)
class Trained:
    """A policy, what a later training needs to go on from it, and how it was learnt.

    Args:
        state: every network weight and the statistics of both normalisers.
        curve: one row a rollout: environment steps, mean return and share of successes of recent episodes.
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
    settings: PPOSettings,
    seed: int,
    advance: Advance,
    state: dict[str, np.ndarray] | None = None,
    bonus: Bonus | None = None,
    checkpoint: Path | None = None,
) -> Trained:
    """Train in the simulator with parameters [P].

    Args:
        state: of an earlier training to go on from (`load_state`); from scratch where None.
        bonus: reward to add to the task's, such as InfoGap; a function of its arguments alone.
        checkpoint: file to keep the unfinished training in. Where a killed one of the same scenario, settings, seed,
            state and bonus left it, training goes on from there to the same result; removed at the end.
    """
    _check_task(scenario)
    torch.set_num_threads(1)  # small networks: a second thread costs more than it gives, and sums stay in one order
    with closing(PushCubeVecEnv(scenario, params, settings.copies, seed, bonus=bonus)) as envs:
        learner = _learner(envs, settings, seed)
        if state is not None:
            _go_on_from(learner, state, settings.continued_std)
        kept = None
        if checkpoint is not None:
            kept = Checkpoint(checkpoint, fingerprint(scenario, params, settings, seed, state, bonus))
            kept.resume(learner)
        _learn(learner, settings, advance, kept)
    if kept is not None:
        kept.remove()
    card = {"settings": {**asdict(settings), "hidden": list(settings.hidden)}, "seed": seed, "algorithm": "PPO"}
    return Trained(_policy(scenario, learner, card), learner.knowledge(), learner.curve)


def _check_task(scenario: Scenario) -> None:
    if scenario.name not in SCENARIOS_WITH_TASK:
        raise ConfigError(
            got=f"scenario {scenario.name}, which has no task to learn",
            expected=f"one of {', '.join(SCENARIOS_WITH_TASK)}",
            where="training",
            next_step="Choose one of these; the others can be calibrated (`rsr calibrate`), not yet trained in.",
        )


def _learn(learner: Learner, settings: PPOSettings, advance: Advance, kept: Checkpoint | None) -> None:
    """Learn what is left to learn. SB3 resets neither counters nor world when told that this is a continuation."""
    model = learner.model
    callbacks: list[BaseCallback] = [_Recorder(learner.curve, settings.train_steps, advance)]
    if kept is not None:
        callbacks.append(_Keeper(kept, learner))
    model.learn(settings.train_steps - model.num_timesteps, CallbackList(callbacks), reset_num_timesteps=False)


def _learner(envs: PushCubeVecEnv, settings: PPOSettings, seed: int) -> Learner:
    plane = ToolPlaneVecEnv(envs)
    normaliser = VecNormalize(plane, gamma=settings.gamma, clip_obs=_OBSERVATION_LIMIT)
    model = PPO(
        "MlpPolicy",
        normaliser,
        n_steps=settings.rollout_steps,
        batch_size=settings.batch_size,
        n_epochs=settings.epochs,
        learning_rate=lambda left: settings.learning_rate * max(left, 0.05),
        gamma=settings.gamma,
        seed=seed,
        device="cpu",
        policy_kwargs={"net_arch": list(settings.hidden), "log_std_init": float(np.log(settings.exploration_std))},
    )
    return Learner(model, normaliser, plane, [])


def _go_on_from(learner: Learner, state: dict[str, np.ndarray], least_std: float) -> None:
    learner.take_over(state)
    with torch.no_grad():
        learner.model.policy.log_std.clamp_(min=float(np.log(least_std)))


def _policy(scenario: Scenario, learner: Learner, card: dict[str, Any]) -> Policy:
    weights = {name: tensor.numpy().copy() for name, tensor in learner.model.policy.state_dict().items()}
    layers = tuple((weights[f"{name}.weight"], weights[f"{name}.bias"]) for name in _LAYERS)
    seen = learner.observation_statistics
    return Policy(scenario.name, Normaliser(seen.mean.copy(), seen.var.copy(), _OBSERVATION_LIMIT), layers, card)


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

    def __init__(self, checkpoint: Checkpoint, learner: Learner) -> None:
        super().__init__()
        self._checkpoint = checkpoint
        self._learner = learner

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        model = self._learner.model
        rollouts = model.num_timesteps // (model.n_steps * model.n_envs)
        if rollouts > 0 and rollouts % ROLLOUTS_BETWEEN == 0:
            self._checkpoint.save(self._learner)
