"""Closed-form kinematics of the arm: fingertip from joints, and joints for a fingertip that points straight down."""

from __future__ import annotations

import numpy as np

from rsr.common import joined

SHOULDER_HEIGHT_M = 0.117
UPPER_ARM_M = 0.270
FOREARM_M = 0.290
TOOL_M = 0.236
JOINT_LOWER_RAD = np.array([-3.14, -2.96, -0.087, -2.96, -1.74, -3.14])
JOINT_UPPER_RAD = np.array([2.09, 0.17, 3.14, 2.96, 1.74, 3.14])


def fingertip(joints: np.ndarray) -> np.ndarray:
    """Fingertip position in the world [..., 3] of joint angles [..., 6]."""
    turn, shoulder, elbow, roll, pitch = (joints[..., column] for column in range(5))
    # Asked for many times in each control step: one call for all sines, and one for all cosines.
    angles = joined(turn, shoulder, shoulder + elbow, roll, pitch)
    sines, cosines = np.sin(angles), np.cos(angles)
    sin_1, sin_2, sin_bend, sin_4, sin_5 = (sines[..., column] for column in range(5))
    cos_1, cos_2, cos_bend, cos_4, cos_5 = (cosines[..., column] for column in range(5))
    # The tool's direction in the forearm's frame is Rx(q4) Ry(q5) e_x.
    along, left, below = TOOL_M * cos_5, TOOL_M * sin_4 * sin_5, TOOL_M * cos_4 * sin_5
    out = UPPER_ARM_M * cos_2 + (FOREARM_M + along) * cos_bend - below * sin_bend
    down = UPPER_ARM_M * sin_2 + (FOREARM_M + along) * sin_bend + below * cos_bend
    return joined(cos_1 * out - sin_1 * left, sin_1 * out + cos_1 * left, SHOULDER_HEIGHT_M - down)


def joints_for(tip: np.ndarray, pitch: np.ndarray | float = np.pi / 2) -> np.ndarray:
    """Joint angles [..., 6] that put the fingertip at tip [..., 3], elbow up, rolls zero.

    Args:
        pitch: angle of the tool below the horizontal; pi / 2 points straight down.
    """
    x, y, z = (tip[..., column] for column in range(3))
    radius = np.hypot(x, y) - TOOL_M * np.cos(pitch)
    height = z + TOOL_M * np.sin(pitch) - SHOULDER_HEIGHT_M
    cosine = (radius**2 + height**2 - UPPER_ARM_M**2 - FOREARM_M**2) / (2 * UPPER_ARM_M * FOREARM_M)
    elbow = np.arccos(np.clip(cosine, -1.0, 1.0))
    rise = np.arctan2(height, radius) + np.arctan2(FOREARM_M * np.sin(elbow), UPPER_ARM_M + FOREARM_M * np.cos(elbow))
    zero = np.zeros_like(x)
    return joined(np.arctan2(y, x), -rise, elbow, zero, pitch + rise - elbow, zero)
