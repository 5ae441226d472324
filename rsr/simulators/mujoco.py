"""C MuJoCo behind the `Simulator` contract: whole batches in one threaded `mujoco.rollout` call."""

from __future__ import annotations

import mujoco
import numpy as np
from mujoco import rollout as mujoco_rollout

from rsr.scenarios import Scenario
from rsr.simulators.delay import delay_weights, delayed


class MujocoSimulator:
    """Rolls windows forward in C, `threads` at a time. Close it, or use it as a context manager.

    Example:
        >>> with MujocoSimulator(load_scenario("push_cube")) as simulator:
        ...     states = simulator.rollout(starts, commands, scenario.space.nominal)
    """

    def __init__(self, scenario: Scenario, threads: int = 2) -> None:
        self.scenario = scenario
        self._pool = mujoco_rollout.Rollout(nthread=threads)
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
        params = np.broadcast_to(np.atleast_2d(params), (batch, len(self.scenario.space)))
        unique, which = np.unique(params, axis=0, return_inverse=True)
        models = [self.scenario.model(values) for values in unique]
        weights = np.stack([self._delay_weights(values) for values in unique])[which.ravel()]
        controls = delayed(actions, weights)
        after = self.advance([models[i] for i in which.ravel()], states, controls)
        substeps = self.scenario.substeps
        return np.concatenate([states[:, None], after[:, substeps - 1 :: substeps]], axis=1)

    def advance(self, models: list[mujoco.MjModel], states: np.ndarray, controls: np.ndarray) -> np.ndarray:
        """Integrate controls [B, N, nu] from states [B, nq + nv]; returns [B, N, nq + nv]."""
        initial = np.zeros((len(states), self._full))
        size = self.scenario.state_size
        initial[:, 1 : 1 + size] = states
        trajectory, _ = self._pool.rollout(models, self._data, initial, controls)
        return trajectory[:, :, 1 : 1 + size]

    def _delay_weights(self, values: np.ndarray) -> np.ndarray:
        scenario = self.scenario
        return delay_weights(scenario.delay_s(values), scenario.control_dt_s, scenario.substeps, scenario.history_steps)
