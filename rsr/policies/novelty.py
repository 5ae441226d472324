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
    """The InfoGap bonus as the environment pays it; nothing is gained where the block is as good as lost.

    Of a reward that is paid `away`, all is paid from twice as far off the target as counts as success, nothing within
    what does: the task is finished undisturbed, and standing still at its end costs nothing.
    """
    tip = task.columns("fingertip")
    block = task.columns("block", "block orientation") if task.turns else task.columns("block")

    def bonus(observation: np.ndarray, action: np.ndarray, after: np.ndarray) -> np.ndarray:
        seen, then = (_features(rows[:, tip], rows[:, block]) for rows in (observation, after))
        paid = reward.bonus(transitions(seen, action, then))
        if reward.paid == "away":
            paid = paid * np.clip(_off_target(task, after) - 1.0, 0.0, 1.0)
        return np.where(LIMITS.block_is_far(after[:, block]), np.minimum(paid, 0.0), paid)

    return bonus


def _off_target(task: Task, observation: np.ndarray) -> np.ndarray:
    """How far [n] the block is off its target, in units of what success allows."""
    names = ("block", "block orientation"), ("target", "target orientation")
    block, target = (observation[:, task.columns(*(each if task.turns else each[:1]))] for each in names)
    off = np.linalg.norm((block - target)[:, :2], axis=1) / task.success_m
    yaw = task.yaw_error_rad(block, target)
    return off if yaw is None or task.success_rad is None else np.maximum(off, np.abs(yaw) / task.success_rad)


def _features(tip: np.ndarray, block: np.ndarray) -> np.ndarray:
    columns = [tip[..., :2], block[..., :2]]
    if block.shape[-1] > 3:
        yaw = yaw_of(block[..., 3:7])
        columns.append(np.stack([np.cos(yaw), np.sin(yaw)], axis=-1))
    return np.concatenate(columns, axis=-1).astype(float)
