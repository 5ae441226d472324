"""Effects in C: batches of MuJoCo that advance one physics step at a time, with the scenario's effects."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
from mujoco.batch import Batch

from rsr.scenarios import Applied, Effects, Scenario

_UP_TO_VELOCITIES = int(mujoco.mjtStage.mjSTAGE_VEL)
_OF_NO_LOAD = mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_SENSOR
"""What the load does not depend on, and costs a third of computing it where there is but one joint."""
_WORTH_A_THREAD = 64
"""Simulations: a step of fewer takes less than handing them to another thread does, and results are the same."""


class EffectBatch:
    """B simulations of a scenario with effects, each with a model and parameters of its own.

    Args:
        models: [B], of `Scenario.model`, or others of the same sizes; most of them may be the same object.
        params: [B, P], that the effects take.
    """

    def __init__(
        self, scenario: Scenario, models: Sequence[mujoco.MjModel], params: np.ndarray, threads: int = 2
    ) -> None:
        self._scenario, self._effects, self._params = scenario, effects_of(scenario), params
        self._arguments = self._effects.arguments(np, params)
        busy = min(threads, len(models) // _WORTH_A_THREAD)
        self._batch = batch = Batch(models[0], len(models), max(1, busy))
        self._step_s = models[0].opt.timestep
        self._substeps = round(scenario.control_dt_s / self._step_s)
        self._write_models(models)
        self._damping, self._friction = batch.expand("dof_damping"), batch.expand("dof_frictionloss")
        self._own_damping, self._own_friction = self._damping.copy(), self._friction.copy()
        # Looked up once: a step takes microseconds.
        self._qpos, self._qvel = batch.bind("qpos"), batch.bind("qvel")
        # A row of state is the time, what a simulation moves (qpos, qvel, act), and what it is given.
        self._moving = batch.state[:, 1 : 1 + models[0].nq + models[0].nv + models[0].na]
        self._ctrl, self._force = batch.bind("ctrl"), batch.bind("qfrc_applied")
        self._bias = batch.bind("qfrc_bias") if self._effects.reads_load else np.zeros((len(models), models[0].nv))
        if self._effects.reads_load:
            self._disabled, self._own_disabled = batch.expand("opt.disableflags"), models[0].opt.disableflags
        self._sensors = batch.bind("sensordata") if models[0].nsensordata else np.zeros((len(models), 0))

    def advance(self, states: np.ndarray, controls: np.ndarray) -> np.ndarray:
        """Integrate controls [B, N, nu + C] from states [B, nq + nv + na]; returns [B, N, nq + nv + na].

        A simulation that MuJoCo finds unstable stays where it was found so, as in `mujoco.rollout`.
        """
        batch, size = self._batch, states.shape[1]
        after = np.empty((len(states), controls.shape[1], size))
        ended = np.full(len(states), controls.shape[1])
        self._place(states)
        warned, every = batch.warning.copy(), self._effects.load_steps(self._step_s)
        load = np.zeros_like(self._qvel)
        for step in range(controls.shape[1]):
            if step % self._substeps % every == 0:
                load = self._load()
            self._apply(controls[:, step], load)
            batch.step()
            after[:, step] = self._moving
            if not np.array_equal(warned, batch.warning):
                ended[np.any(warned != batch.warning, axis=1) & (ended > step)] = step
                warned = batch.warning.copy()
        for index in np.flatnonzero(ended < controls.shape[1]):
            after[index, ended[index] :] = after[index, ended[index]]
        return after

    def sense(self, states: np.ndarray, controls: np.ndarray) -> np.ndarray:
        """Sensor data [B, nsensordata] at states [B, nq + nv + na] under controls [B, nu + C]."""
        self._place(states)
        self._apply(controls, self._load())
        self._batch.forward()
        return self._sensors.copy()

    def _place(self, states: np.ndarray) -> None:
        self._batch.time[:], self._batch.qacc_warmstart[:] = 0.0, 0.0
        self._moving[:] = states

    def _load(self) -> np.ndarray:
        """Forces [B, nv] that gravity and motion exert on the joints."""
        if self._effects.reads_load:
            self._disabled[:] = self._own_disabled | _OF_NO_LOAD
            self._batch.forward(stage=_UP_TO_VELOCITIES)
            self._disabled[:] = self._own_disabled
        return -self._bias

    def _apply(self, controls: np.ndarray, load: np.ndarray) -> None:
        with np.errstate(all="ignore"):  # what blows up is ended by MuJoCo's own check
            made = self._effects.forces(
                np, self._arguments, self._params, controls, self._qpos, self._qvel, load, self._step_s
            )
        self._ctrl[:], self._force[:] = made.ctrl, made.torque
        self._damping[:] = self._own_damping + made.damping
        self._friction[:] = self._own_friction + made.dry_friction

    def _write_models(self, models: Sequence[mujoco.MjModel]) -> None:
        """Give each simulation the numbers of its own model, as far as parameters write them."""
        rows = {id(model): [] for model in models}
        for index, model in enumerate(models):
            rows[id(model)].append(index)
        if len(rows) == 1:
            return
        base, bindings = self._scenario.base_model, self._scenario.bindings
        for leaf in {leaf for binding in bindings for leaf in binding.changes(base, np.float64(1.0))}:
            expanded = self._batch.expand(leaf)
            for model in {id(each): each for each in models}.values():
                owner = model.opt if leaf.startswith("opt.") else model
                expanded[rows[id(model)]] = getattr(owner, leaf.removeprefix("opt."))
        if any(binding.moves_inertia for binding in bindings):
            self._batch.set_const()


def effects_of(scenario: Scenario) -> Effects:
    """The effects of a scenario that has some."""
    if scenario.effects is None:
        raise ValueError(f"scenario {scenario.name} has no effects")
    return scenario.effects


class EffectStepper:
    """One simulation with effects, in a model and data of the caller's: what a viewer or an environment shows.

    Args:
        params: [P], that the effects take.
    """

    def __init__(self, scenario: Scenario, model: mujoco.MjModel, params: np.ndarray) -> None:
        self._scenario, self._effects, self._model, self._params = scenario, effects_of(scenario), model, params
        self._arguments = self._effects.arguments(np, params)
        self._damping, self._friction = model.dof_damping.copy(), model.dof_frictionloss.copy()

    def control_step(self, data: mujoco.MjData, controls: np.ndarray) -> None:
        """Advance by one physics step for each row of controls [N, nu]."""
        every = self._effects.load_steps(self._model.opt.timestep)
        load = np.zeros(self._model.nv)
        for step, control in enumerate(self._scenario.with_per_episode(controls)):
            if step % every == 0:
                load = self._load(data)
            self._apply(data, control, load)
            mujoco.mj_step(self._model, data)

    def forward(self, data: mujoco.MjData, control: np.ndarray) -> None:
        """Compute accelerations and sensors of the present state under a control [nu]."""
        self._apply(data, self._scenario.with_per_episode(control), self._load(data))
        mujoco.mj_forward(self._model, data)

    def _load(self, data: mujoco.MjData) -> np.ndarray:
        if self._effects.reads_load:
            mujoco.mj_fwdPosition(self._model, data)
            mujoco.mj_fwdVelocity(self._model, data)
        return -data.qfrc_bias

    def _apply(self, data: mujoco.MjData, control: np.ndarray, load: np.ndarray) -> None:
        made: Applied = self._effects.forces(
            np, self._arguments, self._params, control, data.qpos, data.qvel, load, self._model.opt.timestep
        )
        data.ctrl[:], data.qfrc_applied[:] = made.ctrl, made.torque
        self._model.dof_damping[:] = self._damping + made.damping
        self._model.dof_frictionloss[:] = self._friction + made.dry_friction
