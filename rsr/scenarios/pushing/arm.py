"""How the arm is commanded: displacements of its six joints, relative to setpoints that never run away from it."""

from __future__ import annotations

import numpy as np

from rsr.scenarios.pushing import kinematics

STEP_RAD = 0.08
"""Largest joint displacement an action can ask for in one control step."""
LEAD_RAD = 0.15
"""A setpoint never leads the measured joint by more, so that a blocked arm does not wind up."""
TIP_HEIGHT_M = 0.025
CENTRE_M = np.array([0.36, 0.0])
"""The middle of the workspace on the table."""
ACTION_SIZE = 6


def next_setpoint(setpoint: np.ndarray, joints: np.ndarray, action: np.ndarray) -> np.ndarray:
    """Turn displacements in -1..1 into the next joint setpoints, within reach of the arm and of its limits."""
    wanted = setpoint + STEP_RAD * np.clip(action, -1.0, 1.0)
    near = np.clip(wanted, joints - LEAD_RAD, joints + LEAD_RAD)
    return np.clip(near, kinematics.JOINT_LOWER_RAD, kinematics.JOINT_UPPER_RAD)
