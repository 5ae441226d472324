"""Proximal policy optimisation: SB3's PPO with the settings that were measured to learn fastest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize

from rsr.policies import snapshots
from rsr.policies.learner import ActorNetworks, network_settings
from rsr.policies.snapshots import Snapshot

_LAYERS = ("mlp_extractor.policy_net.0", "mlp_extractor.policy_net.2", "action_net")


@dataclass(frozen=True)
class PPOSettings:
    """Settings measured to learn fastest on two cores: large batches, ten epochs, a high rate that decays to 5 %.

    Args:
        train_steps: environment steps at most, over all copies.
        rollout_steps: control steps of each copy from one update to the next.
        exploration_std: standard deviation of the actions to begin with; a policy that is trained on starts
            with at least `continued_std` where it fails.
        checkpoint_rollouts: rollouts from one checkpoint to the next; some seconds of work that a kill can cost.
        checks: of success in so many steps, by which a training ends earlier; 0: never. See `EarlyStopping`.
    """

    train_steps: int = 1_000_000
    copies: int = 64
    rollout_steps: int = 128
    batch_size: int = 1024
    epochs: int = 10
    learning_rate: float = 1e-3
    gamma: float = 0.98
    gae_lambda: float = 0.97
    exploration_std: float = 0.6
    continued_std: float = 0.37
    hidden: tuple[int, int] = (64, 64)
    checkpoint_rollouts: int = 5
    checks: int = 20


class PPOAlgorithm:
    """PPO as `Learner` drives it. Nothing but weights and optimiser outlives an update."""

    name = "ppo"

    def __init__(self, envs: VecNormalize, settings: PPOSettings, seed: int) -> None:
        self._least_std = settings.continued_std
        self.model = PPO(
            "MlpPolicy",
            envs,
            n_steps=settings.rollout_steps,
            batch_size=settings.batch_size,
            n_epochs=settings.epochs,
            learning_rate=lambda left: settings.learning_rate * max(left, 0.05),
            gamma=settings.gamma,
            gae_lambda=settings.gae_lambda,
            seed=seed,
            device="cpu",
            policy_kwargs=network_settings(envs, settings.hidden, log_std_init=float(np.log(settings.exploration_std))),
        )

    def weights(self) -> Snapshot:
        return snapshots.weights(self.model.policy)

    def set_weights(self, weights: Snapshot) -> None:
        snapshots.set_weights(self.model.policy, weights)

    def optimisers(self) -> dict[str, torch.optim.Optimizer]:
        return {"policy": self.model.policy.optimizer}

    def experience(self) -> Snapshot:
        return {}

    def set_experience(self, experience: Snapshot) -> None:
        """PPO learns from the rollout at hand alone."""

    def prepare_to_go_on(self) -> None:
        """PPO is ready."""

    def explore_anew(self) -> None:
        """What was learnt last had nearly stopped to explore."""
        with torch.no_grad():
            self.model.policy.log_std.clamp_(min=float(np.log(self._least_std)))

    def actor(self) -> ActorNetworks:
        weights = self.weights()
        layers = tuple((weights[f"{name}.weight"], weights[f"{name}.bias"]) for name in _LAYERS)
        return ActorNetworks(layers, activation="tanh", squashed=False)
