"""The safety envelope: everything sent to something that moves passes it, and it says what it cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.scenarios.push_cube import kinematics


@dataclass(frozen=True)
class SafetyEnvelope:
    """Limits on joint setpoints. On by default in every reality.

    Args:
        max_speed_rad_s: fastest change of a setpoint.
        workspace_lower_m, workspace_upper_m: box the fingertip's setpoint must stay in.
    """

    max_speed_rad_s: float = 2.0
    workspace_lower_m: tuple[float, float, float] = (0.08, -0.35, -0.01)
    workspace_upper_m: tuple[float, float, float] = (0.55, 0.35, 0.40)

    def limit(self, wanted: np.ndarray, previous: np.ndarray, dt_s: float) -> tuple[np.ndarray, np.ndarray]:
        """Cut setpoints [B, 6] to what is allowed.

        A setpoint that is not finite, or whose fingertip would leave the workspace, holds the previous one.

        Returns:
            what may be sent [B, 6], and the share of the command that was cut [B], 0 where nothing was.
        """
        finite = np.all(np.isfinite(wanted), axis=1)
        asked = np.where(finite[:, None], wanted, previous)
        reach = self.max_speed_rad_s * dt_s
        sent = np.clip(asked, previous - reach, previous + reach)
        sent = np.clip(sent, kinematics.JOINT_LOWER_RAD, kinematics.JOINT_UPPER_RAD)
        tip = kinematics.fingertip(sent)
        inside = np.all((tip >= self.workspace_lower_m) & (tip <= self.workspace_upper_m), axis=1)
        sent = np.where(inside[:, None], sent, previous)
        change = np.abs(asked - previous).sum(axis=1)
        cut = np.abs(asked - sent).sum(axis=1)
        share = np.where(change > 0, cut / np.maximum(change, 1e-12), 0.0)
        return sent, np.where(finite, share, 1.0)
