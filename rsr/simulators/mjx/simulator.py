"""The control delay's weights (`rsr.simulators.mujoco`) in JAX: differentiable in the delay."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from rsr.scenarios import Scenario, command_weights, shares_kept, steady_activations, time_constants_s
from rsr.simulators.mjx.dump import dump_first_bad
from rsr.simulators.mjx.parameters import Injector
from rsr.simulators.mjx.programs import fingerprint, program


def delay_weights(delay_s: jax.Array, control_dt_s: float, substeps: int, history: int) -> jax.Array:
    """Weights [substeps, history + 1], equal to `rsr.simulators.mujoco.delay_weights`.

    They are piecewise linear in the delay. Where two pieces meet (at no delay, above all, where estimates start) the
    derivative is the one towards longer delays.
    """
    edges = jnp.arange(substeps + 1) / substeps - delay_s / control_dt_s
    columns = []
    for age in range(history + 1):
        # The command sent `age` steps ago was in force over [-age, -age + 1) control steps from now.
        low, high = float(-age), float(1 - age)
        inside = jnp.where(edges > high, high, jnp.where(edges > low, edges, low))
        columns.append((inside[1:] - inside[:-1]) * substeps)
    weights = jnp.stack(columns, axis=1)
    return weights.at[:, history].add(1.0 - weights.sum(axis=1))


# MuJoCo MJX behind the `Simulator` contract: trajectories, and their derivatives with respect to the parameters.

BATCH = 16
"""Windows in one compiled call: more are chunked, fewer are padded, so that one program serves any number."""
_LAPACK_NUMBERS = 16_384
"""jaxlib 0.10 gives a batched LAPACK call with more numbers on its right-hand sides to the threads that already wait
for it, and the program hangs (mended in 0.11.2). So batches, and directions in one call, are fewer where a model has
many degrees of freedom: right-hand sides of derivatives are as wide as it has, times the directions."""
_INSIDE = 1e-9
"""Share of a parameter's range by which derivatives keep clear of its bounds. Where a bound is a clamp of the simulator
(no contact is faster than two time steps), JAX averages the two sides' derivatives, and one side's is zero."""


class MjxSimulator:
    """Rolls windows forward in MJX, float64, `threads` chunks at a time.

    One program simulates one control step of a batch of windows; longer windows are chained calls. So a scenario
    compiles once, whatever the number of windows and their length, and the program is kept on disk.

    Example:
        >>> simulator = MjxSimulator(scenario)
        >>> states, derivatives = simulator.sensitivities(starts, commands, scenario.space.nominal)
    """

    def __init__(self, scenario: Scenario, threads: int = 2) -> None:
        self.scenario = scenario
        self.dumped: Path | None = None
        self.batch = max(1, min(BATCH, _LAPACK_NUMBERS // max(1, scenario.base_model.nv) ** 2))
        self._injector = Injector(scenario)
        self._threads = threads

    def rollout(self, states: np.ndarray, actions: np.ndarray, params: np.ndarray) -> np.ndarray:
        """See `Simulator.rollout`."""
        actions = self.scenario.with_per_episode(actions)
        trajectory = np.zeros((len(states), self._steps(actions) + 1, self.scenario.state_size))
        self._in_chunks(states, params, lambda rows, values: self._roll(states, actions, rows, values, trajectory))
        self._report_not_finite(trajectory, actions, params)
        return trajectory

    def sensitivities(
        self, states: np.ndarray, actions: np.ndarray, params: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Simulate, and differentiate with respect to the parameters' *unconstrained coordinates*, forward mode.

        Args:
            states, actions, params: as in `rollout`.

        Returns:
            States [B, T + 1, n] and their derivatives [B, T + 1, n, P]. For a log-scaled parameter a
            derivative is with respect to log(value), for a linear one to value / unit_step (`ParameterSpace`).
        """
        space, actions = self.scenario.space, self.scenario.with_per_episode(actions)
        shape = (len(states), self._steps(actions) + 1, self.scenario.state_size)
        trajectory, derivatives = np.zeros(shape), np.zeros((*shape, len(space)))
        # Keeps clear of clamps at the bounds, see `_INSIDE`.
        margin = _INSIDE * (space.upper - space.lower)

        def differentiate(rows: np.ndarray, values: np.ndarray) -> None:
            inside = np.clip(values, space.lower + margin, space.upper - margin)
            self._differentiate(states, actions, rows, space.to_coordinates(inside), trajectory, derivatives)

        self._in_chunks(states, params, differentiate)
        self._report_not_finite(trajectory, actions, params, derivatives)
        return trajectory, derivatives

    @property
    def _directions(self) -> int:
        """Parameters that one call differentiates by; see `_LAPACK_NUMBERS`."""
        return max(1, _LAPACK_NUMBERS // (self.batch * max(1, self.scenario.base_model.nv) ** 2))

    def _steps(self, actions: np.ndarray) -> int:
        return actions.shape[1] - self.scenario.history_steps

    def _in_chunks(
        self, states: np.ndarray, params: np.ndarray, work: Callable[[np.ndarray, np.ndarray], None]
    ) -> None:
        """Call work(rows, values) for every chunk of windows that share their parameters."""
        params = np.broadcast_to(np.atleast_2d(params), (len(states), len(self.scenario.space)))
        unique, which = np.unique(params, axis=0, return_inverse=True)
        # A program takes one parameter vector for its whole batch, so chunks do not mix parameters.
        chunks = []
        for index, values in enumerate(unique):
            self.scenario.space.check(values)
            rows = np.flatnonzero(which.ravel() == index)
            chunks += [(rows[first : first + self.batch], values) for first in range(0, len(rows), self.batch)]
        with ThreadPoolExecutor(self._threads) as pool:
            list(pool.map(lambda chunk: work(*chunk), chunks))

    def _roll(
        self, states: np.ndarray, actions: np.ndarray, rows: np.ndarray, values: np.ndarray, into: np.ndarray
    ) -> None:
        padded = np.resize(rows, self.batch)
        state, warm = jnp.asarray(states[padded]), jnp.zeros((self.batch, self.scenario.base_model.nv))
        into[rows, 0] = states[rows]
        coordinates = self.scenario.space.to_coordinates(values)
        if self.scenario.settling_steps:
            state, _ = self._begin(coordinates, state, actions[padded][:, : self.scenario.history_steps])
        for time, commands in enumerate(self._commands_in_force(actions[padded])):
            state, warm = self._advance(coordinates, state, warm, commands)
            into[rows, time + 1] = np.asarray(state)[: len(rows)]

    def _differentiate(
        self,
        states: np.ndarray,
        actions: np.ndarray,
        rows: np.ndarray,
        coordinates: np.ndarray,
        into: np.ndarray,
        derivatives_into: np.ndarray,
    ) -> None:
        # Padding repeats rows of the chunk; their results are cut off below.
        padded, size = np.resize(rows, self.batch), len(coordinates)
        state, warm = jnp.asarray(states[padded]), jnp.zeros((self.batch, self.scenario.base_model.nv))
        # Of the initial state only activations depend on the parameters (sensor delays are added by the loss).
        tangents = jnp.zeros((self.batch, size, self.scenario.state_size))
        into[rows, 0] = states[rows]
        if self.scenario.settling_steps:
            state, tangents = self._begin(coordinates, state, actions[padded][:, : self.scenario.history_steps])
        for time, commands in enumerate(self._commands_in_force(actions[padded])):
            state, warm, tangents = self._advance_tangents(coordinates, state, warm, commands, tangents)
            into[rows, time + 1] = np.asarray(state)[: len(rows)]
            derivatives_into[rows, time + 1] = np.swapaxes(np.asarray(tangents)[: len(rows)], 1, 2)

    def _commands_in_force(self, actions: np.ndarray) -> list[np.ndarray]:
        """For each control step the commands [B, delay_steps + 1, nu + C] that may rule it, newest first."""
        ages, oldest = self.scenario.delay_steps + 1, self.scenario.settling_steps
        return [
            np.ascontiguousarray(actions[:, oldest + step : oldest + step + ages][:, ::-1])
            for step in range(self._steps(actions))
        ]

    @cached_property
    def _advance(self) -> Callable:
        """(coordinates [P], states [B, n], warm starts, commands) -> states, warm starts; one control step."""
        return self._program("advance", jax.vmap(self._control_step, in_axes=(None, 0, 0, 0)), ())

    @cached_property
    def _begin(self) -> Callable:
        """(coordinates [P], states [B, n], commands before [B, H, nu + C]) -> begun states, tangents."""
        scenario = self.scenario
        place = slice(scenario.base_model.nq + scenario.base_model.nv, scenario.physics_size)

        def one(coordinates, state, before):
            def begun(coordinates):
                return state.at[place].set(self._activations(self._injector.values(coordinates), before))

            # Forward mode, as in `_advance_tangents`: one direction a parameter.
            along = jax.vmap(lambda direction: jax.jvp(begun, (coordinates,), (direction,))[1])
            return begun(coordinates), along(jnp.eye(len(scenario.space)))

        shapes = (
            (len(scenario.space),),
            (self.batch, scenario.state_size),
            (self.batch, scenario.history_steps, scenario.command_width),
        )
        function = jax.vmap(one, in_axes=(None, 0, 0))
        return program(f"{scenario.name}-begin", function, shapes, fingerprint(scenario, self.batch))

    def _activations(self, values: jax.Array, before: jax.Array) -> jax.Array:
        """Activations [na] that the commands [H, nu + C] before a window leave (`rsr.scenarios.models`)."""
        base, ages = self.scenario.base_model, self.scenario.delay_steps + 1
        given = self._per_episode(before[0])
        padded = jnp.concatenate([jnp.repeat(before[:1], ages - 1, axis=0), before])
        stacked = jnp.stack([padded[ages - 1 - age : len(padded) - age] for age in range(ages)], axis=1)
        weights = jax.vmap(self._weights, in_axes=(None, 0))(values, stacked)
        controls = jnp.einsum("tsan,tan->tsn", weights, stacked)[..., : base.nu].reshape(-1, base.nu)
        steady = steady_activations(base, controls, jnp)
        kept = shares_kept(base, time_constants_s(self._injector.model(values, given), jnp), jnp)
        return jax.lax.scan(lambda act, goal: (goal + kept * (act - goal), None), steady[0], steady[1:])[0]

    @cached_property
    def _advance_tangents(self) -> Callable:
        """Like `_advance`, and carries the derivatives [B, P, n] of the states along."""

        def one(coordinates, state, warm, commands, tangents):
            # Forward mode: P directions, each a JVP through one control step, vmapped; memory does not grow with T.
            def along(direction, tangent):
                def states_of(coordinates, state):
                    return self._control_step(coordinates, state, warm, commands)

                (after, warm_after), (moved, _) = jax.jvp(states_of, (coordinates, state), (direction, tangent))
                return after, warm_after, moved

            # (directions [D, P], tangents [D, n]) of as many parameters as one call may differentiate by.
            several = jax.vmap(along, out_axes=(None, None, 0))
            size = len(self.scenario.space)
            calls = -(-size // self._directions)
            if calls == 1:
                return several(jnp.eye(size), tangents)
            padding = ((0, -size % calls), (0, 0))
            parts = [jnp.pad(rows, padding).reshape(calls, -1, rows.shape[1]) for rows in (jnp.eye(size), tangents)]
            after, warm_after, moved = jax.lax.map(lambda part: several(*part), tuple(parts))
            return after[0], warm_after[0], moved.reshape(-1, moved.shape[2])[:size]

        tangents = (self.batch, len(self.scenario.space), self.scenario.state_size)
        return self._program("advance_tangents", jax.vmap(one, in_axes=(None, 0, 0, 0, 0)), (tangents,))

    def _program(self, name: str, function: Callable, more_shapes: tuple[tuple[int, ...], ...]) -> Callable:
        scenario = self.scenario
        shapes = (
            (len(scenario.space),),
            (self.batch, scenario.state_size),
            (self.batch, scenario.base_model.nv),
            (self.batch, scenario.delay_steps + 1, scenario.command_width),
            *more_shapes,
        )
        return program(f"{scenario.name}-{name}", function, shapes, fingerprint(scenario, self.batch))

    def _control_step(
        self, coordinates: jax.Array, state: jax.Array, warm: jax.Array, commands: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """One window, one control step: coordinates [P], state [n], warm start [nv], commands [delay + 1, nu + C]."""
        base, data, injector = self.scenario.base_model, self._injector.data, self._injector
        values = injector.values(coordinates)
        model = injector.model(values, self._per_episode(commands[0]))
        controls = jnp.einsum("san,an->sn", self._weights(values, commands), commands)

        def placed(qpos, qvel, act, warm):
            return data.replace(qpos=qpos, qvel=qvel, act=act, qacc_warmstart=warm)

        def substep(carry, inputs):
            (qpos, qvel, act, warm, load), (control, is_fresh) = carry, inputs
            before = placed(qpos, qvel, act, warm)
            load = jnp.where(is_fresh, injector.load(model, before), load)
            after = injector.step(*injector.driven(model, before, values, control, load))
            # The warm start changes the solver's path, not its solution: no derivative flows through it.
            return (after.qpos, after.qvel, after.act, jax.lax.stop_gradient(after.qacc_warmstart), load), None

        qpos, qvel, act, _ = jnp.split(state, np.cumsum([base.nq, base.nv, base.na]))
        every = self.scenario.effects.load_steps(base.opt.timestep) if self.scenario.effects else 1
        fresh = np.arange(len(controls)) % every == 0
        begun = (qpos, qvel, act, warm, jnp.zeros(base.nv))
        (qpos, qvel, act, warm, _), _ = jax.lax.scan(substep, begun, (controls, fresh))
        ended = placed(qpos, qvel, act, warm)
        sensed = injector.readings(*injector.driven(model, ended, values, controls[-1], injector.load(model, ended)))
        return jnp.concatenate([qpos, qvel, act, sensed]), warm

    def _per_episode(self, commands: jax.Array) -> jax.Array:
        """Values per episode among commands [nu + C]."""
        first = self.scenario.base_model.nu
        return commands[first : first + len(self.scenario.per_episode)]

    def _weights(self, values: jax.Array, commands: jax.Array) -> jax.Array:
        """Weights [substeps, A, nu + C] of commands [A, nu + C], newest first; see `rsr.simulators.weights_of`."""
        scenario, substeps = self.scenario, self.scenario.substeps
        delay_s = jnp.zeros(()) if scenario.delay_parameter is None else values[scenario.delay_parameter]
        width, dt_s = scenario.command_width, scenario.control_dt_s
        if not scenario.command_laws:
            weights = delay_weights(delay_s, dt_s, substeps, scenario.delay_steps)
            return jnp.broadcast_to(weights[..., None], (*weights.shape, width))
        edges_s, laws = dt_s * np.linspace(0.0, 1.0, substeps + 1), scenario.command_laws
        return command_weights(jnp, laws, values, commands[:, scenario.base_model.nu :], delay_s, edges_s, dt_s, width)

    def _report_not_finite(
        self, trajectory: np.ndarray, actions: np.ndarray, params: np.ndarray, derivatives: np.ndarray | None = None
    ) -> None:
        if self.dumped is None:
            self.dumped = dump_first_bad(self.scenario, trajectory, actions, params, derivatives)
