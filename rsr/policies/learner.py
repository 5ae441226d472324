"""A training under way, whichever algorithm it runs: what it has learnt, and all that the rest of it depends on."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import gymnasium
import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.preprocessing import get_flattened_obs_dim
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecNormalize

from rsr.common import PolicyError
from rsr.environments import HeadVecEnv
from rsr.policies import snapshots
from rsr.policies.policy import Normaliser, Policy
from rsr.policies.snapshots import Snapshot, prefixed, under
from rsr.scenarios import Task

OBSERVATION_LIMIT = 5.0
"""Normalised observations are clipped here."""
_FIRST_ALGORITHM = "ppo"
"""Trainings stored before there was a choice do not say which algorithm they are of."""


@dataclass(frozen=True)
class ActorNetworks:
    """The deterministic part of what was learnt, as `Policy` takes it."""

    layers: tuple[tuple[np.ndarray, np.ndarray], ...]
    activation: str
    squashed: bool


class Algorithm(Protocol):
    """Interface of PPO and SAC around one SB3 model. All that they share is in `Learner`."""

    name: str

    @property
    def model(self) -> BaseAlgorithm: ...

    def weights(self) -> Snapshot:
        """Every number that gradients have formed."""
        ...

    def set_weights(self, weights: Snapshot) -> None: ...

    def optimisers(self) -> dict[str, torch.optim.Optimizer]: ...

    def experience(self) -> Snapshot:
        """Transitions that coming updates draw from; nothing where an update is made of its own rollout alone."""
        ...

    def set_experience(self, experience: Snapshot) -> None: ...

    def prepare_to_go_on(self) -> None:
        """Make what an earlier training left ready for another world and another reward."""
        ...

    def explore_anew(self) -> None:
        """Explore as much as what must still be learnt asks for."""
        ...

    def actor(self) -> ActorNetworks: ...


class SeenColumns(BaseFeaturesExtractor):
    """What a task's network sees of an observation: not the first columns, which are for the action head alone."""

    def __init__(self, observation_space: gymnasium.Space[Any], unseen: int) -> None:
        super().__init__(observation_space, get_flattened_obs_dim(observation_space) - unseen)
        self._unseen = unseen

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return observations[:, self._unseen :]


def network_settings(envs: VecNormalize, hidden: tuple[int, ...], **more: Any) -> dict[str, Any]:
    """SB3's `policy_kwargs` of a network that sees what the task lets it see."""
    unseen = envs.get_attr("task")[0].unseen
    extractor = {"features_extractor_class": SeenColumns, "features_extractor_kwargs": {"unseen": unseen}}
    return {"net_arch": list(hidden), **extractor, **more}


@dataclass(frozen=True)
class Learner:
    """State of a training.

    Args:
        normaliser, envs: the two wrappers around the environment.
        curve: so far.
        checks: of success, see `rsr.policies.early_stopping`: steps, share and room.
        kept: what the training ends with; see `keep`.
    """

    algorithm: Algorithm
    normaliser: VecNormalize
    envs: HeadVecEnv
    curve: list[dict[str, float]] = field(default_factory=list)
    checks: list[dict[str, float]] = field(default_factory=list)
    kept: Snapshot = field(default_factory=dict)

    @property
    def model(self) -> BaseAlgorithm:
        return self.algorithm.model

    def policy(self, task: Task, card: dict[str, Any]) -> Policy:
        """The deterministic policy as it stands."""
        statistics, actor = self._observation_statistics, self.algorithm.actor()
        normaliser = Normaliser(statistics.mean.copy(), statistics.var.copy(), OBSERVATION_LIMIT)
        (weight, bias), *others = actor.layers
        layers = ((np.pad(weight, ((0, 0), (task.unseen, 0))), bias), *others)  # zeros for what it does not see
        return Policy(task, normaliser, layers, card, actor.activation, actor.squashed)

    def knowledge(self) -> Snapshot:
        """Weights, optimisers, normalisers and experience, from which a later training goes on."""
        return {**self._learnt(), **prefixed("experience", self.algorithm.experience())}

    def _learnt(self) -> Snapshot:
        optimisers = self.algorithm.optimisers()
        return {
            "algorithm": np.array(self.algorithm.name),
            **prefixed("net", self.algorithm.weights()),
            **prefixed("observation", snapshots.statistics(self._observation_statistics)),
            **prefixed("return", snapshots.statistics(self.normaliser.ret_rms)),
            **{
                f"optimiser.{name}.{key}": array
                for name, optimiser in optimisers.items()
                for key, array in snapshots.optimiser_state(optimiser).items()
            },
        }

    def keep(self) -> None:
        """Remember what was learnt up to here, to end the training with."""
        self.kept.clear()
        self.kept.update({**self._learnt(), "steps": np.array(self.model.num_timesteps)})

    @property
    def kept_steps(self) -> int:
        """Environment steps after which `keep` was called last."""
        return int(self.kept["steps"])

    def return_to_kept(self) -> None:
        """End with what was remembered; experience of after that is none the worse and stays."""
        if self.kept:
            self.take_over({**self.kept, **prefixed("experience", self.algorithm.experience())})

    def take_over(self, knowledge: Snapshot) -> None:
        """Undo `knowledge`; the world and the generators stay as they are."""
        self._check(knowledge)
        self.algorithm.set_weights(under("net", knowledge))
        snapshots.set_statistics(self._observation_statistics, under("observation", knowledge))
        snapshots.set_statistics(self.normaliser.ret_rms, under("return", knowledge))
        for name, optimiser in self.algorithm.optimisers().items():
            snapshots.set_optimiser_state(optimiser, under(f"optimiser.{name}", knowledge))
        self.algorithm.set_experience(under("experience", knowledge))

    def go_on_from(self, knowledge: Snapshot) -> None:
        """Begin where an earlier training ended, in a world and for a reward that may be others."""
        self.take_over(knowledge)
        self.algorithm.prepare_to_go_on()

    def snapshot(self) -> Snapshot:
        """Gather everything that the rest of the training depends on."""
        return {
            **self.knowledge(),
            **prefixed("environment", self.envs.snapshot()),
            **prefixed("generator", snapshots.generators(self.model.action_space)),
            **prefixed("kept", self.kept),
            "running_returns": self.normaliser.returns,
            "last_observation": np.asarray(self.model._last_obs),
            "last_episode_starts": np.asarray(self.model._last_episode_starts),
            "progress": np.array(json.dumps(self._progress())),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Undo `snapshot`: the next `model.learn(..., reset_num_timesteps=False)` goes on from there."""
        self.take_over(snapshot)
        self.envs.restore(under("environment", snapshot))
        self.normaliser.returns = snapshot["running_returns"]
        self.model._last_obs = snapshot["last_observation"]
        self.model._last_original_obs = under("environment", snapshot)["observation"]
        self.model._last_episode_starts = snapshot["last_episode_starts"]
        self._take_up(json.loads(str(snapshot["progress"])))
        self.kept.clear()
        self.kept.update(under("kept", snapshot))
        snapshots.set_generators(self.model.action_space, under("generator", snapshot))

    @property
    def _observation_statistics(self) -> RunningMeanStd:
        return cast(RunningMeanStd, self.normaliser.obs_rms)  # a dictionary of them only for dictionary observations

    def _progress(self) -> dict[str, Any]:
        model = cast(Any, self.model)
        return {
            "steps": model.num_timesteps,
            "updates": model._n_updates,
            "episodes": list(model.ep_info_buffer or []),
            "successes": list(model.ep_success_buffer or []),
            "curve": self.curve,
            "checks": self.checks,
        }

    def _take_up(self, progress: dict[str, Any]) -> None:
        model = cast(Any, self.model)
        model.num_timesteps, model._n_updates = progress["steps"], progress["updates"]
        model.ep_info_buffer = deque(progress["episodes"], maxlen=model._stats_window_size)
        model.ep_success_buffer = deque(progress["successes"], maxlen=model._stats_window_size)
        self.curve[:], self.checks[:] = progress["curve"], progress["checks"]

    def _check(self, knowledge: Snapshot) -> None:
        """Refuse what another algorithm or another network has learnt."""
        name = algorithm_of(knowledge)
        given = {key: array.shape for key, array in under("net", knowledge).items()}
        wanted = {key: array.shape for key, array in self.algorithm.weights().items()}
        if (name, given) == (self.algorithm.name, wanted):
            return
        raise PolicyError(
            got=f"a training with {name}, networks {_sizes(given)}",
            expected=f"one with {self.algorithm.name}, networks {_sizes(wanted)}",
            where="the training to go on from",
            next_step="Go on with the algorithm, scenario and network of the earlier training, or begin from scratch.",
        )


def algorithm_of(knowledge: Snapshot) -> str:
    """The algorithm that a stored training is of."""
    return str(knowledge.get("algorithm", _FIRST_ALGORITHM))


def _sizes(shapes: dict[str, tuple[int, ...]]) -> str:
    """The weight matrices, by which a person distinguishes networks."""
    return ", ".join("x".join(map(str, shape)) for shape in shapes.values() if len(shape) == 2) or "without weights"
