"""Where sessions come from. A reality moves something, so everything it does passes the safety envelope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rsr.progress import Advance
from rsr.sessions import Session


@dataclass(frozen=True)
class CollectionPlan:
    """What to record: how many episodes, from which seeded starts and targets."""

    session: str
    episodes: int
    seed: int
    policy_sha256: str | None = None


class Actor(Protocol):
    """What a reality needs of a policy: the stored one and the exported one both have it."""

    def act(self, observation: np.ndarray) -> np.ndarray:
        """Displacements in -1..1, [B, 6], for observations [B, n]."""
        ...


class Reality(Protocol):
    def collect(self, policy: Actor, plan: CollectionPlan, advance: Advance) -> Session:
        """Run the policy and return what was measured and what was really sent."""
        ...
