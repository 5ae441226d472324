"""The hybrid simulator behind the `Simulator` contract: MuJoCo, but impacts of the declared pair are the surrogate's.

Driven by events: all windows are rolled out in C without that contact, the first overlap of the pair is looked for in
what a distance sensor said, the surrogate says how it ends, and only what comes after is rolled out again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import mujoco
import numpy as np
from mujoco import rollout as mujoco_rollout

from rsr.errors import CalibrationError
from rsr.learned.clash.adaptation import Adapted
from rsr.learned.clash.strike_recordings import Planar
from rsr.scenarios import Scenario
from rsr.scenarios.built_in.strike import SPEED_M_S, Shape, Strikes, declared_collision
from rsr.simulators import delay_weights, delayed

_MOST_COLLISIONS = 20
_SLOWEST_M_S = SPEED_M_S[0] / 2
"""Slower touches are not among the strikes that a surrogate knows; they and what follows are MuJoCo's own contact."""
_SEEN_FROM_M = 0.05
_APPROACH_M_S = 1e-3
_SAME_M = 0.0005


@dataclass(frozen=True)
class SimulatedImpact:
    """One of the pair: which window, when since its start, and the strike in the block's frame.

    Args:
        handled: by the surrogate. False: a slow touch, from which on MuJoCo's own contact acts in this window.
    """

    window: int
    time_s: float
    strike: Strikes
    handled: bool


class HybridSimulator:
    """Rolls any scenario that declares a collision forward, a population at once. Close it, or use it in `with`.

    After a `rollout`, `collisions` lists what collided and whether the surrogate handled it. The surrogate knows blocks
    at rest; one that moves is struck with the relative velocity, in its own frame. Where the striker only pushes, and
    comes nearer slowly, MuJoCo's contact takes over. Parameters act on all that is not the surrogate's.

    Example:
        >>> with HybridSimulator(load_scenario("strike"), load_adapted(folder)) as simulator:
        ...     states = simulator.rollout(starts, commands, scenario.space.nominal)
    """

    def __init__(self, scenario: Scenario, model: Adapted, threads: int = 1) -> None:
        self._adapted, self._planar = model, Planar(scenario)
        check_same_block(scenario, self._planar.shape, model.shape)
        self._plain, self.scenario = scenario, _watched(scenario)
        base = self.scenario.base_model
        self._pool = mujoco_rollout.Rollout(nthread=threads)
        self._data = [mujoco.MjData(base) for _ in range(max(1, threads))]
        self._full = mujoco.mj_stateSize(base, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        self._gap = int(base.sensor_adr[-1])
        self._pairs = _pairs(self.scenario)
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
        made = [self._without_contact(row) for row in unique]
        models = [made[index] for index in which.ravel()]
        steps = delayed(actions, np.stack([self._delay(row) for row in unique])[which.ravel()])
        # Without the pair's contact, the two pass through one another; up to the first overlap that is right.
        path, gaps = self._free(models, states, steps)
        found: list[SimulatedImpact] = []
        begun = np.zeros(windows, int)
        for turn in range(_MOST_COLLISIONS):
            hits = [(row, step) for row in range(windows) if (step := self._first(gaps[row], begun[row])) is not None]
            if not hits:
                break
            for row, step in hits:
                strike = self._planar.strike(path[row, step])
                # The last turn goes to MuJoCo's contact, so that a block caught between two others ends in finite time.
                handled = strike.speed_m_s[0] >= _SLOWEST_M_S and turn < _MOST_COLLISIONS - 1
                found.append(SimulatedImpact(row, step * self._timestep_s, strike, bool(handled)))
                rest = steps[row : row + 1, step:]
                if handled:
                    # All that follows the impact is another motion: only this window is rolled out again from there.
                    state = self._planar.after(path[row, step], strike, self._adapted(strike)[0])
                    later, gaps_later = self._free([models[row]], state[None], rest)
                    path[row, step:], gaps[row, step:], begun[row] = later[0], gaps_later[0], step + 1
                else:
                    path[row, step:] = self._touching(values[row], path[row, step], rest)
                    begun[row] = gaps.shape[1]
        self.collisions = tuple(sorted(found, key=lambda each: (each.window, each.time_s)))
        return path[:, :: scenario.substeps]

    @property
    def _timestep_s(self) -> float:
        return float(self.scenario.base_model.opt.timestep)

    def _without_contact(self, values: np.ndarray) -> mujoco.MjModel:
        model = self.scenario.model(values)
        model.pair_margin[self._pairs] = -1.0  # a contact acts where distance < margin: never
        return model

    def _delay(self, values: np.ndarray) -> np.ndarray:
        scenario = self.scenario
        return delay_weights(scenario.delay_s(values), scenario.control_dt_s, scenario.substeps, scenario.delay_steps)

    def _touching(self, values: np.ndarray, state: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """States [N + 1, nq + nv] with MuJoCo's own contact of the pair."""
        model = self._plain.model(values)
        initial = np.zeros((1, self._full))
        initial[0, 1 : 1 + len(state)] = state
        after, _ = self._pool.rollout([model], [mujoco.MjData(model)] * len(self._data), initial, steps)
        return np.concatenate([state[None], after[0, :, 1 : 1 + len(state)]])

    def _free(
        self, models: list[mujoco.MjModel], states: np.ndarray, steps: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """States [B, N + 1, nq + nv] without that contact, and distances of the pair [B, N] at all but the last."""
        size = self.scenario.state_size
        if steps.shape[1] == 0:
            return states[:, None], np.zeros((len(states), 0))
        initial = np.zeros((len(states), self._full))
        initial[:, 1 : 1 + size] = states
        after, sensed = self._pool.rollout(models, self._data, initial, steps)
        # MuJoCo senses before it steps: the first distance is that of the initial state.
        return np.concatenate([states[:, None], after[:, :, 1 : 1 + size]], axis=1), sensed[:, :, self._gap]

    def _first(self, gaps: np.ndarray, begun: int) -> int | None:
        """First step from `begun` on at which the two overlap and come nearer, or None."""
        # Two that part still overlap for some steps: an overlap that shrinks is the end of an impact, not another one.
        nearer = (gaps[begun:-1] - gaps[begun + 1 :]) / self._timestep_s > _APPROACH_M_S
        hits = np.flatnonzero((gaps[begun:-1] < 0) & nearer)
        return begun + int(hits[0]) if len(hits) else None


def _watched(scenario: Scenario) -> Scenario:
    """The scenario with a sensor of the pair's distance, and no other contact of the two than a stated pair."""
    declared, base = declared_collision(scenario), scenario.base_model
    spec = scenario.spec()
    bodies = [base.body(base.geom_bodyid[base.geom(name).id]).name for name in (declared.striker, declared.struck)]
    # Excluded by bodies, since the geoms may also collide by their masks; stated pairs survive, and are switched off.
    spec.add_exclude(bodyname1=bodies[0], bodyname2=bodies[1])
    spec.add_sensor(
        type=mujoco.mjtSensor.mjSENS_GEOMDIST,
        objtype=mujoco.mjtObj.mjOBJ_GEOM,
        objname=declared.striker,
        reftype=mujoco.mjtObj.mjOBJ_GEOM,
        refname=declared.struck,
        cutoff=_SEEN_FROM_M,
    )
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


def check_same_block(scenario: Scenario, declared: Shape, known: Shape) -> None:
    """Refuse a surrogate of another block than the scenario declares."""
    if len(declared.outline) != len(known.outline) or float(known.distances(declared.outline).max()) > _SAME_M:
        raise CalibrationError(
            got=f"a surrogate of '{known.name}'",
            expected=f"one of '{declared.name}', which the scenario declares as the struck block",
            where=f"scenario {scenario.name}",
            next_step="Adapt a surrogate of this scenario: `rsr calibrate --method clash`.",
        )
