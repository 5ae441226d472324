"""Joint limits, channel by channel: no reading of a joint may exceed them."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from rsr.scenarios.channels.turns import may_turn
from rsr.scenarios.scenario import Scenario
from rsr.sessions import Target


def joint_ranges(scenario: Scenario) -> dict[str, np.ndarray]:
    """Ranges [W, 2] of every joint channel, observed or commanded; NaN where the MJCF sets none.

    A channel that reads no coordinate, such as a setpoint, is matched by its columns: those named like an observed
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


# What a scenario asks of a lab's recording that is to become a session of it.


def target_of(scenario: Scenario) -> Target:
    """Demands of a scenario on a recording, its joints' limits included."""
    model = scenario.base_model
    limits = {}
    for observed in scenario.observed:
        joints = [int(model.dof_jntid[dof]) for dof in observed.dofs]
        if joints and observed.kind != "quaternion":
            limited = model.jnt_limited[joints].astype(bool)[:, None]
            ranges = np.where(limited, model.jnt_range[joints], np.array([-np.inf, np.inf]))
            if len(ranges) == observed.channel.width and limited.any():
                limits[observed.channel.name] = ranges
    angles = [each for each in scenario.observed if each.kind == "angle" and each.qpos]
    turning = {each.channel.name: may_turn(model, each.dofs) for each in angles}
    return Target(
        scenario.name,
        scenario.control_dt_s,
        scenario.channels,
        limits,
        turning,
        {each.channel.name: name for each in scenario.velocities if (name := _position_of(scenario, each.dofs))},
        scenario.gap_channel,
        tuple(dict.fromkeys(each.tag for each in scenario.per_episode)),
        scenario.channel_noise,
    )


def _position_of(scenario: Scenario, dofs: Sequence[int]) -> str | None:
    """The channel that observes exactly these joint coordinates, in this order."""
    return next((each.channel.name for each in scenario.observed if tuple(each.dofs) == tuple(dofs)), None)
