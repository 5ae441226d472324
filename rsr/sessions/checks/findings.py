"""Findings of a check: how bad they are, and what to do. A session's verdict is that of its worst finding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from rsr.common import SessionError

Severity = Literal["note", "care", "reject"]
"""`note`: good to know. `care`: usable if one knows it. `reject`: whatever is computed from it is wrong."""
Topic = Literal["format", "units", "physics", "clock", "signal", "coverage", "excitation", "duplicate"]
SessionVerdict = Literal["use", "use with care", "reject"]
_ORDER: tuple[Severity, ...] = ("note", "care", "reject")
_VERDICTS: dict[Severity, SessionVerdict] = {"note": "use", "care": "use with care", "reject": "reject"}


@dataclass(frozen=True)
class Finding:
    """One thing that a check noticed.

    Args:
        where: session, channel, episode and row, as far as it applies.
        got, expected, next_step: as in the errors of `rsr.common.errors`.
    """

    severity: Severity
    topic: Topic
    where: str
    got: str
    expected: str
    next_step: str

    def __str__(self) -> str:
        return f"{self.where}: got {self.got}; expected {self.expected}. {self.next_step}"


def from_error(error: SessionError) -> Finding:
    """Take an error for what it is: a reason not to use the session."""
    return Finding("reject", "format", error.where, error.got, error.expected, error.next_step)


def verdict(findings: Iterable[Finding]) -> SessionVerdict:
    """Judge by the worst finding."""
    worst = max((_ORDER.index(finding.severity) for finding in findings), default=0)
    return _VERDICTS[_ORDER[worst]]


def counted(number: int, noun: str) -> str:
    """Say a number with its noun: `1 row`, `3 rows`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
