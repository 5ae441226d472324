"""Limits of the arm, whoever commands it: the same function in training, in evaluation and on a robot.

A bounded reward does not keep a policy from flinging the block (novelty pays for it); limits on what is sent do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from rsr.common import lengths
from rsr.scenarios import Channels, Cut, growth_bounds, shortened
from rsr.scenarios.built_in.pushing import kinematics
from rsr.scenarios.built_in.pushing.arm import CENTRE_M

_WORDS = {
    "workspace": "the fingertip would have left its box",
    "block_far": "the block has left the part of the workspace in which it may be pushed",
    "joint_speed": "a setpoint would have changed too fast",
    "joint_acceleration": "the speed of a setpoint would have grown too fast",
    "joint_limit": "a setpoint lay beyond a joint's limit",
    "tip_speed": "the fingertip would have moved too fast, or too fast for a block so near the border",
}


@dataclass(frozen=True)
class ArmLimits:
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
        joint_speed_rad_s, joint_acceleration_rad_s2: fastest change of a setpoint, and fastest growth of that speed;
            slowing down is never held back. The default lets the largest displacement that a policy can ask for begin
            within one period.
    """

    tip_speed_m_s: float = 0.50
    tip_lower_m: tuple[float, float, float] = (0.08, -0.35, 0.005)
    tip_upper_m: tuple[float, float, float] = (0.55, 0.35, 0.40)
    slow_m: float = 0.15
    roam_m: float = 0.25
    joint_speed_rad_s: float = 2.0
    joint_acceleration_rad_s2: float = 35.0
    words: Mapping[str, str] = field(default_factory=lambda: _WORDS)

    def allowed(self, wanted: np.ndarray, previous: np.ndarray, channels: Channels, dt_s: float) -> np.ndarray:
        """Cut setpoints [B, 6] to what may be sent after the previous ones [B, 6]."""
        sent = self.slowed(wanted, previous, dt_s, channels["block_position"])
        return np.where(self.inside(sent)[:, None], sent, previous)

    def cuts(self, previous: np.ndarray, before: np.ndarray, channels: Channels, dt_s: float) -> Iterator[Cut]:
        """What shortens a change of setpoints on something that moves."""
        reach = self.joint_speed_rad_s * dt_s
        bounds = growth_bounds(previous, before, self.joint_acceleration_rad_s2 * dt_s**2)
        yield "joint_speed", lambda sent: np.clip(sent, previous - reach, previous + reach)
        yield "joint_acceleration", lambda sent: np.clip(sent, *bounds)
        yield "joint_limit", lambda sent: np.clip(sent, kinematics.JOINT_LOWER_RAD, kinematics.JOINT_UPPER_RAD)
        yield "tip_speed", lambda sent: self.slowed(sent, previous, dt_s, channels.get("block_position"))

    def holds(self, sent: np.ndarray, channels: Channels) -> dict[str, np.ndarray]:
        """The fingertip would leave its box, or the block has left its part of the workspace."""
        held = {"workspace": ~self.inside(sent)}
        return {"block_far": self.lost(channels), **held} if "block_position" in channels else held

    def lost(self, channels: Channels) -> np.ndarray:
        """True [B] where the block has left the part of the workspace in which it may be pushed."""
        return _from_centre(channels["block_position"]) > self.roam_m

    def safe(self, previous: np.ndarray, channels: Mapping[str, np.ndarray] | None = None) -> np.ndarray:
        """Setpoints that hold the arm: those in force."""
        return previous

    @property
    def rates(self) -> tuple[str, ...]:
        return ()

    def stated(self) -> dict[str, float]:
        """The limits for a session's card."""
        return {
            "setpoint_speed_rad_s": self.joint_speed_rad_s,
            "setpoint_acceleration_rad_s2": self.joint_acceleration_rad_s2,
            "tip_speed_m_s": self.tip_speed_m_s,
        }

    def slowed(
        self, wanted: np.ndarray, previous: np.ndarray, dt_s: float, block: np.ndarray | None = None
    ) -> np.ndarray:
        """Shorten the change of setpoints [B, 6] until the fingertip moves no faster than it may."""
        speed_m_s = self.tip_speed_m_s * (np.ones(len(wanted)) if block is None else self._freedom(block))
        return shortened(wanted, previous, _tip_alone, (speed_m_s * dt_s)[:, None])

    def inside(self, setpoint: np.ndarray) -> np.ndarray:
        """True [B] where the fingertip's setpoint lies in its box."""
        tip = kinematics.fingertip(setpoint)
        return np.all((tip >= self.tip_lower_m) & (tip <= self.tip_upper_m), axis=-1)

    def _freedom(self, block: np.ndarray) -> np.ndarray:
        """Share [B] of the speed limit that the block's place leaves."""
        return np.clip((self.roam_m - _from_centre(block)) / (self.roam_m - self.slow_m), 0.0, 1.0)


def _from_centre(block: np.ndarray) -> np.ndarray:
    return lengths(block[..., :2] - CENTRE_M)


def _tip_alone(setpoint: np.ndarray) -> np.ndarray:
    """The one site that is limited, the fingertip [B, 1, 3], by its closed form."""
    return kinematics.fingertip(setpoint)[:, None]
