"""Many closed-loop copies of the push scene advancing together, one `mujoco.rollout` call a control step."""

from __future__ import annotations

from types import TracebackType

import mujoco
import numpy as np
from mujoco import rollout as mujoco_rollout

from rsr.scenarios import Scenario
from rsr.scenarios.push_cube import kinematics, task
from rsr.simulators import delay_weights


class MeasurementNoise:
    """The sensors' noise as the scenario states it, drawn from its own generator."""

    def __init__(self, scenario: Scenario, rng: np.random.Generator) -> None:
        stated = {observed.channel.name: observed.noise for observed in scenario.observed}
        self._joint_rad, self._block_m = stated["joint_position"], stated["block_position"]
        self._rng = rng

    def joints(self, true: np.ndarray) -> np.ndarray:
        return true + self._rng.normal(0.0, self._joint_rad, true.shape)

    def block(self, true: np.ndarray) -> np.ndarray:
        return true + self._rng.normal(0.0, self._block_m, true.shape)


class World:
    """B arms and B cubes. Commands in, states forward; the caller decides on observation, reward and resets.

    Args:
        weights: [B or 1, substeps, H + 1], the control delay of each copy; see `delay_weights`.
        threads: rollout threads; 2 use both cores of a small machine.
    """

    def __init__(self, model: mujoco.MjModel, weights: np.ndarray, count: int, threads: int = 2) -> None:
        self.count = count
        self.model = model
        self._models = [model] * count
        self._data = [mujoco.MjData(model) for _ in range(max(1, threads))]
        self._pool = mujoco_rollout.Rollout(nthread=threads)
        self._weights = np.broadcast_to(weights, (count, *weights.shape[-2:]))
        substeps, ages = weights.shape[-2:]
        size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        self._full = np.zeros((count, size))
        self._trajectory = np.zeros((count, substeps, size))
        self._sensors = np.zeros((count, substeps, model.nsensordata))
        self._commands = np.zeros((count, ages, model.nu))  # newest first
        self.target = np.zeros((count, 3))

    @classmethod
    def simulated(cls, scenario: Scenario, params: np.ndarray, count: int, threads: int = 2) -> World:
        """Make copies of the scenario's simulator with parameters [P]."""
        delay = delay_weights(
            scenario.delay_s(params), scenario.control_dt_s, scenario.substeps, scenario.history_steps
        )
        return cls(scenario.model(params), delay[None], count, threads)

    def __enter__(self) -> World:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._pool.close()

    def place(self, copies: np.ndarray, starts: task.Starts) -> None:
        """Put some copies at rest where new episodes start."""
        self._full[copies] = 0.0
        self._full[copies, 1 : 1 + self.model.nq] = starts.qpos
        self._commands[copies] = starts.qpos[:, None, 7:]
        self.target[copies] = starts.target

    def step(self, action: np.ndarray) -> None:
        """Advance one control step under displacements [B, 6] in -1..1."""
        self.send(task.next_setpoint(self.setpoint, self.joints, action))

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
    def joints(self) -> np.ndarray:
        return self._full[:, 8:14]

    @property
    def block(self) -> np.ndarray:
        """Cube position [B, 3]."""
        return self._full[:, 1:4]

    def observation(self, noise: MeasurementNoise | None = None) -> np.ndarray:
        """What the policy sees [B, 21], through noisy sensors where `noise` is given."""
        if noise is None:
            return task.observation(self.joints, self.block, self.target)
        return task.observation(noise.joints(self.joints), noise.block(self.block), self.target)

    def reward(self) -> np.ndarray:
        return task.reward(kinematics.fingertip(self.joints), self.block, self.target)
