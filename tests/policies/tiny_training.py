"""A training of a second with either algorithm, in this process or in one that kills itself on the way.

python tests/policies/tiny_training.py ALGORITHM CHECKPOINT KILL_IN_ROLLOUT
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from rsr.policies.training import PPOSettings, SACSettings, Settings, Trained, train
from rsr.scenarios import load_scenario

ROLLOUTS = 12
COPIES, ROLLOUT_STEPS = 4, 16
SETTINGS: dict[str, Settings] = {
    "ppo": PPOSettings(ROLLOUTS * 64, COPIES, ROLLOUT_STEPS, batch_size=32, epochs=2, hidden=(8, 8)),
    "sac": SACSettings(
        ROLLOUTS * 64,
        COPIES,
        ROLLOUT_STEPS,
        gradient_steps=4,
        batch_size=32,
        buffer=600,  # less than a training's transitions: the ring is full in the end
        warm_up_steps=100,
        hidden=(8, 8),
        checkpoint_rollouts=5,
    ),
}


def train_tiny(
    settings: Settings = SETTINGS["ppo"],
    seed: int = 3,
    state: dict[str, np.ndarray] | None = None,
    bonus=None,
    checkpoint: Path | None = None,
    kill_in_rollout: int | None = None,
    rollouts: list[int] | None = None,
    on_rollout: Callable[[int], None] = lambda number: None,
) -> Trained:
    """Train in the nominal simulator; notes in `rollouts` which of them were run here."""
    scenario = load_scenario("push_cube")
    per_rollout = settings.copies * settings.rollout_steps

    def advance(fraction: float, words: str = "") -> None:
        number = round(fraction * settings.train_steps / per_rollout)
        if rollouts is not None:
            rollouts.append(number)
        on_rollout(number)
        if number == kill_in_rollout:
            os.kill(os.getpid(), signal.SIGKILL)

    return train(scenario, scenario.space.nominal, settings, seed, advance, state, bonus, checkpoint)


def still_pays(observation: np.ndarray, action: np.ndarray, after: np.ndarray) -> np.ndarray:
    """A bonus that has nothing to do with the task: large where little is moved."""
    return -10.0 * np.square(action).sum(axis=1)


if __name__ == "__main__":
    chosen = SETTINGS[sys.argv[1]]
    train_tiny(chosen, bonus=still_pays, checkpoint=Path(sys.argv[2]), kill_in_rollout=int(sys.argv[3]))
