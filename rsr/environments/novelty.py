"""The InfoGap bonus as an environment pays it: of what the task's state columns did in a step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rsr.infogap import InfoGapReward, transition_noise, transitions
from rsr.scenarios import Channels, MotionLimits, Task

Bonus = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""Extra reward of transitions: (features [B, f], action [B, m], features after it [B, f]) -> [B], without noise."""


def bonus_features(task: Task, limits: MotionLimits, channels: Channels) -> np.ndarray:
    """Compute all that a bonus looks at [B, k + 2]: the state columns, how far off the target, and whether lost."""
    off, lost = task.off_target(channels), limits.lost(channels)
    return np.concatenate([task.states.compute(channels), off[:, None], lost[:, None]], axis=1)


def feature_noise(task: Task) -> np.ndarray:
    """Measurement noise of a transition's columns."""
    return transition_noise(np.array(task.states.noise), task.action.size)


def bonus_of(reward: InfoGapReward) -> Bonus:
    """The InfoGap bonus of `bonus_features`; nothing is gained where the episode is as good as lost.

    Of a reward whose bonus region is `off_target`, all is paid from twice as far off the target as counts as success,
    nothing within what does: the task is finished undisturbed, and standing still at its end costs nothing.
    """

    def bonus(before: np.ndarray, action: np.ndarray, after: np.ndarray) -> np.ndarray:
        added = reward.bonus(transitions(before[:, :-2].astype(float), action, after[:, :-2].astype(float)))
        if reward.bonus_region == "off_target":
            added = added * np.clip(after[:, -2] - 1.0, 0.0, 1.0)
        return np.where(after[:, -1] > 0, np.minimum(added, 0.0), added)

    return bonus
