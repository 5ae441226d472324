"""What InfoGap looks at in a pushing task: fingertip, block and displacements; the target is no dynamics."""

from __future__ import annotations

import numpy as np

from rsr.infogap import InfoGapReward, transition_noise, transitions
from rsr.policies.vec_env import Bonus
from rsr.policies.world import LIMITS
from rsr.scenarios import Scenario, task_of
from rsr.scenarios.pushing import Task, kinematics
from rsr.scenarios.pushing.arm import ACTION_SIZE, CENTRE_M
from rsr.scenarios.pushing.pose import yaw_of

_PLACE = ("tip_x", "tip_y", "block_x", "block_y")
_TURN = ("block_yaw_cosine", "block_yaw_sine")


def state_columns(task: Task) -> tuple[str, ...]:
    """Names of the columns of `features`."""
    return _PLACE + _TURN if task.turns else _PLACE


def features(joints: np.ndarray, block: np.ndarray) -> np.ndarray:
    """[n, 4] of joint angles [n, 6] and block positions [n, 3]; [n, 6] of block poses [n, 7], as their yaw counts."""
    return _features(kinematics.fingertip(joints), block)


def feature_noise(scenario: Scenario) -> np.ndarray:
    """Measurement noise of a transition's columns, from what the scenario states of its sensors."""
    stated = {observed.channel.name: observed.noise for observed in scenario.observed}
    reach_m = float(np.linalg.norm(CENTRE_M))
    tip_m = stated["joint_position"] * reach_m
    turn = [stated["block_orientation"]] * 2 if task_of(scenario).turns else []
    return transition_noise(np.array([tip_m, tip_m, *[stated["block_position"]] * 2, *turn]), ACTION_SIZE)


def bonus_of(reward: InfoGapReward, task: Task) -> Bonus:
    """The InfoGap bonus as the environment pays it; nothing is gained where the block is as good as lost."""
    tip = task.columns("fingertip")
    block = task.columns("block", "block orientation") if task.turns else task.columns("block")

    def bonus(observation: np.ndarray, action: np.ndarray, after: np.ndarray) -> np.ndarray:
        seen, then = (_features(rows[:, tip], rows[:, block]) for rows in (observation, after))
        paid = reward.bonus(transitions(seen, action, then))
        return np.where(LIMITS.block_is_far(after[:, block]), np.minimum(paid, 0.0), paid)

    return bonus


def _features(tip: np.ndarray, block: np.ndarray) -> np.ndarray:
    columns = [tip[..., :2], block[..., :2]]
    if block.shape[-1] > 3:
        yaw = yaw_of(block[..., 3:7])
        columns.append(np.stack([np.cos(yaw), np.sin(yaw)], axis=-1))
    return np.concatenate(columns, axis=-1).astype(float)
