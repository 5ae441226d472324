"""The learned simulator: many trajectories from their first two frames, and the `Simulator` contract of a scenario.

For gradients use `rsr.learned.gnn.rollout`, which is differentiable in the start, in forces, in masses and in the
weights.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from rsr.common import ConfigError, ScenarioError
from rsr.learned.gnn.contact_network import ContactNetwork, rollout, rollout_scenes
from rsr.learned.gnn.graph import scenes_of
from rsr.learned.gnn.scenario_bodies import free_bodies
from rsr.learned.gnn.trajectories import START_FRAMES, Trajectory
from rsr.scenarios import Scenario, check_simulated

_AT_ONCE = 64


def predict(network: ContactNetwork, trajectories: Sequence[Trajectory]) -> list[np.ndarray]:
    """Predict trajectories of any worlds from their first two frames: poses [T, n, 7] each, those two included."""
    for trajectory in trajectories:
        check_frame_time(network, trajectory.dt_s, f"trajectory '{trajectory.name}'")
    # Of like length side by side, so that no batch waits for its longest.
    order = sorted(range(len(trajectories)), key=lambda index: len(trajectories[index]))
    found: dict[int, np.ndarray] = {}
    for first in range(0, len(order), _AT_ONCE):
        chosen = order[first : first + _AT_ONCE]
        found |= zip(chosen, _predicted(network, [trajectories[index] for index in chosen]), strict=True)
    return [found[index] for index in range(len(trajectories))]


def _predicted(network: ContactNetwork, trajectories: Sequence[Trajectory]) -> list[np.ndarray]:
    dtype = next(network.parameters()).dtype
    starts = np.concatenate([trajectory.start for trajectory in trajectories], axis=1)
    frames = max(len(trajectory) for trajectory in trajectories) - START_FRAMES
    with torch.no_grad():
        scenes = scenes_of([trajectory.world for trajectory in trajectories], dtype)
        # All run as long as the longest, and are cut afterwards.
        after = rollout_scenes(network, scenes, torch.as_tensor(starts, dtype=dtype), frames)
    poses = np.concatenate([starts, after.numpy().astype(float)])
    ends = np.cumsum([len(trajectory.world.bodies) for trajectory in trajectories])
    parts = np.split(poses, ends[:-1], axis=1)
    return [part[: len(trajectory)] for part, trajectory in zip(parts, trajectories, strict=True)]


class GnnSimulator:
    """A network behind the `Simulator` contract, for scenarios of free bodies that nothing commands.

    `params` place the centres of mass and say the masses; what contacts do is the network's. Use it as a context
    manager, like the other simulators.
    """

    def __init__(self, scenario: Scenario, network: ContactNetwork) -> None:
        if scenario.base_model.nu:
            raise ScenarioError(
                got=f"{scenario.base_model.nu} actuators",
                expected="free bodies that nothing commands",
                where=f"scenario {scenario.name}, learned simulator",
                next_step="Calibrate with another method, such as cmaes.",
            )
        check_simulated(scenario, "gnn", "free bodies")
        check_frame_time(network, scenario.control_dt_s, f"scenario {scenario.name}")
        self.scenario, self.network = scenario, network

    def __enter__(self) -> GnnSimulator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is held open."""

    def rollout(self, states: np.ndarray, actions: np.ndarray, params: np.ndarray) -> np.ndarray:
        """See `Simulator.rollout`. Windows that share a row of `params` are rolled out together."""
        steps = actions.shape[1] - self.scenario.history_steps
        rows = np.broadcast_to(np.atleast_2d(params), (len(states), len(self.scenario.space)))
        # Masses and centres of mass differ by row: one world for each distinct row.
        unique, which = np.unique(rows, axis=0, return_inverse=True)
        predicted = np.zeros((len(states), steps + 1, self.scenario.state_size))
        for index, values in enumerate(unique):
            chosen = np.flatnonzero(which.ravel() == index)
            predicted[chosen] = self._rolled_out(states[chosen], steps, values)
        return predicted

    def _rolled_out(self, states: np.ndarray, steps: int, params: np.ndarray) -> np.ndarray:
        bodies = free_bodies(self.scenario, params)
        starts = bodies.start(states)
        with torch.no_grad():
            after = rollout(self.network, bodies.world, starts, steps).numpy().astype(float)
        # Velocities of later states are differences, as the network has no others.
        return np.concatenate([states[:, None], bodies.states(np.concatenate([starts[:, 1:], after], axis=1))], axis=1)


def check_frame_time(network: ContactNetwork, dt_s: float, where: str) -> None:
    """Make sure that a network was trained at this time between frames, because it knows no other."""
    trained = network.settings.dt_s
    if abs(trained - dt_s) > 1e-6 * dt_s:
        raise ConfigError(
            got=f"{1e3 * dt_s:.4g} ms between frames",
            expected=f"{1e3 * trained:.4g} ms, at which the network was trained",
            where=where,
            next_step="Train a network at this frame time, or resample the recordings.",
        )
