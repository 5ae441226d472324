"""The hybrid simulator behind the `Simulator` contract: MuJoCo, but the adapted model computes the pair's impacts.

Without the pair's stiff contact nothing asks for its fine time step. So windows are rolled out coarsely, a slice of
some tens of milliseconds at a time, and looked through for the first overlap of the pair. There the model says how the
impact ends; fine steps lead on to the next control step, coarse ones from there. Only what follows an impact within its
slice is rolled out twice.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from itertools import pairwise

import mujoco
import numpy as np
from mujoco import rollout as mujoco_rollout

from rsr.common import CalibrationError, rotated
from rsr.learned.clash.adaptation import Adapted
from rsr.learned.clash.strike_recordings import Planar
from rsr.scenarios import Scenario
from rsr.scenarios.built_in.strike import SPEED_M_S, Shape, Strikes, declared_collision, distances
from rsr.simulators import delayed, weights_of

_MOST_COLLISIONS = 20
_SLOWEST_M_S = SPEED_M_S[0] / 2
"""Slower touches are not among the strikes that a model knows; they and what follows are MuJoCo's own contact."""
_APPROACH_M_S = 1e-3
_SAME_M = 0.0005
_SLICE_S = 0.05
_COARSEST_S = 0.002
"""MuJoCo's default, for which most models of others are made."""
_NOTHING = 1e-9
_LET_GO_M, _ABOVE_M = 0.002, 0.001


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
        self._apart, self._pairs, self._resting = _apart(scenario), _pairs(scenario), _resting(scenario)
        self._pool = mujoco_rollout.Rollout(nthread=threads)
        self._data = [mujoco.MjData(self._apart.base_model) for _ in range(max(1, threads))]
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
        made = [self._models(row) for row in unique]
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

    def _models(self, values: np.ndarray) -> _Models:
        free = self._apart.model(values)
        # All but no impedance, spring or damper. A negative margin will not do: between meshes MuJoCo 3.17 measures
        # overlaps from the margin on, so that the contact acts all the same.
        free.pair_solimp[self._pairs, :2], free.pair_solref[self._pairs] = 0.0, -_NOTHING
        coarse = copy.copy(free)
        # The block lies on its table: how springy that is, a slide hardly feels, and it would ask for the fine step.
        coarse.pair_solref[self._resting, 1] = np.maximum(coarse.pair_solref[self._resting, 1], 1.0)
        coarse.opt.timestep *= coarsening(coarse, self._pairs, self.scenario.substeps)
        return _Models(coarse, free, self.scenario.model(values))


def coarsening(model: mujoco.MjModel, pairs: np.ndarray, substeps: int) -> int:
    """Find how many time steps may be taken as one where the contacts of `pairs` do not act; it divides `substeps`.

    A contact of time constant t and damping ratio z oscillates at 1 / (t z): steps above half of t, or above t z, would
    make it unstable or other than it was.
    """
    acting = np.flatnonzero(model.geom_contype | model.geom_conaffinity)
    others = np.delete(np.arange(model.npair), pairs)
    references = np.concatenate([model.geom_solref[acting], model.pair_solref[others], model.eq_solref])
    if (references <= 0).any():  # stiffness and damping stated directly: nothing is known of their time
        return 1
    longest_s = min([_COARSEST_S, *(0.45 * references[:, 0] * np.minimum(1, 2 * references[:, 1]))])
    able = [count for count in range(1, substeps + 1) if substeps % count == 0]
    return max([1, *(count for count in able if count * model.opt.timestep <= longest_s)])


@dataclass(frozen=True)
class _Models:
    """MuJoCo with one set of parameters: without the pair's contact at both time steps, and with it at the fine one."""

    coarse: mujoco.MjModel
    fine: mujoco.MjModel
    touching: mujoco.MjModel

    @property
    def factor(self) -> int:
        return round(self.coarse.opt.timestep / self.fine.opt.timestep)


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

    def __init__(self, owner: HybridSimulator, models: list[_Models], controls: np.ndarray) -> None:
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


class Meetings:
    """Where the declared pair meets, found in states: cheaply from above, and confirmed in three dimensions."""

    def __init__(self, scenario: Scenario, shape: Shape) -> None:
        declared, model = declared_collision(scenario), scenario.base_model
        self._model, self._data, self._outline = model, mujoco.MjData(model), shape.outline
        self._reach_m = float(np.linalg.norm(shape.outline, axis=1).max()) + declared.nose_radius_m
        self._nose_radius_m = declared.nose_radius_m
        self._geoms = tuple(model.geom(name).id for name in (declared.striker, declared.struck))
        self._striker, self._struck = (int(model.geom_bodyid[geom]) for geom in self._geoms)
        self._of_mesh = model.geom_type[self._geoms[0]] == mujoco.mjtGeom.mjGEOM_MESH
        self._free_at = int(model.jnt_qposadr[model.body_jntadr[self._struck]])
        self._rails = self._straight()

    def gaps(self, states: np.ndarray) -> np.ndarray:
        """Distance [..] of nose and outline from above, in states [.., n]; where they are far apart, a lower bound."""
        flat = states.reshape(-1, states.shape[-1])
        position, quaternion = (
            flat[:, self._free_at : self._free_at + 3],
            flat[:, self._free_at + 3 : self._free_at + 7],
        )
        w, x, y, z = quaternion.T
        # First column of the rotation: where the block's x axis points, seen from above.
        yaw = np.arctan2(2 * (x * y + w * z), 1 - 2 * (y**2 + z**2))
        centre = position[:, :2] + rotated(
            np.broadcast_to(self._model.body_ipos[self._struck, :2], (len(flat), 2)), yaw
        )
        away = self._noses(flat) - centre
        found = np.linalg.norm(away, axis=1) - self._reach_m
        near = np.flatnonzero(found < 0)
        if len(near):
            found[near] = distances(rotated(away[near], -yaw[near]), self._outline) - self._nose_radius_m
        return found.reshape(states.shape[:-1])

    def first(
        self, at: np.ndarray, gaps: np.ndarray, states: np.ndarray, begun: int, step_s: float
    ) -> tuple[int, np.ndarray] | None:
        """First physics step from row `begun` on at which the two overlap and come nearer, with the state then."""
        apart = np.diff(at[begun:])
        # Two that part still overlap for some steps: an overlap that shrinks is the end of an impact, not another one.
        nearer = -np.diff(gaps[begun:]) > _APPROACH_M_S * apart * step_s
        for row in begun + np.flatnonzero((gaps[begun + 1 :] < 0) & nearer):
            # The gap shrinks evenly between two rows; the step just after it closes is the first that overlaps.
            share = float(np.clip(gaps[row] / (gaps[row] - gaps[row + 1]), 0, 1))
            steps = int(np.ceil(share * (at[row + 1] - at[row]) - 1e-9))
            state = self._between(states[row], states[row + 1], steps / (at[row + 1] - at[row]))
            if self._touches(states[row + 1]):
                return int(at[row]) + steps, state
        return None

    def _between(self, before: np.ndarray, after: np.ndarray, share: float) -> np.ndarray:
        nq = self._model.nq
        state, change = before + share * (after - before), np.zeros(self._model.nv)
        # Positions along the geodesic: quaternions do not add up.
        mujoco.mj_differentiatePos(self._model, change, 1.0, before[:nq], after[:nq])
        state[:nq] = before[:nq]
        mujoco.mj_integratePos(self._model, state[:nq], change, share)
        return state

    def _touches(self, state: np.ndarray) -> bool:
        """Whether the two are as near in three dimensions: a striker may pass above the block."""
        self._data.qpos[:] = state[: self._model.nq]
        mujoco.mj_kinematics(self._model, self._data)
        return mujoco.mj_geomDistance(self._model, self._data, *self._geoms, 1.0, None) < _ABOVE_M

    def _noses(self, states: np.ndarray) -> np.ndarray:
        """Places [N, 2] of the nose's centre in states [N, n]."""
        if self._rails is not None:
            origin, columns = self._rails
            return origin + states[:, : self._model.nq] @ columns
        return np.array([self._nose(state) for state in states])

    def _nose(self, qpos: np.ndarray) -> np.ndarray:
        data = self._data
        data.qpos[:] = qpos[: self._model.nq]
        mujoco.mj_kinematics(self._model, data)
        return (data.xpos[self._striker] if self._of_mesh else data.geom_xpos[self._geoms[0]])[:2].copy()

    def _straight(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Place [2] of the nose at qpos zero, and its change [nq, 2] with qpos, where it moves on rails alone."""
        model, body, columns = self._model, self._striker, np.zeros((self._model.nq, 2))
        start = model.qpos0.copy()
        origin = self._nose(start)
        while body:
            joints = range(model.body_jntadr[body], model.body_jntadr[body] + model.body_jntnum[body])
            if any(model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_SLIDE for joint in joints):
                return None
            for joint in joints:
                moved = start.copy()
                moved[model.jnt_qposadr[joint]] += 1.0
                columns[model.jnt_qposadr[joint]] = self._nose(moved) - origin
            body = int(model.body_parentid[body])
        return origin - start @ columns, columns


def _apart(scenario: Scenario) -> Scenario:
    """The scenario with no other contact of the pair than a stated one, which can be switched off."""
    declared, base = declared_collision(scenario), scenario.base_model
    spec = scenario.spec()
    bodies = [base.body(base.geom_bodyid[base.geom(name).id]).name for name in (declared.striker, declared.struck)]
    # Excluded by bodies, since the geoms may also collide by their masks; stated pairs survive.
    spec.add_exclude(bodyname1=bodies[0], bodyname2=bodies[1])
    model = spec.compile()
    for option in ("timestep", "cone", "integrator", "tolerance"):  # what `structured` may have chosen
        setattr(model.opt, option, getattr(base.opt, option))
    model.pair_dim[:], model.geom_condim[:] = base.pair_dim, base.geom_condim
    return replace(scenario, base_model=model)


def _pairs(scenario: Scenario) -> np.ndarray:
    """Places of the contact pairs that the MJCF states for the two geoms."""
    declared, model = declared_collision(scenario), scenario.base_model
    wanted = sorted(model.geom(name).id for name in (declared.striker, declared.struck))
    return np.flatnonzero(
        (np.sort(np.column_stack([model.pair_geom1, model.pair_geom2]), axis=1) == wanted).all(axis=1)
    )


def _resting(scenario: Scenario) -> np.ndarray:
    """Places of the struck geom's other pairs, with what it lies on; those with a time constant and damping ratio."""
    model = scenario.base_model
    struck = model.geom(declared_collision(scenario).struck).id
    touches = (model.pair_geom1 == struck) | (model.pair_geom2 == struck)
    return np.setdiff1d(np.flatnonzero(touches & (model.pair_solref > 0).all(axis=1)), _pairs(scenario))


def check_same_block(scenario: Scenario, declared: Shape, known: Shape) -> None:
    """Refuse a model of another block than the scenario declares."""
    if len(declared.outline) != len(known.outline) or float(known.distances(declared.outline).max()) > _SAME_M:
        raise CalibrationError(
            got=f"a surrogate of '{known.name}'",
            expected=f"one of '{declared.name}', which the scenario declares as the struck block",
            where=f"scenario {scenario.name}",
            next_step="Adapt a surrogate of this scenario: `rsr calibrate --method clash`.",
        )
