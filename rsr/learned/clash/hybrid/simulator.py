"""The hybrid simulator behind the `Simulator` contract: MuJoCo, but the adapted model computes the pair's impacts.

Without the pair's stiff contact nothing asks for its fine time step. So windows are rolled out coarsely, a slice of
some tens of milliseconds at a time, and looked through for the first overlap of the pair. There the model says how the
impact ends; fine steps lead on to the next control step, coarse ones from there. Only what follows an impact within its
slice is rolled out twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import mujoco
import numpy as np
from mujoco import rollout as mujoco_rollout

from rsr.common import CalibrationError
from rsr.learned.clash.adaptation import Adapted
from rsr.learned.clash.hybrid.contacts import PairContacts, PairModels
from rsr.learned.clash.hybrid.meetings import Meetings
from rsr.learned.clash.strike_recordings import Planar
from rsr.scenarios import Scenario
from rsr.scenarios.built_in.strike import SPEED_M_S, Shape, Strikes
from rsr.simulators import delayed, weights_of

_MOST_COLLISIONS = 20
_SLOWEST_M_S = SPEED_M_S[0] / 2
"""Slower touches are not among the strikes that a model knows; they and what follows are MuJoCo's own contact."""
_SAME_M = 0.0005
_SLICE_S = 0.05
_LET_GO_M = 0.002


@dataclass(frozen=True)
class SimulatedImpact:
    """One of the pair: which window, when since its start, and the strike in the block's frame.

    Args:
        handled: by the adapted model. False: a slow touch, from which on MuJoCo's own contact acts until they part.
    """

    window: int
    time_s: float
    strike: Strikes
    handled: bool


class HybridSimulator:
    """Rolls any scenario that declares a collision forward, a population at once. Close it, or use it in `with`.

    After a `rollout`, `collisions` lists what collided and whether the adapted model handled it. The model knows blocks
    at rest; one that moves is struck with the relative velocity, in its own frame. Where the striker only pushes, and
    comes nearer slowly, MuJoCo's contact takes over. Parameters act on all that is not the model's.

    Example:
        >>> with HybridSimulator(load_scenario("strike"), load_adapted(folder)) as simulator:
        ...     states = simulator.rollout(starts, commands, scenario.space.nominal)
    """

    def __init__(self, scenario: Scenario, model: Adapted, threads: int = 1) -> None:
        self._planar = Planar(scenario)
        check_same_block(scenario, self._planar.shape, model.shape)
        self.scenario = scenario
        self._adapted, self._meetings = model, Meetings(scenario, self._planar.shape)
        self._contacts = PairContacts(scenario)
        self._pool = mujoco_rollout.Rollout(nthread=threads)
        self._data = [mujoco.MjData(self._contacts.apart.base_model) for _ in range(max(1, threads))]
        self.collisions: tuple[SimulatedImpact, ...] = ()

    def __enter__(self) -> HybridSimulator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._pool.close()

    def rollout(self, states: np.ndarray, actions: np.ndarray, params: np.ndarray) -> np.ndarray:
        """See `Simulator.rollout`."""
        scenario, windows = self.scenario, len(states)
        # A model is compiled once for each set of parameters: copies of a population share theirs.
        values = np.broadcast_to(np.atleast_2d(params), (windows, len(scenario.space)))
        unique, which = np.unique(values, axis=0, return_inverse=True)
        made = [self._contacts.models(row) for row in unique]
        controls = delayed(actions, np.stack([weights_of(scenario, row) for row in unique])[which.ravel()])
        run = _Run(self, [made[index] for index in which.ravel()], controls)
        total = controls.shape[1] // scenario.substeps
        edges = [*range(0, total, max(1, round(_SLICE_S / scenario.control_dt_s))), total]
        path = np.empty((windows, total + 1, states.shape[1]))
        path[:, 0] = states
        for begin, end in pairwise(edges):
            path[:, begin + 1 : end + 1] = run.slice(path[:, begin], begin, end)
        self.collisions = tuple(sorted(run.found, key=lambda each: (each.window, each.time_s)))
        return path


@dataclass(frozen=True)
class _Path:
    """One window in a slice: states [M, n] at physics steps [M] since the slice began, and gaps [M] of the pair."""

    at: np.ndarray
    states: np.ndarray
    gaps: np.ndarray

    def then(self, later: _Path) -> _Path:
        """Join with what begins after this ends."""
        pairs = ((self.at, later.at), (self.states, later.states), (self.gaps, later.gaps))
        return _Path(*(np.concatenate(pair) for pair in pairs))


class _Run:
    """One rollout: windows go on slice by slice, each freely, or with MuJoCo's contact while the pair touches."""

    def __init__(self, owner: HybridSimulator, models: list[PairModels], controls: np.ndarray) -> None:
        self._owner, self._models, self._controls = owner, models, controls
        self._substeps = owner.scenario.substeps
        self._step_s = float(owner.scenario.base_model.opt.timestep)
        self._touching = np.zeros(len(models), bool)
        self._count = np.zeros(len(models), int)
        self._full = mujoco.mj_stateSize(models[0].fine, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        self.found: list[SimulatedImpact] = []

    def slice(self, states: np.ndarray, begin: int, end: int) -> np.ndarray:
        """States [B, end - begin, n] at the ends of control steps, from states [B, n] at `begin`."""
        first, count = begin * self._substeps, (end - begin) * self._substeps
        after = np.empty((len(states), end - begin, states.shape[1]))
        ends = np.arange(1, end - begin + 1) * self._substeps
        free, touching = np.flatnonzero(~self._touching), np.flatnonzero(self._touching)
        for row, path in self._pushed(touching, states[touching], first, count):
            after[row] = path.states[ends]
            self._touching[row] = path.gaps[-1] < _LET_GO_M
        for row, path in self._coarse(free, states[free], first, count):
            whole = self._struck(row, path, first, count)
            after[row] = whole.states[np.searchsorted(whole.at, ends)]
        return after

    def _struck(self, row: int, path: _Path, first: int, count: int) -> _Path:
        """A path up to the end of its slice, with the impacts that it meets on the way."""
        begun = 0
        while (found := self._owner._meetings.first(path.at, path.gaps, path.states, begun, self._step_s)) is not None:
            at, state = found
            strike = self._owner._planar.strike(state)
            self._count[row] += 1
            # The last one goes to MuJoCo's contact, so that a block caught between two others ends in finite time.
            handled = bool(strike.speed_m_s[0] >= _SLOWEST_M_S and self._count[row] < _MOST_COLLISIONS)
            self.found.append(SimulatedImpact(row, (first + at) * self._step_s, strike, handled))
            kept = path.at < at
            before = _Path(path.at[kept], path.states[kept], path.gaps[kept])
            if not handled:
                path = before.then(self._fine(row, at, state, first, count, self._models[row].touching))
                self._touching[row] = path.gaps[-1] < _LET_GO_M
                break
            gained = self._owner._adapted(strike)[0]
            later = self._after(row, at, self._owner._planar.after(state, strike, gained), first, count)
            path, begun = before.then(later), len(before.at)
        return path

    def _after(self, row: int, at: int, state: np.ndarray, first: int, count: int) -> _Path:
        """From a physics step on: fine steps to the next control step, and coarse ones from there."""
        boundary = min(count, -(-at // self._substeps) * self._substeps)
        path = self._fine(row, at, state, first, boundary, self._models[row].fine)
        if boundary == count:
            return path
        ((_, rest),) = self._coarse(np.array([row]), path.states[-1:], first + boundary, count - boundary)
        begun = _Path(path.at[:-1], path.states[:-1], path.gaps[:-1])
        return begun.then(_Path(rest.at + boundary, rest.states, rest.gaps))

    def _fine(self, row: int, at: int, state: np.ndarray, first: int, until: int, model: mujoco.MjModel) -> _Path:
        controls = self._controls[row : row + 1, first + at : first + until]
        states, gaps = self._rolled([model], state[None], controls)
        return _Path(np.arange(at, until + 1), states[0], gaps[0])

    def _pushed(self, rows: np.ndarray, states: np.ndarray, first: int, count: int) -> list[tuple[int, _Path]]:
        """Windows with MuJoCo's own contact of the pair, through a slice."""
        if len(rows) == 0:
            return []
        controls = self._controls[rows, first : first + count]
        path, gaps = self._rolled([self._models[row].touching for row in rows], states, controls)
        return [(int(row), _Path(np.arange(count + 1), path[i], gaps[i])) for i, row in enumerate(rows)]

    def _coarse(self, rows: np.ndarray, states: np.ndarray, first: int, count: int) -> list[tuple[int, _Path]]:
        """Windows without that contact, through a slice; those of one step length at once."""
        factors = np.array([self._models[row].factor for row in rows], dtype=int)
        paths: list[tuple[int, _Path]] = []
        for factor in np.unique(factors):
            part = rows[factors == factor]
            # A coarse step has the time average of its commands, as a fine one has.
            held = (
                self._controls[part, first : first + count].reshape(len(part), count // factor, factor, -1).mean(axis=2)
            )
            path, gaps = self._rolled([self._models[row].coarse for row in part], states[factors == factor], held)
            at = np.arange(0, count + 1, factor)
            paths += [(int(row), _Path(at, path[i], gaps[i])) for i, row in enumerate(part)]
        return paths

    def _rolled(
        self, models: list[mujoco.MjModel], states: np.ndarray, controls: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """States [B, N + 1, n] and gaps [B, N + 1] under controls [B, N, nu]."""
        initial = np.zeros((len(states), self._full))
        initial[:, 1 : 1 + states.shape[1]] = states
        path = states[:, None]
        if controls.shape[1]:
            after, _ = self._owner._pool.rollout(models, self._owner._data, initial, controls)
            path = np.concatenate([path, after[:, :, 1 : 1 + states.shape[1]]], axis=1)
        return path, self._owner._meetings.gaps(path)


def check_same_block(scenario: Scenario, declared: Shape, known: Shape) -> None:
    """Refuse a model of another block than the scenario declares."""
    if len(declared.outline) != len(known.outline) or float(known.distances(declared.outline).max()) > _SAME_M:
        raise CalibrationError(
            got=f"a surrogate of '{known.name}'",
            expected=f"one of '{declared.name}', which the scenario declares as the struck block",
            where=f"scenario {scenario.name}",
            next_step="Adapt a surrogate of this scenario: `rsr calibrate --method clash`.",
        )
