"""Where sessions come from. A reality moves something, so everything it does passes the safety envelope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rsr.errors import SessionError
from rsr.progress import Advance
from rsr.sessions import Session, is_session_name


@dataclass(frozen=True)
class CollectionPlan:
    """What to record: how many episodes, from which seeded starts and targets.

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


class Actor(Protocol):
    """What a reality needs of a policy: the stored one and the exported one both have it."""

    def act(self, observation: np.ndarray) -> np.ndarray:
        """Displacements in -1..1, [B, 6], for observations [B, n]."""
        ...


class Reality(Protocol):
    def collect(self, policy: Actor, plan: CollectionPlan, advance: Advance) -> Session:
        """Run the policy and return what was measured and what was really sent."""
        ...
