"""The contract of every simulator: states and commands in, states out, batched."""

from __future__ import annotations

from typing import Protocol

import mujoco
import numpy as np
from mujoco import rollout as mujoco_rollout

from rsr.scenarios import Scenario, command_weights, settled
from rsr.simulators.effects import EffectBatch


class Simulator(Protocol):
    """Rolls recorded or imagined commands forward. Deterministic: equal inputs give equal outputs."""

    def rollout(self, states: np.ndarray, actions: np.ndarray, params: np.ndarray) -> np.ndarray:
        """Simulate B windows of T control steps.

        Args:
            states: [B, n], start of each window: qpos, qvel, activations of actuators and readings of sensors
                (`Scenario.state_size`). Of these, simulations begin with qpos and qvel.
            actions: [B, H + T, nu + C], commands (for position-controlled arms: joint setpoints), each held for one
                control step, and values per episode; [B, H + T, nu] for nominal ones of these. The first H
                (`scenario.history_steps`) were in force *before* the window begins, oldest first; a control delay
                reaches back to them, and actuators with internal state begin with what they left.
            params: [P] for all windows, or [B, P]; physical units, order of `scenario.space`.

        Returns:
            [B, T + 1, n]; row 0 is `states`. Sensors read the state at the end of a control step under the command
            that was in force until then.
        """
        ...


# A control delay as weights: the share of each physics step in which each past command is in force.


def delay_weights(delay_s: float, control_dt_s: float, substeps: int, history: int) -> np.ndarray:
    """Weights [substeps, history + 1]; column i belongs to the command sent i control steps ago.

    Each physics step gets the time average of the delayed, held command over that step, so that the weights (and
    with them every simulated trajectory) change continuously with the delay.
    """
    # Edges of the physics steps in control steps, shifted back by the delay: command time.
    edges = np.linspace(0.0, 1.0, substeps + 1) - delay_s / control_dt_s
    weights = np.zeros((substeps, history + 1))
    for age in range(history + 1):
        # The command sent `age` steps ago was in force over [-age, -age + 1) control steps from now.
        low, high = (0.0 - age, 1.0 - age)
        # Length of the intersection of [edge, next edge] and [low, high], per physics step of length 1 / substeps.
        overlap = np.minimum(edges[1:], high) - np.maximum(edges[:-1], low)
        weights[:, age] = np.maximum(overlap, 0.0) * substeps
    # Beyond the recorded history the oldest command holds: rows sum to one, whatever the delay.
    weights[:, history] += 1.0 - weights.sum(axis=1)
    return weights


def weights_of(
    scenario: Scenario,
    values: np.ndarray,
    given: np.ndarray | None = None,
    delay_s: float | None = None,
    substeps: int | None = None,
) -> np.ndarray:
    """Weights of past commands with parameters [P]: [substeps, A], or [substeps, A, nu + C] where they differ.

    Args:
        given: columns [C] beside the commands, or [A, C] beside each of them, newest first; what stands for the
            unrecorded by default.
        delay_s: by default what the parameters say.
        substeps: by default the scenario's.
    """
    late, steps = scenario.delay_s(values) if delay_s is None else delay_s, substeps or scenario.substeps
    if not scenario.command_laws:
        return delay_weights(late, scenario.control_dt_s, steps, scenario.delay_steps)
    edges_s = scenario.control_dt_s * np.linspace(0.0, 1.0, steps + 1)
    beside = scenario.unrecorded if given is None else given
    beside = np.broadcast_to(beside, (scenario.delay_steps + 1, beside.shape[-1]))
    laws, dt_s, width = scenario.command_laws, scenario.control_dt_s, scenario.command_width
    return command_weights(np, laws, values, beside, np.float64(late), edges_s, dt_s, width)


def controls_of(scenario: Scenario, params: np.ndarray, commands: np.ndarray) -> np.ndarray:
    """Controls [B, T * substeps, nu + C] at physics rate, of commands [B, A - 1 + T, nu + C] with parameters [B, P]."""
    first, size = scenario.base_model.nu, params.shape[1]
    if not scenario.varies_latency:
        rows = np.concatenate([params, commands[:, 0, first : first + len(scenario.per_episode)]], axis=1)
        unique, which = np.unique(rows, axis=0, return_inverse=True)
        weights = np.stack([weights_of(scenario, row[:size], row[size:]) for row in unique])
        return delayed(commands, weights[which.ravel()])
    ages = scenario.delay_steps + 1
    newest_first = [commands[:, step : step + ages][:, ::-1] for step in range(commands.shape[1] - ages + 1)]
    return np.concatenate([in_force(varying_weights(scenario, params, each), each) for each in newest_first], axis=1)


def varying_weights(
    scenario: Scenario,
    params: np.ndarray,
    commands: np.ndarray,
    delay_s: np.ndarray | None = None,
    substeps: int | None = None,
) -> np.ndarray:
    """Weights [B, substeps, A, nu + C] of commands [B, A, nu + C], newest first, of one control step; `weights_of`.

    Args:
        params: [B, P].
        delay_s: [B], by default what the parameters say.
    """
    if delay_s is None:
        delay_s = np.array([scenario.delay_s(row) for row in params])
    edges_s = scenario.control_dt_s * np.linspace(0.0, 1.0, (substeps or scenario.substeps) + 1)
    beside, dt_s, width = commands[..., scenario.base_model.nu :], scenario.control_dt_s, scenario.command_width
    return command_weights(np, scenario.command_laws, params, beside, delay_s, edges_s, dt_s, width)


def in_force(weights: np.ndarray, commands: np.ndarray) -> np.ndarray:
    """Controls [..., S, n] of a control step: weights [..., S, A] or [..., S, A, m >= n] of commands [..., A, n]."""
    if weights.ndim == commands.ndim:
        return np.matmul(weights, commands)
    return np.einsum("...san,...an->...sn", weights[..., : commands.shape[-1]], commands)


def delayed(commands: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Turn commands [B, H + T, nu] into controls [B, T * substeps, nu] at physics rate.

    Args:
        weights: [B or 1, substeps, H + 1] or [B or 1, substeps, H + 1, nu], from `weights_of`.
    """
    batch, total, width = commands.shape
    substeps, ages = weights.shape[1:3]
    steps = total - ages + 1
    # newest command first: [B, T, H + 1, nu]
    stacked = np.stack([commands[:, ages - 1 - age : ages - 1 - age + steps] for age in range(ages)], axis=2)
    formula = "bsa,btan->btsn" if weights.ndim == 3 else "bsan,btan->btsn"
    controls = np.einsum(formula, np.broadcast_to(weights, (batch, *weights.shape[1:])), stacked)
    return controls.reshape(batch, steps * substeps, width)


# C MuJoCo behind the `Simulator` contract: whole batches in one threaded `mujoco.rollout` call.


class MujocoSimulator:
    """Rolls windows forward in C, `threads` at a time. Close it, or use it as a context manager.

    Example:
        >>> with MujocoSimulator(load_scenario("push_cube")) as simulator:
        ...     states = simulator.rollout(starts, commands, scenario.space.nominal)
    """

    def __init__(self, scenario: Scenario, threads: int = 2) -> None:
        self.scenario = scenario
        self._threads = threads
        self._pool = mujoco_rollout.Rollout(nthread=threads)
        # One MjData for each thread, as `mujoco.rollout` asks for.
        self._data = [mujoco.MjData(scenario.base_model) for _ in range(max(1, threads))]
        self._full = mujoco.mj_stateSize(scenario.base_model, mujoco.mjtState.mjSTATE_FULLPHYSICS)

    def __enter__(self) -> MujocoSimulator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._pool.close()

    def rollout(self, states: np.ndarray, actions: np.ndarray, params: np.ndarray) -> np.ndarray:
        """See `Simulator.rollout`. Windows that share a row of `params` share a model."""
        batch = len(states)
        size, inputs = len(self.scenario.space), self.scenario.base_model.nu
        actions = self.scenario.with_per_episode(actions)
        given = actions[:, 0, inputs : inputs + len(self.scenario.per_episode)]
        # Compiling a model's constants costs more than a short window, so equal parameters share one.
        params = np.broadcast_to(np.atleast_2d(params), (batch, size))
        unique, which = np.unique(np.concatenate([params, given], axis=1), axis=0, return_inverse=True)
        compiled = [self.scenario.model(row[:size], per_episode=row[size:]) for row in unique]
        models = [compiled[i] for i in which.ravel()]
        controls = controls_of(self.scenario, params, actions[:, self.scenario.settling_steps :])
        begun = states[:, : self.scenario.physics_size]
        if self.scenario.settling_steps:
            begun = self._with_activations(models, params, begun, actions)
        # Physics steps run at the timestep; one row in `substeps` is a control step's end.
        ends = slice(self.scenario.substeps - 1, None, self.scenario.substeps)
        after = self._advance_with(models, params, begun, controls)[:, ends]
        if self.scenario.has_sensors:
            after = self.scenario.with_readings(after, self._sensed(models, params, after, controls[:, ends]))
        return np.concatenate([states[:, None], after], axis=1)

    def _with_activations(
        self, models: list[mujoco.MjModel], params: np.ndarray, states: np.ndarray, actions: np.ndarray
    ) -> np.ndarray:
        """States with the activations that the commands before the window leave."""
        before = actions[:, : self.scenario.history_steps]
        # A delay reaches back beyond the oldest command known: it held.
        padded = np.concatenate([np.repeat(before[:, :1], self.scenario.delay_steps, axis=1), before], axis=1)
        activations = settled(models, controls_of(self.scenario, params, padded)[..., : self.scenario.base_model.nu])
        return np.concatenate([states[:, : -activations.shape[1]], activations], axis=1)

    def _sensed(
        self, models: list[mujoco.MjModel], params: np.ndarray, states: np.ndarray, controls: np.ndarray
    ) -> np.ndarray:
        """Sensor data [B, T, nsensordata] at states [B, T, nq + nv + na] under controls [B, T, nu + C]."""
        batch, steps = states.shape[:2]
        if self.scenario.exerts_effects:
            driven = EffectBatch(self.scenario, models, params, self._threads)
            return np.stack([driven.sense(states[:, step], controls[:, step]) for step in range(steps)], axis=1)
        # MuJoCo senses before it steps: a step from each row, whose end nobody needs, reads the sensors there.
        initial = self._full_states(states.reshape(batch * steps, -1))
        repeated = [model for model in models for _ in range(steps)]
        controls = controls[..., : self.scenario.base_model.nu].reshape(batch * steps, 1, -1)
        _, sensed = self._pool.rollout(repeated, self._data, initial, controls)
        return sensed[:, 0].reshape(batch, steps, -1)

    def _advance_with(
        self, models: list[mujoco.MjModel], params: np.ndarray, states: np.ndarray, controls: np.ndarray
    ) -> np.ndarray:
        """`advance`, with the forces of effects where the scenario has some."""
        if not self.scenario.exerts_effects:
            return self.advance(models, states, controls[..., : self.scenario.base_model.nu])
        return EffectBatch(self.scenario, models, params, self._threads).advance(states, controls)

    def advance(self, models: list[mujoco.MjModel], states: np.ndarray, controls: np.ndarray) -> np.ndarray:
        """Integrate controls [B, N, nu] from states [B, nq + nv + na]; returns [B, N, nq + nv + na]."""
        trajectory, _ = self._pool.rollout(models, self._data, self._full_states(states), controls)
        return trajectory[:, :, 1 : 1 + self.scenario.physics_size]

    def _full_states(self, states: np.ndarray) -> np.ndarray:
        # FULLPHYSICS is time, qpos, qvel, activations and plugin states (none); windows begin at time 0.
        initial = np.zeros((len(states), self._full))
        initial[:, 1 : 1 + self.scenario.physics_size] = states
        return initial
