"""Soft actor-critic: SB3's SAC with three-step returns and the settings that were measured to learn fastest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from stable_baselines3 import SAC
from stable_baselines3.common.vec_env import VecNormalize

from rsr.policies import snapshots
from rsr.policies.learner import Actor
from rsr.policies.replay import Replay
from rsr.policies.snapshots import Snapshot

_LAYERS = ("latent_pi.0", "latent_pi.2", "mu")
_TEMPERATURE = "log_entropy_coefficient"


@dataclass(frozen=True)
class SACSettings:
    """What was measured to learn fastest on two cores: many copies, few large batches, returns over three steps.

    Args:
        train_steps: environment steps, over all copies.
        rollout_steps: control steps of each copy from one round of gradient steps to the next.
        gradient_steps: in each round.
        final_rate: share of the learning rate that is left in the end; it falls evenly.
        return_steps: rewards added up before the critic's estimate takes over.
        buffer: transitions kept, at most; 360 bytes each in push_cube, in memory and in what is stored.
        warm_up_steps: environment steps of random actions before anything is learnt, unless a training goes on.
        target_rate: share by which the target critics follow the critics in each gradient step.
        checkpoint_rollouts: rollouts from one checkpoint to the next; some seconds of work that a kill can cost.
    """

    train_steps: int
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
            replay_buffer_kwargs={"plane": envs.venv, "n_steps": settings.return_steps, "gamma": settings.gamma},
            seed=seed,
            device="cpu",
            policy_kwargs={"net_arch": list(settings.hidden), "optimizer_kwargs": {"fused": True}},
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

    def actor(self) -> Actor:
        weights = snapshots.weights(self.model.actor)
        layers = tuple((weights[f"{name}.weight"], weights[f"{name}.bias"]) for name in _LAYERS)
        return Actor(layers, activation="relu", squashed=True)

    @property
    def _replay(self) -> Replay:
        return cast(Replay, self.model.replay_buffer)

    @property
    def _log_temperature(self) -> torch.Tensor:
        return cast(torch.Tensor, self.model.log_ent_coef)
