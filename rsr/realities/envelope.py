"""The safety envelope: everything sent to something that moves passes it, and it says what it cut and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rsr.scenarios import Channels, MotionLimits, Scenario, Task, limits_of, task_of

HOLDS = {
    "not_a_number": "the policy asked for something that is no number",
    "no_measurement": "a sensor returned something that is no number",
    "stale_sensor": "a measurement was older than allowed",
    "late": "observing and deciding took longer than a control period",
}
"""Why any robot is held, that is, why the safe command was sent: for positions, the one in force once more."""
CUTS = {"robot": "the robot sent something other than it was given"}
"""Why less was sent than was asked for."""
_ROUNDING = 1e-6
"""Rounding that a robot's own units may do to a command that it sends as it is."""


@dataclass(frozen=True)
class Limited:
    """Commands that may be sent, and how far what was asked for was limited.

    Args:
        sent: commands [B, nu].
        share: of the command that was cut [B], 0 where nothing was.
        reasons: word of `SafetyEnvelope.words` -> where it applied [B].
    """

    sent: np.ndarray
    share: np.ndarray
    reasons: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class SafetyEnvelope:
    """Limits on commands. On by default in every reality.

    Args:
        limits: of motion, the same that hold in training.
        max_sensor_age_s: what was measured longer ago is not acted on; None: one control period.
    """

    limits: MotionLimits
    max_sensor_age_s: float | None = None

    @staticmethod
    def of(scenario: Scenario) -> SafetyEnvelope:
        """The envelope of a scenario with a task."""
        return SafetyEnvelope(limits_of(scenario, task_of(scenario)))

    @property
    def words(self) -> dict[str, str]:
        """Reason -> sentence, for whatever may be cut or held."""
        return {**HOLDS, **CUTS, **self.limits.words}

    def limit(
        self,
        wanted: np.ndarray,
        previous: np.ndarray,
        before: np.ndarray,
        dt_s: float,
        channels: Channels | None = None,
        held: Mapping[str, np.ndarray] | None = None,
    ) -> Limited:
        """Cut commands [B, nu] to what is allowed after the previous ones and those before them.

        Args:
            channels: what is measured [B, width], by name.
            held: further reasons to hold the robot, and where they apply [B].
        """
        channels = channels or {}
        finite = np.all(np.isfinite(wanted), axis=1)
        asked = np.where(finite[:, None], wanted, previous)
        holding = {"not_a_number": ~finite, **(held or {})}
        cutting, sent = {}, asked
        for reason, cut in self.limits.cuts(previous, before, channels, dt_s):
            shortened = cut(sent)
            cutting[reason] = np.any(shortened != sent, axis=1)
            sent = shortened
        leaving = self.limits.holds(sent, channels)
        if (halted := np.any([np.zeros(len(sent), bool), *leaving.values()], axis=0)).any():
            sent = np.where(halted[:, None], self.limits.safe(previous, channels), sent)
        # Where something is wrong with what is measured or asked for, the stated command; nothing is computed from it.
        faulty = np.any(list(holding.values()), axis=0)
        sent = np.where(faulty[:, None], self.limits.safe(previous), sent)
        holding |= leaving
        share = np.where(finite, _share(asked, sent, previous), 1.0)
        return Limited(sent, share, {word: where for word, where in {**holding, **cutting}.items() if where.any()})

    def stated(self) -> dict[str, float]:
        """The limits for a session's card."""
        return self.limits.stated()


def _share(asked: np.ndarray, sent: np.ndarray, previous: np.ndarray) -> np.ndarray:
    change = np.abs(asked - previous).sum(axis=1)
    cut = np.abs(asked - sent).sum(axis=1)
    # A safe command may lie farther away than the command in force: then all of it was cut.
    return np.where(cut > 0, np.minimum(cut / np.maximum(change, 1e-12), 1.0), 0.0)


class Guard:
    """The envelope at work on B robots: remembers what was sent, and notes for each step why less was.

    Args:
        command: in force [B, nu].
    """

    def __init__(self, envelope: SafetyEnvelope, command: np.ndarray, dt_s: float) -> None:
        self._envelope, self._dt_s = envelope, dt_s
        self.previous = self._before = command.copy()
        self._noted: list[Mapping[str, np.ndarray]] = []

    def limit(
        self, wanted: np.ndarray, channels: Channels | None = None, held: Mapping[str, np.ndarray] | None = None
    ) -> Limited:
        """See `SafetyEnvelope.limit`; what it allows counts as sent."""
        limited = self._envelope.limit(wanted, self.previous, self._before, self._dt_s, channels, held)
        self._before, self.previous = self.previous, limited.sent.copy()
        self._noted.append(limited.reasons)
        return limited

    def correct(self, sent: np.ndarray) -> None:
        """Take note that the robot sent [B, 6] something else in the end."""
        other = np.any(np.abs(sent - self.previous) > _ROUNDING, axis=1)
        if other.any():
            self._noted[-1] = {**self._noted[-1], "robot": other}
            self.previous = sent.copy()

    def tags(self, copy: int, steps: int | None = None) -> dict[str, str]:
        """Words for an episode of so many steps: `cut_<reason>` -> the rows, such as "3-7, 19"; empty without cuts."""
        rows: dict[str, list[int]] = {}
        for row, reasons in enumerate(self._noted[:steps]):
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


def wanted_command(task: Task, action: np.ndarray, previous: np.ndarray, channels: Channels) -> np.ndarray:
    """Commands [B, nu] that actions ask for after the previous ones; no numbers where an action is none."""
    command = task.action.command(np.clip(action, -1.0, 1.0), previous, channels)
    return np.where(np.isfinite(action).all(axis=1, keepdims=True), command, np.nan)


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
