"""What the arm may never do, whoever commands it: the same function in training, in evaluation and on a robot.

A bounded reward does not keep a policy from flinging the block (novelty pays for it); limits on what is sent do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.scenarios.pushing import kinematics
from rsr.scenarios.pushing.arm import CENTRE_M

_ROUNDS = 4
"""Scalings of a command that is too fast. One leaves an error of some per cent, as the arm's paths are curved."""


@dataclass(frozen=True)
class Limits:
    """Hard limits on joint setpoints.

    The servos overshoot their setpoints by a fifth where these reverse: with 0.5 m/s commanded, the fingertip itself
    stays below 0.6 m/s. A block that is let go at 0.6 m/s slides 4 cm on friction 0.5 and 37 cm on friction 0.05, so
    the arm slows down before the block comes to where it may not be pushed any more.

    Args:
        tip_speed_m_s: fastest movement of the fingertip's setpoint.
        tip_lower_m, tip_upper_m: box the fingertip's setpoint must stay in, world frame. Its floor keeps the finger
            from pressing on the table, from which it would spring away faster than it was ever told to move.
        slow_m, roam_m: distances of the block from the middle of the workspace; from the first on the arm slows down,
            to a standstill at the second.
    """

    tip_speed_m_s: float = 0.50
    tip_lower_m: tuple[float, float, float] = (0.08, -0.35, 0.005)
    tip_upper_m: tuple[float, float, float] = (0.55, 0.35, 0.40)
    slow_m: float = 0.15
    roam_m: float = 0.25

    def allowed(self, wanted: np.ndarray, previous: np.ndarray, block: np.ndarray, dt_s: float) -> np.ndarray:
        """Cut setpoints [B, 6] to what may be sent after the previous ones [B, 6].

        Args:
            block: positions or poses [B, k] of the block as seen now.
        """
        sent = self.slowed(wanted, previous, dt_s, block)
        return np.where(self.inside(sent)[:, None], sent, previous)

    def slowed(
        self, wanted: np.ndarray, previous: np.ndarray, dt_s: float, block: np.ndarray | None = None
    ) -> np.ndarray:
        """Shorten the change of setpoints [B, 6] until the fingertip moves no faster than it may."""
        speed_m_s = self.tip_speed_m_s * (np.ones(len(wanted)) if block is None else self._freedom(block))
        reach_m, start, sent = speed_m_s * dt_s, kinematics.fingertip(previous), wanted
        for _ in range(_ROUNDS):
            moved_m = np.linalg.norm(kinematics.fingertip(sent) - start, axis=-1)
            if (moved_m <= reach_m).all():
                return sent
            share = np.where(moved_m > reach_m, 0.999 * reach_m / np.maximum(moved_m, 1e-12), 1.0)
            sent = np.where(share[:, None] < 1.0, previous + share[:, None] * (sent - previous), sent)
        moved_m = np.linalg.norm(kinematics.fingertip(sent) - start, axis=-1)
        return np.where((moved_m <= reach_m)[:, None], sent, previous)

    def inside(self, setpoint: np.ndarray) -> np.ndarray:
        """True [B] where the fingertip's setpoint lies in its box."""
        tip = kinematics.fingertip(setpoint)
        return np.all((tip >= self.tip_lower_m) & (tip <= self.tip_upper_m), axis=-1)

    def block_is_far(self, block: np.ndarray) -> np.ndarray:
        """True [B] where the block has left the part of the workspace in which it may be pushed."""
        return _from_centre(block) > self.roam_m

    def _freedom(self, block: np.ndarray) -> np.ndarray:
        """Share [B] of the speed limit that the block's place leaves."""
        return np.clip((self.roam_m - _from_centre(block)) / (self.roam_m - self.slow_m), 0.0, 1.0)


def _from_centre(block: np.ndarray) -> np.ndarray:
    return np.linalg.norm(block[..., :2] - CENTRE_M, axis=-1)
