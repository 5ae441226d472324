"""Training a policy in the batched world with PPO or SAC, from scratch or on from an earlier policy."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import VecNormalize

from rsr.common import DAMAGED, Advance, PolicyError, check_choice, read_arrays, short, write_arrays, write_json
from rsr.environments import Bonus, HeadVecEnv, TaskVecEnv
from rsr.policies.checkpoint import Checkpoint, fingerprint
from rsr.policies.early_stopping import EarlyStopping, distance_of_checks, ended, judge_in
from rsr.policies.learner import OBSERVATION_LIMIT, Learner, algorithm_of
from rsr.policies.policy import Policy
from rsr.policies.ppo import PPOAlgorithm, PPOSettings
from rsr.policies.sac import SACAlgorithm, SACSettings
from rsr.scenarios import Scenario, task_of

_STATE = "training.npz"
_CURVE = "curve.json"


@dataclass(frozen=True)
class Trained:
    """A policy, what a later training needs to go on from it, and how it was learnt.

    Args:
        state: every network weight, the optimisers, the statistics of both normalisers, and SAC's replay buffer.
        curve: one row a rollout: environment steps, mean return and share of successes of the last 100 episodes.
        ended: in words, after how many steps it ended and why; empty where success was not checked.
    """

    policy: Policy
    state: dict[str, np.ndarray]
    curve: list[dict[str, float]]
    ended: str = ""

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

    Ends before `train_steps` where success has levelled off; see `rsr.policies.early_stopping`.

    Args:
        settings: `PPOSettings` or `SACSettings`, which chooses the algorithm.
        state: of an earlier training to go on from (`load_state`); from scratch where None.
        bonus: reward to add to the task's, such as InfoGap; a function of its arguments alone.
        checkpoint: file to keep the unfinished training in. Where a killed one of the same scenario, settings, seed,
            state and bonus left it, training goes on from there to the same result; removed at the end.
    """
    torch.set_num_threads(1)  # small networks: a second thread costs more than it gives, and sums stay in one order
    with closing(TaskVecEnv(scenario, params, settings.copies, seed, bonus=bonus)) as envs:
        learner = make_learner(envs, settings, seed)
        if state is not None:
            learner.go_on_from(state)
        stopping = _early_stopping(learner, scenario, params, settings, seed, advance, state is not None)
        if state is not None and stopping is None:
            learner.algorithm.explore_anew()
        kept = None
        if checkpoint is not None:
            kept = Checkpoint(checkpoint, fingerprint(scenario, params, settings, seed, state, bonus))
            kept.resume(learner)
        _learn(learner, stopping, settings, advance, kept)
    if kept is not None:
        kept.remove()
    words = ended(learner.checks, learner.kept_steps, settings.train_steps) if learner.checks else ""
    card = {**_card(learner, settings, seed), "checks": learner.checks, "ended": words}
    return Trained(learner.policy(envs.task, card), learner.knowledge(), learner.curve, words)


def make_learner(envs: TaskVecEnv, settings: Settings, seed: int) -> Learner:
    """Put algorithm and normaliser around the environment."""
    head = HeadVecEnv(envs)
    normaliser = VecNormalize(head, gamma=settings.gamma, clip_obs=OBSERVATION_LIMIT)
    match settings:
        case PPOSettings():
            algorithm = PPOAlgorithm(normaliser, settings, seed)
        case SACSettings():
            algorithm = SACAlgorithm(normaliser, settings, seed)
    algorithm.model.set_logger(Logger(folder=None, output_formats=[]))  # SB3's own leaves a folder in the temporary one
    return Learner(algorithm, normaliser, head)


def _card(learner: Learner, settings: Settings, seed: int) -> dict[str, Any]:
    plain = {**asdict(settings), "hidden": list(settings.hidden)}
    return {"settings": plain, "seed": seed, "algorithm": learner.algorithm.name.upper()}


def _early_stopping(
    learner: Learner,
    scenario: Scenario,
    params: np.ndarray,
    settings: Settings,
    seed: int,
    advance: Advance,
    goes_on: bool,
) -> EarlyStopping | None:
    """Checks of success; none where they are not wanted, or would take longer than the training."""
    distance = distance_of_checks(scenario, settings.train_steps, settings.checks)
    if not settings.checks or distance > settings.train_steps:
        return None
    return EarlyStopping(learner, judge_in(scenario, params, seed), settings.train_steps, distance, advance, goes_on)


def _learn(
    learner: Learner, stopping: EarlyStopping | None, settings: Settings, advance: Advance, kept: Checkpoint | None
) -> None:
    """Learn what is left to learn. SB3 resets neither counters nor world in a continuation."""
    model = learner.model
    callbacks: list[BaseCallback] = [_Recorder(learner.curve, settings.train_steps, advance)]
    if stopping is not None:
        callbacks.append(stopping)
    if kept is not None:
        steps_between = settings.checkpoint_rollouts * settings.rollout_steps * settings.copies
        callbacks.append(_Keeper(kept, learner, steps_between))
    model.learn(settings.train_steps - model.num_timesteps, CallbackList(callbacks), reset_num_timesteps=False)
    learner.return_to_kept()


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


# The settings of a training: an algorithm's defaults, and what the task says otherwise of it.

Settings = PPOSettings | SACSettings
"""Their type is the choice of the algorithm."""
_SETTINGS: dict[str, type[Settings]] = {"ppo": PPOSettings, "sac": SACSettings}
ALGORITHMS = tuple(_SETTINGS)
_FURTHER = "further_steps"


def settings_from_scratch(algorithm: str, scenario: Scenario, train_steps: int | None = None) -> Settings:
    """The settings of a first training; by default as many steps as the task needs."""
    settings, _ = _settings(algorithm, scenario)
    return settings if train_steps is None else replace(settings, train_steps=train_steps)


def settings_to_go_on(state: dict[str, np.ndarray], scenario: Scenario, train_steps: int | None = None) -> Settings:
    """The settings of a training that goes on from `load_state`, with the algorithm that it is of."""
    settings, further = _settings(algorithm_of(state), scenario)
    return replace(settings, train_steps=further if train_steps is None else train_steps)


def _settings(algorithm: str, scenario: Scenario) -> tuple[Settings, int]:
    """Settings of a first training, and the steps that are enough where one goes on from another."""
    check_choice(algorithm, ALGORITHMS, got=f"algorithm '{algorithm}'", where="training")
    stated = {name: _checked(name, entry, scenario) for name, entry in task_of(scenario).training.items()}
    chosen = stated.get(algorithm, {})
    further = chosen.pop(_FURTHER, None)
    settings = _SETTINGS[algorithm](**chosen)
    return settings, settings.train_steps if further is None else further


def _checked(algorithm: str, entry: Any, scenario: Scenario) -> dict[str, Any]:
    """What the task says of one algorithm's settings, if they are numbers that there are."""
    where, next_step = f"task of {scenario.name}, training", "Correct `training` of the task."
    if algorithm not in _SETTINGS or not isinstance(entry, Mapping):
        expected = f"settings of {' or '.join(ALGORITHMS)}, such as `ppo: {{train_steps: 600000}}`"
        raise PolicyError(got=f"{algorithm}: {short(entry)}", expected=expected, where=where, next_step=next_step)
    defaults = {each.name: each.default for each in fields(_SETTINGS[algorithm])} | {_FURTHER: 0}
    for name, value in entry.items():
        place = f"{where}, {algorithm}"
        if name not in defaults:
            expected = f"one of {', '.join(defaults)}"
            raise PolicyError(got=f"'{name}'", expected=expected, where=place, next_step=next_step)
        kind = type(defaults[name])
        if kind in (int, float) and (type(value) not in (int, kind) or value < 0):
            expected = f"a {'whole ' if kind is int else ''}number from 0"
            raise PolicyError(got=f"{name}: {short(value)}", expected=expected, where=place, next_step=next_step)
    return dict(entry)
