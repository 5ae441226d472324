"""Hinges that turn round: a sensor cuts their angle to one turn, and between two rows it seems to jump by a turn."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from rsr.common import unwrapped, wraps
from rsr.scenarios.channels.observed import Observed
from rsr.sessions import refuse_wraps


def may_turn(model: mujoco.MjModel, dofs: Sequence[int]) -> np.ndarray:
    """Which of these joint coordinates [W] are hinges without limits."""
    joints = model.dof_jntid[list(dofs)]
    return (model.jnt_type[joints] == mujoco.mjtJoint.mjJNT_HINGE) & ~model.jnt_limited[joints].astype(bool)


def continuous(model: mujoco.MjModel, observed: Observed, rows: np.ndarray, where: str) -> np.ndarray:
    """Readings [T, W] of a channel, angles that wrap unwrapped.

    Raises:
        SessionError: the angle of a hinge with limits wraps, which that hinge cannot do.
    """
    if observed.kind != "angle" or not observed.qpos or not wraps(rows).any():
        return rows
    turning = may_turn(model, observed.dofs)
    refuse_wraps(rows, turning, observed.channel, where)
    return np.where(turning, unwrapped(rows), rows)
