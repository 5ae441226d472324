"""How the arm is commanded: displacements of its six joints, relative to setpoints that never run away from it."""

from __future__ import annotations

import numpy as np

from rsr.scenarios import DisplacementAction
from rsr.scenarios.built_in.pushing import kinematics

STEP_RAD = 0.08
"""Largest joint displacement an action can ask for in one control step."""
LEAD_RAD = 0.15
"""A setpoint never leads the measured joint by more, so that a blocked arm does not wind up."""
TIP_HEIGHT_M = 0.025
CENTRE_M = np.array([0.36, 0.0])
"""The middle of the workspace on the table."""
ACTION_SIZE = 6


ACTION = DisplacementAction(
    scale=(STEP_RAD,) * ACTION_SIZE,
    lower=tuple(kinematics.JOINT_LOWER_RAD.tolist()),
    upper=tuple(kinematics.JOINT_UPPER_RAD.tolist()),
    measured="joint_position",
    lead=(LEAD_RAD,) * ACTION_SIZE,
)
"""Displacements of the joints, relative to setpoints that never run away from them."""
