"""Excitation: how observable each parameter is in a session, before anything is fitted to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rsr.calibration import CORRELATED, IDENTIFIED_SHRINKAGE, NOT_OBSERVED, STD_INFLATION, expected_covariance
from rsr.scenarios import Parameter, Scenario
from rsr.sessions import Finding, Session

Observability = Literal["high", "low", "none"]
"""How far the data would shrink the prior: to a third or less; somewhat; by less than a fifth."""


@dataclass(frozen=True)
class Excitation:
    """Expected posterior of one parameter.

    Args:
        std_share: posterior over prior standard deviation, 1 at most; around nominal values.
        correlated: parameters whose errors would correlate with this one's by more than 0.9.
    """

    parameter: Parameter
    std_share: float
    correlated: tuple[str, ...] = ()

    @property
    def observability(self) -> Observability:
        """The share as a word."""
        if self.std_share <= IDENTIFIED_SHRINKAGE:
            return "high"
        return "low" if self.std_share <= NOT_OBSERVED else "none"


def find_excitation(scenario: Scenario, session: Session) -> tuple[Excitation, ...]:
    """Compute the posterior that a fit to a session can be expected to have, without fitting it."""
    covariance = expected_covariance(scenario, session.episodes)
    std = np.sqrt(np.diag(covariance))
    correlated = np.abs(covariance / np.outer(std, std)) > CORRELATED
    return tuple(
        Excitation(
            parameter,
            float(min(1.0, STD_INFLATION * std[i])),
            tuple(other.name for j, other in enumerate(scenario.space) if j != i and correlated[i, j]),
        )
        for i, parameter in enumerate(scenario.space)
    )


def judge_excitation(session: Session, found: tuple[Excitation, ...]) -> Iterator[Finding]:
    """Name the parameters that a fit to this session would leave at their prior."""
    unobserved = [each.parameter.name for each in found if each.observability == "none"]
    if not unobserved:
        return
    none_at_all = len(unobserved) == len(found)
    yield Finding(
        "care" if none_at_all else "note", "excitation", f"session '{session.card.session}'",
        got=f"data without information on {'any parameter' if none_at_all else ', '.join(unobserved)}",
        expected="motions in which every parameter acts",
        next_step="Record episodes in which the robot moves and touches." if none_at_all
        else "Their values will stay at the prior; record motions in which they act if they matter.",
    )  # fmt: skip
