"""MuJoCo MJX behind the `Simulator` contract: trajectories, and their derivatives with respect to the parameters."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from rsr.scenarios import Scenario
from rsr.simulators.mjx.delay import delay_weights
from rsr.simulators.mjx.dump import dump_first_bad
from rsr.simulators.mjx.inject import Injector
from rsr.simulators.mjx.programs import fingerprint, program

BATCH = 16
"""Windows in one compiled call: more are chunked, fewer are padded, so that one program serves any number."""
_INSIDE = 1e-9
"""Share of a parameter's range by which derivatives keep clear of its bounds. Where a bound is a clamp of the simulator
(no contact is faster than two time steps), JAX averages the two sides' derivatives, and one side's is zero."""


class MjxSimulator:
    """Rolls windows forward in MJX, float64, `threads` chunks at a time.

    One program simulates one control step of `BATCH` windows; longer windows are chained calls. So a scenario
    compiles once, whatever the number of windows and their length, and the program is kept on disk.

    Example:
        >>> simulator = MjxSimulator(scenario)
        >>> states, derivatives = simulator.sensitivities(starts, commands, scenario.space.nominal)
    """

    def __init__(self, scenario: Scenario, threads: int = 2) -> None:
        self.scenario = scenario
        self.dumped: Path | None = None
        self._injector = Injector(scenario)
        self._threads = threads

    def rollout(self, states: np.ndarray, actions: np.ndarray, params: np.ndarray) -> np.ndarray:
        """See `Simulator.rollout`."""
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
            States [B, T + 1, nq + nv] and their derivatives [B, T + 1, nq + nv, P]. For a log-scaled parameter a
            derivative is with respect to log(value), for a linear one to value / unit_step (`ParameterSpace`).
        """
        space = self.scenario.space
        shape = (len(states), self._steps(actions) + 1, self.scenario.state_size)
        trajectory, derivatives = np.zeros(shape), np.zeros((*shape, len(space)))
        margin = _INSIDE * (space.upper - space.lower)

        def differentiate(rows: np.ndarray, values: np.ndarray) -> None:
            inside = np.clip(values, space.lower + margin, space.upper - margin)
            self._differentiate(states, actions, rows, space.to_coordinates(inside), trajectory, derivatives)

        self._in_chunks(states, params, differentiate)
        self._report_not_finite(trajectory, actions, params, derivatives)
        return trajectory, derivatives

    def _steps(self, actions: np.ndarray) -> int:
        return actions.shape[1] - self.scenario.history_steps

    def _in_chunks(
        self, states: np.ndarray, params: np.ndarray, work: Callable[[np.ndarray, np.ndarray], None]
    ) -> None:
        """Call work(rows, values) for every chunk of windows that share their parameters."""
        params = np.broadcast_to(np.atleast_2d(params), (len(states), len(self.scenario.space)))
        unique, which = np.unique(params, axis=0, return_inverse=True)
        chunks = []
        for index, values in enumerate(unique):
            self.scenario.space.check(values)
            rows = np.flatnonzero(which.ravel() == index)
            chunks += [(rows[first : first + BATCH], values) for first in range(0, len(rows), BATCH)]
        with ThreadPoolExecutor(self._threads) as pool:
            list(pool.map(lambda chunk: work(*chunk), chunks))

    def _roll(
        self, states: np.ndarray, actions: np.ndarray, rows: np.ndarray, values: np.ndarray, into: np.ndarray
    ) -> None:
        padded = np.resize(rows, BATCH)
        state, warm = jnp.asarray(states[padded]), jnp.zeros((BATCH, self.scenario.base_model.nv))
        into[rows, 0] = states[rows]
        coordinates = self.scenario.space.to_coordinates(values)
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
        padded, size = np.resize(rows, BATCH), len(coordinates)
        state, warm = jnp.asarray(states[padded]), jnp.zeros((BATCH, self.scenario.base_model.nv))
        tangents = jnp.zeros((BATCH, size, self.scenario.state_size))
        into[rows, 0] = states[rows]
        for time, commands in enumerate(self._commands_in_force(actions[padded])):
            state, warm, tangents = self._advance_tangents(coordinates, state, warm, commands, tangents)
            into[rows, time + 1] = np.asarray(state)[: len(rows)]
            derivatives_into[rows, time + 1] = np.swapaxes(np.asarray(tangents)[: len(rows)], 1, 2)

    def _commands_in_force(self, actions: np.ndarray) -> list[np.ndarray]:
        """For each control step the commands [B, H + 1, nu] that may rule it, newest first."""
        ages = self.scenario.history_steps + 1
        return [
            np.ascontiguousarray(actions[:, first : first + ages][:, ::-1]) for first in range(self._steps(actions))
        ]

    @cached_property
    def _advance(self) -> Callable:
        """(coordinates [P], states [BATCH, n], warm starts, commands) -> states, warm starts; one control step."""
        return self._program("advance", jax.vmap(self._control_step, in_axes=(None, 0, 0, 0)), ())

    @cached_property
    def _advance_tangents(self) -> Callable:
        """Like `_advance`, and carries the derivatives [BATCH, P, n] of the states along."""

        def one(coordinates, state, warm, commands, tangents):
            def along(direction, tangent):
                def states_of(coordinates, state):
                    return self._control_step(coordinates, state, warm, commands)

                (after, warm_after), (moved, _) = jax.jvp(states_of, (coordinates, state), (direction, tangent))
                return after, warm_after, moved

            return jax.vmap(along, out_axes=(None, None, 0))(jnp.eye(len(self.scenario.space)), tangents)

        tangents = (BATCH, len(self.scenario.space), self.scenario.state_size)
        return self._program("advance_tangents", jax.vmap(one, in_axes=(None, 0, 0, 0, 0)), (tangents,))

    def _program(self, name: str, function: Callable, more_shapes: tuple[tuple[int, ...], ...]) -> Callable:
        scenario = self.scenario
        shapes = (
            (len(scenario.space),),
            (BATCH, scenario.state_size),
            (BATCH, scenario.base_model.nv),
            (BATCH, scenario.history_steps + 1, scenario.base_model.nu),
            *more_shapes,
        )
        return program(f"{scenario.name}-{name}", function, shapes, fingerprint(scenario, BATCH))

    def _control_step(
        self, coordinates: jax.Array, state: jax.Array, warm: jax.Array, commands: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """One window, one control step: coordinates [P], state [nq + nv], warm start [nv], commands [H + 1, nu]."""
        values = self._injector.values(coordinates)
        model = self._injector.model(values)
        controls = self._delay_weights(values) @ commands
        data, nq = self._injector.data, self.scenario.base_model.nq

        def substep(carry, control):
            qpos, qvel, warm = carry
            after = self._injector.step(model, data.replace(qpos=qpos, qvel=qvel, qacc_warmstart=warm, ctrl=control))
            return (after.qpos, after.qvel, jax.lax.stop_gradient(after.qacc_warmstart)), None

        (qpos, qvel, warm), _ = jax.lax.scan(substep, (state[:nq], state[nq:], warm), controls)
        return jnp.concatenate([qpos, qvel]), warm

    def _delay_weights(self, values: jax.Array) -> jax.Array:
        scenario = self.scenario
        delay_s = jnp.zeros(()) if scenario.delay_parameter is None else values[scenario.delay_parameter]
        return delay_weights(delay_s, scenario.control_dt_s, scenario.substeps, scenario.history_steps)

    def _report_not_finite(
        self, trajectory: np.ndarray, actions: np.ndarray, params: np.ndarray, derivatives: np.ndarray | None = None
    ) -> None:
        if self.dumped is None:
            self.dumped = dump_first_bad(self.scenario, trajectory, actions, params, derivatives)
