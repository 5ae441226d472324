"""Closed-form kinematics of the arm: fingertip from joints, and joints for a fingertip that points straight down."""

from __future__ import annotations

import numpy as np

SHOULDER_HEIGHT_M = 0.117
UPPER_ARM_M = 0.270
FOREARM_M = 0.290
TOOL_M = 0.236
JOINT_LOWER_RAD = np.array([-3.14, -2.96, -0.087, -2.96, -1.74, -3.14])
JOINT_UPPER_RAD = np.array([2.09, 0.17, 3.14, 2.96, 1.74, 3.14])


def fingertip(joints: np.ndarray) -> np.ndarray:
    """Fingertip position in the world [..., 3] of joint angles [..., 6]."""
    q1, q2, q3, q4, q5 = (joints[..., column] for column in range(5))
    bend = q2 + q3
    # The tool's direction in the forearm's frame is Rx(q4) Ry(q5) e_x.
    along, aside, below = np.cos(q5), np.sin(q4) * np.sin(q5), np.cos(q4) * np.sin(q5)
    out = UPPER_ARM_M * np.cos(q2) + FOREARM_M * np.cos(bend)
    out = out + TOOL_M * (along * np.cos(bend) - below * np.sin(bend))
    down = UPPER_ARM_M * np.sin(q2) + FOREARM_M * np.sin(bend)
    down = down + TOOL_M * (along * np.sin(bend) + below * np.cos(bend))
    left = TOOL_M * aside
    x = np.cos(q1) * out - np.sin(q1) * left
    y = np.sin(q1) * out + np.cos(q1) * left
    return np.stack([x, y, SHOULDER_HEIGHT_M - down], axis=-1)


def joints_for(tip: np.ndarray, pitch: np.ndarray | float = np.pi / 2) -> np.ndarray:
    """Joint angles [..., 6] that put the fingertip at tip [..., 3], elbow up, rolls zero.

    Args:
        pitch: angle of the tool below the horizontal; pi / 2 points straight down.
    """
    x, y, z = np.moveaxis(tip, -1, 0)
    radius = np.hypot(x, y) - TOOL_M * np.cos(pitch)
    height = z + TOOL_M * np.sin(pitch) - SHOULDER_HEIGHT_M
    cosine = (radius**2 + height**2 - UPPER_ARM_M**2 - FOREARM_M**2) / (2 * UPPER_ARM_M * FOREARM_M)
    elbow = np.arccos(np.clip(cosine, -1.0, 1.0))
    rise = np.arctan2(height, radius) + np.arctan2(FOREARM_M * np.sin(elbow), UPPER_ARM_M + FOREARM_M * np.cos(elbow))
    zero = np.zeros_like(x)
    return np.stack([np.arctan2(y, x), -rise, elbow, zero, pitch + rise - elbow, zero], axis=-1)
