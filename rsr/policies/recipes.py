"""How each task is best learnt with each algorithm: settings and budgets, as `benchmarks/policy.py` measures them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rsr.errors import ConfigError
from rsr.policies.learner import algorithm_of
from rsr.policies.ppo import PPOSettings
from rsr.policies.sac import SACSettings
from rsr.scenarios import Scenario, task_of

Settings = PPOSettings | SACSettings
"""Their type is the choice of the algorithm."""


@dataclass(frozen=True)
class _Recipe:
    """Settings to begin with, and environment steps that are enough where a training goes on from another."""

    settings: Settings
    further_steps: int


_RECIPES = {
    ("ppo", "push_cube"): _Recipe(PPOSettings(2_000_000), 800_000),
    ("sac", "push_cube"): _Recipe(SACSettings(400_000), 150_000),
    # Of push_t: the network corrects an analytic pusher, which alone succeeds in 74 % of the episodes.
    ("ppo", "push_t"): _Recipe(PPOSettings(1_000_000), 500_000),
    ("sac", "push_t"): _Recipe(SACSettings(800_000), 150_000),
}
ALGORITHMS = tuple(dict.fromkeys(algorithm for algorithm, _ in _RECIPES))


def settings_from_scratch(algorithm: str, scenario: Scenario, train_steps: int | None = None) -> Settings:
    """The settings of a first training; as many steps as it needs unless told otherwise."""
    settings = _recipe(algorithm, scenario).settings
    return settings if train_steps is None else replace(settings, train_steps=train_steps)


def settings_to_go_on(state: dict[str, np.ndarray], scenario: Scenario, train_steps: int | None = None) -> Settings:
    """The settings of a training that goes on from `load_state`, with the algorithm that it is of."""
    recipe = _recipe(algorithm_of(state), scenario)
    return replace(recipe.settings, train_steps=recipe.further_steps if train_steps is None else train_steps)


def _recipe(algorithm: str, scenario: Scenario) -> _Recipe:
    if algorithm not in ALGORITHMS:
        raise ConfigError(
            got=f"algorithm '{algorithm}'",
            expected=f"one of {', '.join(ALGORITHMS)}",
            where="training",
            next_step="Choose one of these.",
        )
    return _RECIPES[algorithm, task_of(scenario).name]
