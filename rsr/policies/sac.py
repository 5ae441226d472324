"""The transitions that SAC learns from, kept from one training to the next.

What a transition was paid consists of two parts that age differently. The task's reward stays true for ever. The bonus
is InfoGap's, which each iteration defines anew; so the buffer also keeps the task's part alone, and a training that
goes on pays the old transitions by its own bonus before it learns from them. A bonus looks at features of the true
state, which sensor noise hides from the learner: those are kept, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from stable_baselines3 import SAC
from stable_baselines3.common.buffers import NStepReplayBuffer
from stable_baselines3.common.vec_env import VecNormalize

from rsr.common import PolicyError
from rsr.environments import HeadVecEnv
from rsr.policies import snapshots
from rsr.policies.learner import ActorNetworks, network_settings
from rsr.policies.snapshots import Snapshot

_ARRAYS = (
    "observations", "next_observations", "features", "next_features", "actions", "rewards", "task_rewards", "dones",
    "timeouts",
)  # fmt: skip


class Replay(NStepReplayBuffer):
    """SB3's ring of transitions [rows, copies, ...], which also knows what the task alone has paid, and for what.

    Args:
        envs: the environment that the transitions come from.
    """

    def __init__(self, *args: Any, envs: HeadVecEnv, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._envs = envs
        self.task_rewards = np.zeros_like(self.rewards)
        width = envs.feature_size
        self.features = np.zeros((self.buffer_size, self.n_envs, width), np.float32)
        self.next_features = np.zeros_like(self.features)

    def add(self, *args: Any, **kwargs: Any) -> None:
        self.task_rewards[self.pos] = self._envs.task_reward
        self.features[self.pos], self.next_features[self.pos] = self._envs.passed
        super().add(*args, **kwargs)

    def pay_anew(self) -> None:
        """Set every reward to the task's part and what the environment's present bonus pays for the transition."""
        for row in range(self.size()):
            features = self.features[row], self.next_features[row]
            bonus = self._envs.bonus(self.observations[row], self.actions[row], *features)
            self.rewards[row] = self.task_rewards[row] + bonus

    def end_episodes(self) -> None:
        """Let no return reach from the last stored transitions into those that another training adds."""
        self.dones[self.pos - 1] = self.timeouts[self.pos - 1] = 1.0

    def snapshot(self) -> Snapshot:
        """Copy the stored transitions; the empty rest of the ring is left out."""
        arrays = {name: getattr(self, name)[: self.size()].copy() for name in _ARRAYS}
        return {**arrays, "position": np.array(self.pos)}

    def restore(self, snapshot: Snapshot) -> None:
        """Undo `snapshot`. Nothing at all is an empty buffer, and so is one of an earlier version, without features."""
        self.reset()
        if not snapshot or "features" not in snapshot:
            return
        rows = self._checked_rows(snapshot)
        for name in _ARRAYS:
            getattr(self, name)[:rows] = snapshot[name]
        self.pos = int(snapshot["position"])
        self.full = rows == self.buffer_size

    def _checked_rows(self, snapshot: Snapshot) -> int:
        rows, *shape = snapshot["observations"].shape
        capacity, *wanted = self.observations.shape
        if shape == wanted and rows <= capacity:
            return rows
        raise PolicyError(
            got=f"a replay buffer of {rows} x {' x '.join(map(str, shape))} numbers",
            expected=f"at most {capacity} x {' x '.join(map(str, wanted))} (rows, copies, width of an observation)",
            where="the training to go on from",
            next_step="Use the scenario, `copies` and `buffer` of the earlier training, or begin from scratch.",
        )


# Soft actor-critic: SB3's SAC with three-step returns and the settings that were measured to learn fastest.

_LAYERS = ("latent_pi.0", "latent_pi.2", "mu")
_TEMPERATURE = "log_entropy_coefficient"


@dataclass(frozen=True)
class SACSettings:
    """Settings measured to learn fastest on two cores: many copies, few large batches, returns over three steps.

    Args:
        train_steps: environment steps at most, over all copies.
        rollout_steps: control steps of each copy from one round of gradient steps to the next.
        gradient_steps: in each round.
        final_rate: share of the learning rate that is left in the end; it falls evenly.
        return_steps: rewards added up before the critic's estimate takes over.
        buffer: transitions kept, at most; some 240 bytes each at 21 observed values, in memory and in what is stored.
        warm_up_steps: environment steps of random actions before anything is learnt, unless a training goes on.
        target_rate: share by which the target critics follow the critics in each gradient step.
        checkpoint_rollouts: rollouts from one checkpoint to the next; some seconds of work that a kill can cost.
        checks: of success in so many steps, by which a training ends earlier; 0: never. See `EarlyStopping`.
    """

    train_steps: int = 400_000
    copies: int = 64
    rollout_steps: int = 8
    gradient_steps: int = 32
    batch_size: int = 1024
    learning_rate: float = 3e-3
    final_rate: float = 0.1
    gamma: float = 0.98
    return_steps: int = 3
    target_rate: float = 0.01
    buffer: int = 200_000
    warm_up_steps: int = 4096
    hidden: tuple[int, int] = (64, 64)
    checkpoint_rollouts: int = 50
    checks: int = 20


class SACAlgorithm:
    """SAC as `Learner` drives it: actor, critics, their targets, the temperature, and a replay buffer."""

    name = "sac"

    def __init__(self, envs: VecNormalize, settings: SACSettings, seed: int) -> None:
        self.model = SAC(
            "MlpPolicy",
            envs,
            train_freq=settings.rollout_steps,
            gradient_steps=settings.gradient_steps,
            batch_size=settings.batch_size,
            learning_rate=lambda left: settings.learning_rate * max(left, settings.final_rate),
            gamma=settings.gamma,
            tau=settings.target_rate,
            buffer_size=settings.buffer,
            learning_starts=settings.warm_up_steps,
            replay_buffer_class=Replay,
            replay_buffer_kwargs={"envs": envs.venv, "n_steps": settings.return_steps, "gamma": settings.gamma},
            seed=seed,
            device="cpu",
            policy_kwargs=network_settings(envs, settings.hidden, optimizer_kwargs={"fused": True}),
        )

    def weights(self) -> Snapshot:
        temperature = self._log_temperature.detach().numpy().copy()
        return {**snapshots.weights(self.model.policy), _TEMPERATURE: temperature}

    def set_weights(self, weights: Snapshot) -> None:
        networks = {name: array for name, array in weights.items() if name != _TEMPERATURE}
        snapshots.set_weights(self.model.policy, networks)
        with torch.no_grad():
            self._log_temperature.copy_(torch.from_numpy(weights[_TEMPERATURE]))

    def optimisers(self) -> dict[str, torch.optim.Optimizer]:
        temperature = cast(torch.optim.Optimizer, self.model.ent_coef_optimizer)
        return {
            "actor": self.model.actor.optimizer,
            "critic": self.model.critic.optimizer,
            "temperature": temperature,
        }

    def experience(self) -> Snapshot:
        return self._replay.snapshot()

    def set_experience(self, experience: Snapshot) -> None:
        self._replay.restore(experience)

    def prepare_to_go_on(self) -> None:
        """Pay the old transitions by the present bonus and learn from them at once, without random actions first.

        They show the simulator as it was before it was tuned; new ones displace them, the oldest first.
        """
        if self._replay.size() == 0:
            return
        self._replay.pay_anew()
        self._replay.end_episodes()
        self.model.learning_starts = 0

    def explore_anew(self) -> None:
        """SAC's temperature follows what it explores."""

    def actor(self) -> ActorNetworks:
        weights = snapshots.weights(self.model.actor)
        layers = tuple((weights[f"{name}.weight"], weights[f"{name}.bias"]) for name in _LAYERS)
        return ActorNetworks(layers, activation="relu", squashed=True)

    @property
    def _replay(self) -> Replay:
        return cast(Replay, self.model.replay_buffer)

    @property
    def _log_temperature(self) -> torch.Tensor:
        return cast(torch.Tensor, self.model.log_ent_coef)
