"""Many closed-loop copies of a pushing scene advancing together, one `mujoco.rollout` call a control step."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

import mujoco
import numpy as np
from mujoco import rollout as mujoco_rollout

from rsr.errors import ConfigError
from rsr.scenarios import Scenario, task_of
from rsr.scenarios.pushing import Limits, Starts, Task, kinematics
from rsr.scenarios.pushing.arm import next_setpoint
from rsr.scenarios.pushing.pose import turned
from rsr.simulators import delay_weights

LIMITS = Limits()
"""The same in every world and in every reality."""


class MeasurementNoise:
    """The sensors' noise as the scenario states it, drawn from its own generator."""

    def __init__(self, scenario: Scenario, rng: np.random.Generator) -> None:
        stated = {observed.channel.name: observed.noise for observed in scenario.observed}
        self._joint_rad, self._block_m = stated["joint_position"], stated["block_position"]
        self._turn_rad = stated["block_orientation"]
        self._rng = rng

    def joints(self, true: np.ndarray) -> np.ndarray:
        return true + self._rng.normal(0.0, self._joint_rad, true.shape)

    def block(self, true: np.ndarray) -> np.ndarray:
        """Positions [B, 3] or poses [B, 7] as measured; the orientation is wrong by a turn about the vertical."""
        position = true[:, :3] + self._rng.normal(0.0, self._block_m, (len(true), 3))
        return np.concatenate([position, self.orientation(true[:, 3:7])], axis=1) if true.shape[1] > 3 else position

    def orientation(self, true: np.ndarray) -> np.ndarray:
        return turned(true, self._rng.normal(0.0, self._turn_rad, len(true)))


class World:
    """B arms and B blocks. Commands in, states forward; the caller decides on observation, reward and resets.

    Args:
        models: one a copy, or one for all of them.
        weights: [B or 1, substeps, H + 1], the control delay of each copy; see `delay_weights`.
        threads: rollout threads; 2 use both cores of a small machine.
    """

    def __init__(
        self, task: Task, models: Sequence[mujoco.MjModel], weights: np.ndarray, count: int, threads: int = 2
    ) -> None:
        self.task = task
        self.count = count
        self.model = model = models[0]
        self._models = list(models) if len(models) == count else [model] * count
        self._data = [mujoco.MjData(model) for _ in range(max(1, threads))]
        self._pool = mujoco_rollout.Rollout(nthread=threads)
        self._weights = np.broadcast_to(weights, (count, *weights.shape[-2:]))
        substeps, ages = weights.shape[-2:]
        self._dt_s = substeps * model.opt.timestep
        size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        self._full = np.zeros((count, size))
        self._trajectory = np.zeros((count, substeps, size))
        self._sensors = np.zeros((count, substeps, model.nsensordata))
        self._commands = np.zeros((count, ages, model.nu))  # newest first
        self.target = np.zeros((count, task.block_size))
        self._potential_before = np.zeros(count)

    @classmethod
    def simulated(cls, scenario: Scenario, params: np.ndarray, count: int, threads: int = 2) -> World:
        """Make copies of the scenario's simulator, all with parameters [P] or each with its own row of [B, P]."""
        rows = np.atleast_2d(params)
        _check_rows(scenario, rows, count)
        delays = [
            delay_weights(scenario.delay_s(row), scenario.control_dt_s, scenario.substeps, scenario.history_steps)
            for row in rows
        ]
        models = [scenario.model(row) for row in rows]
        return cls(task_of(scenario), models, np.stack(delays), count, threads)

    def __enter__(self) -> World:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._pool.close()

    def place(self, copies: np.ndarray, starts: Starts) -> None:
        """Put some copies at rest where new episodes start."""
        self._full[copies] = 0.0
        self._full[copies, 1 : 1 + self.model.nq] = starts.qpos
        self._commands[copies] = starts.qpos[:, None, 7:]
        self.target[copies] = starts.target

    def step(self, action: np.ndarray) -> None:
        """Advance one control step under displacements [B, 6] in -1..1, as far as the limits allow them."""
        wanted = next_setpoint(self.setpoint, self.joints, action)
        self._potential_before = self._potential()
        self.send(LIMITS.allowed(wanted, self.setpoint, self.block, self._dt_s))

    def send(self, setpoint: np.ndarray) -> None:
        """Advance one control step under joint setpoints [B, 6]."""
        self._commands = np.concatenate([setpoint[:, None], self._commands[:, :-1]], axis=1)
        controls = np.matmul(self._weights, self._commands)
        self._pool.rollout(
            self._models,
            self._data,
            self._full,
            controls,
            state=self._trajectory,
            sensordata=self._sensors,
            skip_checks=True,
            nstep=controls.shape[1],
        )
        self._full = self._trajectory[:, -1].copy()

    def snapshot(self) -> dict[str, np.ndarray]:
        """Everything that the coming steps depend on, copied."""
        return {"full": self._full.copy(), "commands": self._commands.copy(), "target": self.target.copy()}

    def restore(self, snapshot: dict[str, np.ndarray]) -> None:
        """Undo `snapshot`."""
        self._full, self._commands, self.target = (snapshot[name].copy() for name in ("full", "commands", "target"))

    @property
    def setpoint(self) -> np.ndarray:
        """[B, 6], the newest command."""
        return self._commands[:, 0]

    @property
    def states(self) -> np.ndarray:
        """[B, nq + nv]."""
        return self._full[:, 1 : 1 + self.model.nq + self.model.nv]

    @property
    def passed(self) -> np.ndarray:
        """States [B, substeps, nq + nv] that the last control step went through."""
        return self._trajectory[:, :, 1 : 1 + self.model.nq + self.model.nv]

    @property
    def joints(self) -> np.ndarray:
        return self._full[:, 8:14]

    @property
    def block(self) -> np.ndarray:
        """Position [B, 3] of the block, or pose [B, 7] where the task is about its orientation, too."""
        return self._full[:, 1 : 1 + self.task.block_size]

    def observation(self, noise: MeasurementNoise | None = None) -> np.ndarray:
        """What the policy sees [B, n], through noisy sensors where `noise` is given."""
        if noise is None:
            return self.task.observation(self.joints, self.block, self.target)
        return self.task.observation(noise.joints(self.joints), noise.block(self.block), self.target)

    def reward(self) -> np.ndarray:
        """What training pays [B] for the last step: the task's reward, and the increase of its potential."""
        own = self.task.reward(kinematics.fingertip(self.joints), self.block, self.target)
        return own if self.task.potential is None else own + self._potential() - self._potential_before

    def _potential(self) -> np.ndarray:
        if self.task.potential is None:
            return np.zeros(self.count)
        return self.task.potential(kinematics.fingertip(self.joints), self.block, self.target)


def _check_rows(scenario: Scenario, rows: np.ndarray, count: int) -> None:
    if len(rows) not in (1, count):
        raise ConfigError(
            got=f"{len(rows)} rows of parameters for {count} copies",
            expected="one row for all copies, or one a copy",
            where=f"simulator of {scenario.name}",
            next_step="Draw as many parameters as there are copies.",
        )
