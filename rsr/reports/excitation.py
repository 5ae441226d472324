"""Which parameters a session can say anything about, before anything is fitted to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rsr.calibration.fitting import Effort
from rsr.calibration.identifiability import IDENTIFIED_SHRINKAGE, INFLATION
from rsr.calibration.loss import Loss
from rsr.calibration.priors import start_prior
from rsr.calibration.refine import FIRST_SPREAD, POINTS
from rsr.calibration.windows import choose, cut
from rsr.scenarios import Parameter, Scenario
from rsr.sessions import Session
from rsr.sessions.findings import Finding
from rsr.simulators import MujocoSimulator

Telling = Literal["much", "little", "nothing"]
"""How much of the prior's doubt the data would take: all but a third; some; less than a fifth."""

_LITTLE = 0.8
_ALIKE = 0.9
"""Correlation beyond which two parameters are told together, not apart."""
_WINDOWS = 24
_MOST_EPISODES = 24


@dataclass(frozen=True)
class Excitation:
    """What a session would tell of one parameter.

    Args:
        left: share of the prior's standard deviation that would be left, 1 at most; around nominal values.
        together: parameters whose effects look alike in these data.
    """

    parameter: Parameter
    left: float
    together: tuple[str, ...] = ()

    @property
    def telling(self) -> Telling:
        """In a word."""
        if self.left <= IDENTIFIED_SHRINKAGE:
            return "much"
        return "little" if self.left <= _LITTLE else "nothing"


def find_excitation(scenario: Scenario, session: Session) -> tuple[Excitation, ...]:
    """Simulate windows of a session with parameters scattered around nominal, and see which of them it would show.

    A few windows stand for as many as a fit with default effort takes. Whatever does not follow the parameters in a
    straight line (the ripples of contact) counts as noise.
    """
    space = scenario.space
    step = max(1, len(session.episodes) // _MOST_EPISODES)
    episodes = session.episodes[::step]
    rng = np.random.default_rng(0)
    every = cut(scenario, episodes, scenario.window_steps, stride=max(1, scenario.window_steps // 2))
    windows = choose(scenario, every, _WINDOWS, rng)
    if not len(windows):
        return tuple(Excitation(parameter, 1.0) for parameter in space)
    likewise = max(1.0, min(len(every), Effort().max_windows) / len(windows))
    with MujocoSimulator(scenario) as simulator:
        loss = Loss(scenario, simulator, windows, start_prior(scenario))
        covariance = np.linalg.inv(likewise * _information(loss, rng) + np.eye(len(space)))
    std = np.sqrt(np.diag(covariance))
    alike = np.abs(covariance / np.outer(std, std)) > _ALIKE
    return tuple(
        Excitation(
            parameter,
            float(min(1.0, INFLATION * std[i])),
            tuple(other.name for j, other in enumerate(space) if j != i and alike[i, j]),
        )
        for i, parameter in enumerate(space)
    )


def _information(loss: Loss, rng: np.random.Generator) -> np.ndarray:
    """What windows tell of each parameter and of their combinations [P, P], in units of the prior.

    Slopes regressed on scattered points hold noise of their own, which would pass for information: it is taken off.
    """
    drawn = FIRST_SPREAD * rng.normal(size=(POINTS // 2, len(loss.prior.mean)))
    ahead, behind = (np.clip(side, *loss.bounds.T) for side in (drawn, -drawn))
    misfits = loss.misfits(np.concatenate([ahead, behind])).reshape(2, len(drawn), -1)
    # Half the difference of opposite points: what bends is equal on both sides and drops out.
    points, odd = (ahead - behind) / 2, (misfits[0] - misfits[1]) / 2
    slopes = np.linalg.pinv(points) @ odd
    ripples = np.sum((odd - points @ slopes) ** 2, axis=0) / (len(points) - points.shape[1])
    weights = 1.0 / (1.0 + loss.windows.steps * ripples)  # the loss counts the rows of a window as one
    information = (slopes * weights) @ slopes.T - np.sum(weights * ripples) * np.linalg.inv(points.T @ points)
    sizes, axes = np.linalg.eigh(information)
    return (axes * np.maximum(sizes, 0.0)) @ axes.T


def judge_excitation(session: Session, found: tuple[Excitation, ...]) -> Iterator[Finding]:
    """Say what fitting to this session will leave as it was."""
    silent = [each.parameter.name for each in found if each.telling == "nothing"]
    if not silent:
        return
    none_at_all = len(silent) == len(found)
    yield Finding(
        "care" if none_at_all else "note", "excitation", f"session '{session.card.session}'",
        got=f"data that say nothing of {'any parameter' if none_at_all else ', '.join(silent)}",
        expected="motions in which every parameter acts",
        next_step="Record episodes in which the robot moves and touches." if none_at_all
        else "Their values will stay what was believed before; record motions in which they act if they matter.",
    )  # fmt: skip
