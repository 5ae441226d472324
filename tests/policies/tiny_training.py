"""A training of a second, in this process or in one that kills itself on the way.

python tests/policies/tiny_training.py CHECKPOINT KILL_IN_ROLLOUT
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np

from rsr.policies.training import PPOSettings, Trained, train
from rsr.scenarios import load_scenario

ROLLOUTS = 12
SETTINGS = PPOSettings(ROLLOUTS * 4 * 16, copies=4, rollout_steps=16, batch_size=32, epochs=2, hidden=(8, 8))


def train_tiny(
    settings: PPOSettings = SETTINGS,
    seed: int = 3,
    state: dict[str, np.ndarray] | None = None,
    bonus=None,
    checkpoint: Path | None = None,
    kill_in_rollout: int | None = None,
    rollouts: list[int] | None = None,
) -> Trained:
    """Train in the nominal simulator; notes in `rollouts` which of them were run here."""
    scenario = load_scenario("push_cube")
    per_rollout = settings.copies * settings.rollout_steps

    def advance(fraction: float, words: str = "") -> None:
        number = round(fraction * settings.train_steps / per_rollout)
        if rollouts is not None:
            rollouts.append(number)
        if number == kill_in_rollout:
            os.kill(os.getpid(), signal.SIGKILL)

    return train(scenario, scenario.space.nominal, settings, seed, advance, state, bonus, checkpoint)


def still_pays(observation: np.ndarray, action: np.ndarray, after: np.ndarray) -> np.ndarray:
    """A bonus that has nothing to do with the task: large where little is moved."""
    return -10.0 * np.square(action).sum(axis=1)


if __name__ == "__main__":
    train_tiny(bonus=still_pays, checkpoint=Path(sys.argv[1]), kill_in_rollout=int(sys.argv[2]))
