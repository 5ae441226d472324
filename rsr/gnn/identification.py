"""Contact parameters from a few recorded trajectories: CMA-ES through Optuna, whole populations on MuJoCo's threads.

Objective and ranges are those of "Few-Shot Neural Differentiable Simulator", Eq. (1) and Table II.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from rsr.errors import CalibrationError, SessionError
from rsr.gnn.rotations import angle_between
from rsr.gnn.teacher import THREADS, rollouts, teacher_model, with_contact
from rsr.gnn.trajectories import GIVEN_FRAMES, Trajectory
from rsr.gnn.velocities import Steady, steady_all
from rsr.progress import Advance, ignore
from rsr.scenarios import ParameterSpace, load_scenario
from rsr.scenarios.two_cubes import ContactParameters
from rsr.sessions.extras import library

EVALUATIONS = 1000
_POPULATION = 16
_BEST_SHARE = 0.1
_AS_GOOD = 1.5
_WORST = 1e6
"""The error of parameters with which MuJoCo diverges."""


@dataclass(frozen=True)
class Identified:
    """Contact parameters and what they are worth.

    Args:
        default_error, error: Eq. (1) with MuJoCo's defaults and with these parameters, mean over the trajectories that
            were fitted.
        jumps: frames that were left out because a tag jumped.
        warnings: what the trajectories cannot tell.
    """

    contact: ContactParameters
    default_error: float
    error: float
    evaluations: int
    jumps: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Group:
    """Trajectories of one world and one length, which are simulated together."""

    model: mujoco.MjModel
    trajectories: tuple[Steady, ...]

    @property
    def starts(self) -> np.ndarray:
        return np.array([each.trajectory.start for each in self.trajectories])

    @property
    def frames(self) -> int:
        return len(self.trajectories[0].trajectory)


class Judge:
    """Eq. (1) of the paper over recorded trajectories, for many contact parameters at once.

    The error of one trajectory is the sum, over the frames after the first two and over its bodies, of the distance in
    sides of the body and of the angle in rad. Frames in which a tag jumped are left out.
    """

    def __init__(self, trajectories: Sequence[Trajectory], threads: int = THREADS) -> None:
        if not trajectories:
            raise SessionError(
                got="no trajectory",
                expected="at least one recorded trajectory",
                where="identification",
                next_step="Name sessions that have episodes.",
            )
        self.recorded = tuple(steady_all(trajectories))
        self._threads = threads
        self._dt_s = _common_dt_s(trajectories)
        self._groups = _grouped(self.recorded)

    def __call__(self, contacts: Sequence[ContactParameters]) -> np.ndarray:
        """Errors [len(contacts), K] of K trajectories, in the order of the groups they fall into."""
        models, starts, frames = [], [], []
        for contact in contacts:
            for group in self._groups:
                models.append(with_contact(group.model, contact))
                starts.append(group.starts)
                frames.append(group.frames)
        simulated = iter(rollouts(models, starts, frames, self._dt_s, self._threads))
        rows = [[_errors(group, next(simulated)) for group in self._groups] for _ in contacts]
        return np.array([np.concatenate(row) for row in rows])

    @property
    def trajectories(self) -> tuple[Trajectory, ...]:
        """The recorded ones, with steady starts."""
        return tuple(each.trajectory for each in self.recorded)

    def mean(self, contact: ContactParameters) -> float:
        """Mean over the trajectories."""
        return float(self([contact]).mean())


def identify(
    recorded: Sequence[Trajectory] | Judge,
    evaluations: int = EVALUATIONS,
    seed: int = 0,
    advance: Advance = ignore,
    threads: int = THREADS,
) -> Identified:
    """Find the contact parameters with which MuJoCo comes nearest to recorded trajectories.

    Example:
        >>> found = identify(from_sessions(scenario, [session]))  # doctest: +SKIP
        >>> found.contact.mu  # doctest: +SKIP
        0.31
    """
    if evaluations < 1:
        raise CalibrationError(
            got=f"{evaluations} evaluations",
            expected="at least 1, better 1000",
            where="identification",
            next_step="Correct --evaluations.",
        )
    judge = recorded if isinstance(recorded, Judge) else Judge(recorded, threads)
    space = load_scenario("two_cubes").space
    study = _study(seed)
    tried, errors = np.zeros((0, len(space))), np.zeros(0)
    while len(tried) < evaluations:
        trials = [study.ask() for _ in range(min(_POPULATION, evaluations - len(tried)))]
        values = np.array([_suggested(trial, space) for trial in trials])
        found = judge([_contact(each) for each in values]).mean(axis=1)
        for trial, error in zip(trials, found.tolist(), strict=True):
            study.tell(trial, error)
        tried, errors = np.concatenate([tried, values]), np.concatenate([errors, found])
        words = f"error {errors.min():.3f} after {len(tried):,} of {evaluations:,}"
        advance(len(tried) / evaluations, words)
    contact, error = _chosen(judge, space, tried, errors)
    return Identified(
        contact=contact,
        default_error=judge.mean(ContactParameters()),
        error=error,
        evaluations=len(tried),
        jumps=sum(int(each.jumped.sum()) for each in judge.recorded),
        warnings=_warnings(judge.recorded),
    )


def _chosen(
    judge: Judge, space: ParameterSpace, tried: np.ndarray, errors: np.ndarray
) -> tuple[ContactParameters, float]:
    """The middle of the best, and its error; the best itself, where the middle is no good.

    A few noisy trajectories are explained about equally by contacts that differ much. The single best one fits their
    noise; the middle predicts others better, by a quarter on the stand-ins that this was tried on.
    """
    best = tried[np.argsort(errors, kind="stable")[: max(1, round(_BEST_SHARE * len(errors)))]]
    middle = space.to_values(space.to_coordinates(best).mean(axis=0)).clip(space.lower, space.upper)
    contact = _contact(middle)
    error = judge.mean(contact)
    if error > _AS_GOOD * errors.min():
        return _contact(tried[errors.argmin()]), float(errors.min())
    return contact, error


def _errors(group: _Group, simulated: np.ndarray) -> np.ndarray:
    """Eq. (1) for each trajectory of a group, from simulated poses [K, T, n, 7]."""
    recorded = np.array([each.trajectory.poses for each in group.trajectories])[:, GIVEN_FRAMES:]
    seen = ~np.array([each.jumped for each in group.trajectories])[:, GIVEN_FRAMES:]
    found = simulated[:, GIVEN_FRAMES:]
    distance = np.linalg.norm(found[..., :3] - recorded[..., :3], axis=-1) / group.trajectories[0].trajectory.sizes_m
    error = (seen * (distance + angle_between(found[..., 3:], recorded[..., 3:]))).sum(axis=(1, 2))
    return np.nan_to_num(error, nan=_WORST, posinf=_WORST).clip(max=_WORST)


def _grouped(recorded: Sequence[Steady]) -> list[_Group]:
    groups: dict[tuple[int, int], list[Steady]] = {}
    for each in recorded:
        groups.setdefault((id(each.trajectory.world), len(each.trajectory)), []).append(each)
    contact = ContactParameters()
    return [
        _Group(teacher_model(some[0].trajectory.world, contact, some[0].trajectory.dt_s), tuple(some))
        for some in groups.values()
    ]


def _common_dt_s(trajectories: Sequence[Trajectory]) -> float:
    times = {trajectory.dt_s for trajectory in trajectories}
    if len(times) > 1:
        raise SessionError(
            got=f"trajectories with {', '.join(f'{dt_s * 1e3:.2f}' for dt_s in sorted(times))} ms between frames",
            expected="one frame rate",
            where="identification",
            next_step="Identify from recordings of one frame rate at a time.",
        )
    return times.pop()


def _warnings(recorded: Sequence[Steady]) -> tuple[str, ...]:
    """What rests in every trajectory was never hit."""
    resting: dict[str, bool] = {}
    for each in recorded:
        for body, still in zip(each.trajectory.world.bodies, each.still.tolist(), strict=True):
            resting[body.name] = resting.get(body.name, True) and still
    names = [name for name, rests in resting.items() if rests]
    return tuple(f"{name} is at rest throughout: nothing is known of what it touches but the floor" for name in names)


def _study(seed: int) -> Any:
    """An Optuna study that CMA-ES leads, without its messages."""
    optuna = library("optuna", "gnn", "to identify contact parameters")
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        sampler = optuna.samplers.CmaEsSampler(seed=seed, popsize=_POPULATION, warn_independent_sampling=False)
        return optuna.create_study(sampler=sampler)
    finally:
        optuna.logging.set_verbosity(before)


def _suggested(trial: Any, space: ParameterSpace) -> np.ndarray:
    """Values [8], searched on the scale that each parameter declares."""
    return np.array([trial.suggest_float(each.name, each.lower, each.upper, log=each.scale == "log") for each in space])


def _contact(values: np.ndarray) -> ContactParameters:
    mu, d_0, d_width, width, midpoint, power, time_constant, damping_ratio = values.tolist()
    return ContactParameters(mu, (d_0, d_width, width, midpoint, power), (time_constant, damping_ratio))
