"""The safety envelope: everything sent to something that moves passes it, and it says what it cut and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rsr.policies.world import LIMITS
from rsr.scenarios.pushing import Limits, kinematics

HOLDS = {
    "not_a_number": "the policy asked for something that is no number",
    "no_measurement": "a sensor returned something that is no number",
    "stale_sensor": "a measurement was older than allowed",
    "late": "observing and deciding took longer than a control period",
    "workspace": "the fingertip would have left its box",
    "block_far": "the block has left the part of the workspace in which it may be pushed",
}
"""Why the arm was held, that is, why the previous setpoint was repeated."""
CUTS = {
    "joint_speed": "a setpoint would have changed too fast",
    "joint_acceleration": "the speed of a setpoint would have grown too fast",
    "joint_limit": "a setpoint lay beyond a joint's limit",
    "tip_speed": "the fingertip would have moved too fast, or too fast for a block so near the border",
    "robot": "the robot sent something other than it was given",
}
"""Why less was sent than was asked for."""


_ROUNDING_RAD = 1e-6
"""What a robot's own units may do to a setpoint that it sends as it is."""


@dataclass(frozen=True)
class Limited:
    """What may be sent, and what became of the command.

    Args:
        sent: setpoints [B, 6].
        share: of the command that was cut [B], 0 where nothing was.
        reasons: word of HOLDS or CUTS -> where it applied [B].
    """

    sent: np.ndarray
    share: np.ndarray
    reasons: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class SafetyEnvelope:
    """Limits on joint setpoints. On by default in every reality.

    Args:
        max_speed_rad_s: fastest change of a setpoint.
        max_acceleration_rad_s2: fastest growth of that speed; slowing down is never held back. The default lets the
            largest displacement that a policy can ask for begin within one period.
        max_sensor_age_s: what was measured longer ago is not acted on; None: one control period.
        limits: of fingertip and block, the same that hold in training.
    """

    max_speed_rad_s: float = 2.0
    max_acceleration_rad_s2: float = 35.0
    max_sensor_age_s: float | None = None
    limits: Limits = LIMITS

    def limit(
        self,
        wanted: np.ndarray,
        previous: np.ndarray,
        before: np.ndarray,
        dt_s: float,
        block: np.ndarray | None = None,
        held: Mapping[str, np.ndarray] | None = None,
    ) -> Limited:
        """Cut setpoints [B, 6] to what is allowed after the previous ones and those before them.

        Args:
            block: where the block is seen [B, k], if anywhere.
            held: further reasons to hold the arm, and where they apply [B].
        """
        finite = np.all(np.isfinite(wanted), axis=1)
        asked = np.where(finite[:, None], wanted, previous)
        reasons = {"not_a_number": ~finite, **(held or {})}
        if block is not None:
            reasons["block_far"] = self.limits.block_is_far(block)
        sent = asked
        for reason, cut in self._cuts(previous, before, dt_s, block):
            shortened = cut(sent)
            reasons[reason] = np.any(shortened != sent, axis=1)
            sent = shortened
        reasons["workspace"] = ~self.limits.inside(sent)
        standing = np.any([where for reason, where in reasons.items() if reason in HOLDS], axis=0)
        sent = np.where(standing[:, None], previous, sent)
        share = np.where(finite, _share(asked, sent, previous), 1.0)
        return Limited(sent, share, {reason: where for reason, where in reasons.items() if where.any()})

    def stated(self) -> dict[str, float]:
        """The limits for a session's card."""
        return {
            "setpoint_speed_rad_s": self.max_speed_rad_s,
            "setpoint_acceleration_rad_s2": self.max_acceleration_rad_s2,
            "tip_speed_m_s": self.limits.tip_speed_m_s,
        }

    def _cuts(
        self, previous: np.ndarray, before: np.ndarray, dt_s: float, block: np.ndarray | None
    ) -> Iterator[tuple[str, Callable[[np.ndarray], np.ndarray]]]:
        """What shortens a command, in this order; none undoes an earlier one."""
        reach = self.max_speed_rad_s * dt_s
        growth, change = self.max_acceleration_rad_s2 * dt_s**2, previous - before
        least, most = np.minimum(change, 0.0) - growth, np.maximum(change, 0.0) + growth
        yield "joint_speed", lambda sent: np.clip(sent, previous - reach, previous + reach)
        yield "joint_acceleration", lambda sent: np.clip(sent, previous + least, previous + most)
        yield "joint_limit", lambda sent: np.clip(sent, kinematics.JOINT_LOWER_RAD, kinematics.JOINT_UPPER_RAD)
        yield "tip_speed", lambda sent: self.limits.slowed(sent, previous, dt_s, block)


def _share(asked: np.ndarray, sent: np.ndarray, previous: np.ndarray) -> np.ndarray:
    change = np.abs(asked - previous).sum(axis=1)
    cut = np.abs(asked - sent).sum(axis=1)
    return np.where(change > 0, cut / np.maximum(change, 1e-12), 0.0)


class Guard:
    """The envelope at work on B arms: remembers what was sent, and notes for each step why less was.

    Args:
        setpoint: where the arms stand [B, 6].
    """

    def __init__(self, envelope: SafetyEnvelope, setpoint: np.ndarray, dt_s: float) -> None:
        self._envelope, self._dt_s = envelope, dt_s
        self.previous = self._before = setpoint.copy()
        self._noted: list[Mapping[str, np.ndarray]] = []

    def limit(
        self, wanted: np.ndarray, block: np.ndarray | None = None, held: Mapping[str, np.ndarray] | None = None
    ) -> Limited:
        """See `SafetyEnvelope.limit`; what it allows counts as sent."""
        limited = self._envelope.limit(wanted, self.previous, self._before, self._dt_s, block, held)
        self._before, self.previous = self.previous, limited.sent.copy()
        self._noted.append(limited.reasons)
        return limited

    def correct(self, sent: np.ndarray) -> None:
        """Take note that the robot sent [B, 6] something else in the end."""
        other = np.any(np.abs(sent - self.previous) > _ROUNDING_RAD, axis=1)
        if other.any():
            self._noted[-1] = {**self._noted[-1], "robot": other}
            self.previous = sent.copy()

    def tags(self, copy: int) -> dict[str, str]:
        """Words for an episode: `cut_<reason>` -> the rows, such as "3-7, 19". Empty where nothing was cut."""
        rows: dict[str, list[int]] = {}
        for row, reasons in enumerate(self._noted):
            for reason, where in reasons.items():
                if where[copy]:
                    rows.setdefault(f"cut_{reason}", []).append(row)
        return {reason: ", ".join(_ranges(found)) for reason, found in sorted(rows.items())}


def _ranges(rows: list[int]) -> Iterator[str]:
    """Neighbours as "first-last"."""
    first = 0
    for i, row in enumerate(rows):
        if i + 1 == len(rows) or rows[i + 1] != row + 1:
            yield f"{rows[first]}-{row}" if i > first else f"{row}"
            first = i + 1


def recordable(action: np.ndarray) -> np.ndarray:
    """Actions as a session may hold them: 0 for what is no number; the episode's tag `cut_not_a_number` says where."""
    return np.where(np.isfinite(action), action, 0.0)


def safety_notes(tags: Sequence[Mapping[str, str]]) -> str:
    """One sentence for a session's card from the tags of its episodes; empty where nothing was cut."""
    counts: dict[str, int] = {}
    for episode in tags:
        for key in episode:
            if key.startswith("cut_"):
                counts[key.removeprefix("cut_")] = counts.get(key.removeprefix("cut_"), 0) + 1
    told = [f"{reason} in {count}" for reason, count in sorted(counts.items())]
    return f"Of {len(tags)} episodes the safety envelope cut commands for: {', '.join(told)}." if told else ""
