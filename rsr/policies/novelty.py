"""What InfoGap looks at in the push task: fingertip, block and displacements; the target is no dynamics."""

from __future__ import annotations

import numpy as np

from rsr.infogap import InfoGapReward, transition_noise, transitions
from rsr.policies.vec_env import Bonus
from rsr.scenarios import Scenario
from rsr.scenarios.push_cube import kinematics, task

STATE_COLUMNS = ("tip_x", "tip_y", "block_x", "block_y")
_ROAM_M = 0.25
"""No bonus where the block is farther from the middle of the workspace: novelty must not pay for flinging it."""


def features(joints: np.ndarray, block: np.ndarray) -> np.ndarray:
    """[n, 4] of joint angles [n, 6] and block positions [n, 3]."""
    return np.concatenate([kinematics.fingertip(joints)[..., :2], block[..., :2]], axis=-1)


def feature_noise(scenario: Scenario) -> np.ndarray:
    """Measurement noise of a transition's columns, from what the scenario states of its sensors."""
    stated = {observed.channel.name: observed.noise for observed in scenario.observed}
    reach_m = float(np.linalg.norm(task.CENTRE_M))
    tip_m = stated["joint_position"] * reach_m
    return transition_noise(np.array([tip_m, tip_m, *[stated["block_position"]] * 2]), task.ACTION_SIZE)


def bonus_of(reward: InfoGapReward) -> Bonus:
    """The InfoGap bonus as the environment pays it."""

    def bonus(observation: np.ndarray, action: np.ndarray, after: np.ndarray) -> np.ndarray:
        x = transitions(_seen(observation), action, _seen(after))
        near = np.linalg.norm(after[:, 12:14] - task.CENTRE_M, axis=1) < _ROAM_M
        paid = reward.bonus(x)
        return np.where(near, paid, np.minimum(paid, 0.0))

    return bonus


def _seen(observation: np.ndarray) -> np.ndarray:
    """The same four columns out of a policy's observation: fingertip x, y and block x, y."""
    return observation[:, [6, 7, 12, 13]].astype(float)
