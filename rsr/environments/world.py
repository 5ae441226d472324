"""Many closed-loop copies of a scenario advancing together, one `mujoco.rollout` call a control step."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

import mujoco
import numpy as np
from mujoco import rollout as mujoco_rollout

from rsr.common import ConfigError
from rsr.environments.measuring import Measuring
from rsr.scenarios import Channels, Scenario, Starts, limits_of, rest_commands, steady_activations, task_of
from rsr.simulators import EffectBatch, SentCommands


class World:
    """B copies of a scenario. Commands in, states forward; the caller decides on observation, reward and resets.

    Args:
        models: one a copy, or one for all of them.
        params: [P] or [B, P], that commands and effects take.
        delay_s: of commands, [B] or [1]; by default what the parameters say.
        seed: of what effects draw for each command.
        threads: rollout threads; 2 use both cores of a small machine.
    """

    def __init__(
        self,
        scenario: Scenario,
        models: Sequence[mujoco.MjModel],
        params: np.ndarray,
        count: int,
        threads: int = 2,
        delay_s: np.ndarray | None = None,
        seed: int = 0,
    ) -> None:
        self.scenario, self.task = scenario, task_of(scenario)
        self.limits = limits_of(scenario, self.task)
        self.count = count
        self.model = model = models[0]
        self._models = list(models) if len(models) == count else [model] * count
        self._data = [mujoco.MjData(model) for _ in range(max(1, threads))]
        self._pool = mujoco_rollout.Rollout(nthread=threads)
        substeps = round(scenario.control_dt_s / model.opt.timestep)
        self._dt_s = substeps * model.opt.timestep
        self.sent = SentCommands(scenario, params, count, delay_s, substeps, seed)
        size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        self._full = np.zeros((count, size))
        self._trajectory = np.zeros((count, substeps, size))
        self._sensors = np.zeros((count, substeps, model.nsensordata))
        widths = {channel.name: channel.width for channel in scenario.channels}
        self.goal = {name: np.zeros((count, widths[name])) for name in self.task.goal}
        self.action = np.zeros((count, self.task.action.size))
        self._true = Measuring(scenario, self.task, count)
        self._potential_before = np.zeros(count)
        self._valued: tuple[Channels | None, np.ndarray] = None, self._potential_before
        self._rest = rest_commands(scenario.base_model)  # a model's own actuators may be replaced by effects
        values = np.broadcast_to(params, (count, len(scenario.space)))
        self._effects = EffectBatch(scenario, self._models, values, threads) if scenario.exerts_effects else None

    @classmethod
    def simulated(cls, scenario: Scenario, params: np.ndarray, count: int, threads: int = 2, seed: int = 0) -> World:
        """Make copies of the scenario's simulator, all with parameters [P] or each with its own row of [B, P]."""
        rows = np.atleast_2d(params)
        _check_rows(scenario, rows, count)
        return cls(scenario, [scenario.model(row) for row in rows], rows, count, threads, seed=seed)

    def __enter__(self) -> World:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._pool.close()

    def place(self, copies: np.ndarray, starts: Starts) -> None:
        """Put some copies at rest where new episodes start."""
        command = self._rest(starts.qpos) if starts.command is None else starts.command
        # What was measured before refers to goals and actions as they were: those are replaced, not changed.
        self.action = self.action.copy()
        self.goal = {name: values.copy() for name, values in self.goal.items()}
        self._full[copies] = 0.0
        self._full[copies, 1 : 1 + self.model.nq] = starts.qpos
        first = 1 + self.model.nq + self.model.nv
        self._full[copies, first : first + self.model.na] = steady_activations(self.model, command)
        self.sent.hold(copies, command)
        self.action[copies] = 0.0
        for name, values in starts.goal.items():
            self.goal[name][copies] = values
        self.channels = self._true.first(self, copies)

    def step(self, action: np.ndarray) -> None:
        """Advance one control step under an action [B, m] in -1..1, as far as the limits allow it."""
        self._potential_before = self._potential()
        self.action = np.clip(action, -1.0, 1.0)
        wanted = self.task.action.command(self.action, self.command, self.channels)
        self.send(self.limits.allowed(wanted, self.command, self.channels, self._dt_s))

    def send(self, command: np.ndarray) -> None:
        """Advance one control step under commands [B, nu]."""
        self.sent.send(command)
        controls = self.sent.in_force()
        if self._effects is None:
            self._pool.rollout(
                self._models,
                self._data,
                self._full,
                np.ascontiguousarray(controls[..., : self.model.nu]),
                state=self._trajectory,
                sensordata=self._sensors,
                skip_checks=True,
                nstep=controls.shape[1],
            )
        else:
            # FULLPHYSICS begins with the time, which no effect knows.
            self._trajectory[:, :, 1:] = self._effects.advance(self._full[:, 1:], controls)
        self._full = self._trajectory[:, -1].copy()
        self.channels = self._true(self)

    def snapshot(self) -> dict[str, np.ndarray]:
        """Everything that the coming steps depend on, copied."""
        goal = {f"goal.{name}": values.copy() for name, values in self.goal.items()}
        own = {"full": self._full.copy(), "action": self.action.copy()}
        return {**own, **goal, **self.sent.snapshot(), **self._true.snapshot("true")}

    def restore(self, snapshot: dict[str, np.ndarray]) -> None:
        """Undo `snapshot`."""
        self._full, self.action = snapshot["full"].copy(), snapshot["action"].copy()
        self.sent.restore(snapshot)
        self.goal = {name: snapshot[f"goal.{name}"].copy() for name in self.goal}
        self._true.restore(snapshot, "true")
        self.channels = self._true.first(self, np.zeros(0, int))

    @property
    def command(self) -> np.ndarray:
        """[B, nu], the newest command."""
        return self.sent.newest

    @property
    def sensordata(self) -> np.ndarray:
        """Readings [B, nsensordata] of MuJoCo's sensors at the present state."""
        # Under the command in force until now. MuJoCo senses before it steps: a step whose end nobody needs reads them.
        now = self.sent.in_force()[:, -1:]
        if self._effects is not None:
            return self._effects.sense(self._full[:, 1:], now[:, 0])
        beyond, readings = np.zeros_like(self._trajectory[:, :1]), np.zeros_like(self._sensors[:, :1])
        self._pool.rollout(
            self._models,
            self._data,
            self._full,
            np.ascontiguousarray(now[..., : self.model.nu]),
            state=beyond,
            sensordata=readings,
            skip_checks=True,
            nstep=1,
        )
        return readings[:, 0]

    @property
    def states(self) -> np.ndarray:
        """[B, nq + nv]."""
        return self._full[:, 1 : 1 + self.model.nq + self.model.nv]

    @property
    def passed(self) -> np.ndarray:
        """States [B, substeps, nq + nv] that the last control step went through."""
        return self._trajectory[:, :, 1 : 1 + self.model.nq + self.model.nv]

    def observation(self) -> np.ndarray:
        """Compute the policy's observation [B, n] of the true state."""
        return self.task.observe(self.channels)

    def reward(self) -> np.ndarray:
        """Compute the training reward [B] of the last step: the task's, and the increase of its potential (shaping)."""
        own = self.task.reward(self.channels)
        return own if self.task.potential is None else own + self._potential() - self._potential_before

    def _potential(self) -> np.ndarray:
        """Of the present channels: after one step and before the next it is the same."""
        if self.task.potential is not None and self._valued[0] is not self.channels:
            self._valued = self.channels, self.task.potential(self.channels)
        return self._valued[1]


def _check_rows(scenario: Scenario, rows: np.ndarray, count: int) -> None:
    if len(rows) not in (1, count):
        raise ConfigError(
            got=f"{len(rows)} rows of parameters for {count} copies",
            expected="one row for all copies, or one a copy",
            where=f"simulator of {scenario.name}",
            next_step="Draw as many parameters as there are copies.",
        )
