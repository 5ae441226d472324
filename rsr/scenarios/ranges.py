"""What joints can do, channel by channel: what no reading of them may exceed."""

from __future__ import annotations

import mujoco
import numpy as np

from rsr.scenarios.scenario import Scenario


def joint_ranges(scenario: Scenario) -> dict[str, np.ndarray]:
    """Ranges [W, 2] of every joint channel, observed or commanded; NaN where the MJCF sets none.

    A channel that reads no coordinate, such as a setpoint, is told by its columns: those named like an observed
    channel's are the same joints.
    """
    observed = {
        each.channel.columns: np.array([_range(scenario.base_model, dof) for dof in each.dofs])
        for each in scenario.observed
        if each.kind == "angle" and each.channel.frame == "joint"
    }
    return {
        channel.name: observed[channel.columns]
        for channel in scenario.channels
        if channel.unit == "rad" and channel.columns in observed
    }


def _range(model: mujoco.MjModel, dof: int) -> np.ndarray:
    joint = int(model.dof_jntid[dof])
    return model.jnt_range[joint].copy() if model.jnt_limited[joint] else np.full(2, np.nan)
