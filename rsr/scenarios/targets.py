"""What a scenario asks of a lab's recording that is to become a session of it."""

from __future__ import annotations

import numpy as np

from rsr.scenarios.scenario import Scenario
from rsr.sessions.guessing import Target


def target_of(scenario: Scenario) -> Target:
    """What a scenario asks of a recording, its joints' limits included."""
    model = scenario.base_model
    limits = {}
    for observed in scenario.observed:
        joints = [int(model.dof_jntid[dof]) for dof in observed.dofs]
        if observed.kind == "linear" or observed.kind == "angle":
            limited = model.jnt_limited[joints].astype(bool)[:, None]
            ranges = np.where(limited, model.jnt_range[joints], np.array([-np.inf, np.inf]))
            if len(ranges) == observed.channel.width and limited.any():
                limits[observed.channel.name] = ranges
    return Target(scenario.name, scenario.control_dt_s, scenario.channels, limits)
