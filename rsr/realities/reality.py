"""Where sessions come from. A reality moves something, so everything it does passes the safety envelope."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from rsr.common import Advance, PolicyError, SessionError
from rsr.sessions import Session, is_session_name

T = TypeVar("T")


@dataclass(frozen=True)
class CollectionPlan:
    """Plan of a recording: how many episodes, from which seeded starts and targets.

    A name that no session may have is refused here, before anything moves, and not when all is recorded.
    """

    session: str
    episodes: int
    seed: int
    policy_sha256: str | None = None

    def __post_init__(self) -> None:
        where = f"the recording '{self.session}'"
        if not is_session_name(self.session):
            got, expected = f"the name {self.session!r}", "letters, digits, '_' and '-'"
            raise SessionError(got=got, expected=expected, where=where, next_step="Choose another name.")
        if self.episodes < 1:
            raise SessionError(
                got=f"{self.episodes} episodes",
                expected="at least one",
                where=where,
                next_step="Say how many to record.",
            )


class Controller(Protocol):
    """The side of a policy that a reality needs: the stored one and the exported one both have it."""

    def act(self, observation: np.ndarray) -> np.ndarray:
        """Actions in -1..1, [B, m], for observations [B, n]."""
        ...


class Reality(Protocol):
    def collect(self, policy: Controller | None, plan: CollectionPlan, advance: Advance) -> Session:
        """Record what the plan asks for: what was measured, and what was really sent.

        Args:
            policy: what moves the robot; None where nothing is controlled, as where a person pushes.
        """
        ...


def required(policy: Controller | None, reality: str) -> Controller:
    """The policy, for a reality that moves by one.

    Raises:
        PolicyError: there is none.
    """
    if policy is None:
        raise PolicyError(
            got="no policy",
            expected="one to move the robot by",
            where=f"reality {reality}",
            next_step="Pass the policy to `collect`.",
        )
    return policy


# Time as an argument: the machine's, or one that passes as fast as the computer can.


class Clock(Protocol):
    def now_s(self) -> float:
        """Seconds since some moment; never goes back."""
        ...

    def sleep_until(self, moment_s: float) -> None:
        """Return at this moment, or at once if it has passed."""
        ...

    def call_until(self, moment_s: float, call: Callable[[], T]) -> T:
        """Return what a call returns; at this moment at the latest.

        Raises:
            TimeoutError: it has not returned by then.
        """
        ...


class RealClock:
    """The machine's monotonic clock. Whatever really moves needs this one."""

    def now_s(self) -> float:
        return time.monotonic()

    def sleep_until(self, moment_s: float) -> None:
        time.sleep(max(0.0, moment_s - time.monotonic()))

    def call_until(self, moment_s: float, call: Callable[[], T]) -> T:
        answer: Future[T] = Future()
        # A thread of its own: what never returns must not keep the program from ending.
        threading.Thread(target=_answer, args=(answer, call), daemon=True).start()
        return answer.result(timeout=max(0.0, moment_s - time.monotonic()))


def _answer(answer: Future[T], call: Callable[[], T]) -> None:
    try:
        answer.set_result(call())
    except BaseException as error:
        answer.set_exception(error)


class SimulatedClock:
    """Time that passes by sleeping alone. Only for stand-ins: a real arm would get its commands all at once."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def now_s(self) -> float:
        return self._now_s

    def sleep_until(self, moment_s: float) -> None:
        self._now_s = max(self._now_s, moment_s)

    def call_until(self, moment_s: float, call: Callable[[], T]) -> T:
        return call()
