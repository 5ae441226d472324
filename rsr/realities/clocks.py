"""Time as an argument: the machine's, or one that passes as fast as the computer can."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now_s(self) -> float:
        """Seconds since some moment; never goes back."""
        ...

    def sleep_until(self, moment_s: float) -> None:
        """Return at this moment, or at once if it has passed."""
        ...


class RealClock:
    """The machine's monotonic clock. Whatever really moves needs this one."""

    def now_s(self) -> float:
        return time.monotonic()

    def sleep_until(self, moment_s: float) -> None:
        time.sleep(max(0.0, moment_s - time.monotonic()))


class SimulatedClock:
    """Time that passes by sleeping alone. Only for stand-ins: a real arm would get its commands all at once."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def now_s(self) -> float:
        return self._now_s

    def sleep_until(self, moment_s: float) -> None:
        self._now_s = max(self._now_s, moment_s)

    def pass_s(self, duration_s: float) -> None:
        """Let something take its time."""
        self._now_s += duration_s
