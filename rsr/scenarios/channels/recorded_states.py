"""Rows of states that a recording shows, whole or one row of it: where simulations of it begin."""

from __future__ import annotations

import mujoco
import numpy as np

from rsr.scenarios.channels.rolling import roll, unseen_spins
from rsr.scenarios.channels.smoothing import smooth
from rsr.scenarios.channels.turns import continuous
from rsr.scenarios.scenario import Scenario
from rsr.sessions import Episode


def recorded_positions(scenario: Scenario, episode: Episode) -> tuple[np.ndarray, np.ndarray]:
    """Positions [T + 1, nq] as recorded, and the noise [nv] of their coordinates."""
    model = scenario.base_model
    qpos = np.tile(model.qpos0, (len(episode), 1))
    noise = np.ones(model.nv)
    for observed in scenario.observed:
        if observed.qpos:
            recorded = episode[observed.channel.name]
            qpos[:, list(observed.qpos)] = continuous(model, observed, recorded, f"episode {episode.index}")
            noise[list(observed.dofs)] = observed.noise
    return qpos, noise


def smoothed_states(scenario: Scenario, episode: Episode) -> np.ndarray:
    """See `Scenario.states`."""
    model = scenario.base_model
    qpos, qvel = smooth(model, episode.time_s, *recorded_positions(scenario, episode))
    for velocity in scenario.velocities:
        if velocity.initial:
            qvel[:, list(velocity.dofs)] = episode[velocity.channel.name]
    roll(scenario, qpos, qvel)
    states = np.zeros((len(episode), scenario.state_size))
    states[:, : model.nq + model.nv] = np.concatenate([qpos, qvel], axis=1)
    for observed in scenario.observed:
        if observed.sensor_columns:
            states[:, list(observed.places)] = episode[observed.channel.name]
    return states


def recorded_state(scenario: Scenario, episode: Episode, row: int) -> np.ndarray:
    """See `Scenario.recorded_state`."""
    model = scenario.base_model
    state = scenario.states(episode)[row] if _estimates_velocities(scenario) else np.zeros(scenario.state_size)
    qpos = state[: model.nq]
    qpos[:] = model.qpos0
    for observed in scenario.observed:
        state[list(observed.places)] = episode[observed.channel.name][row]
    mujoco.mj_normalizeQuat(model, qpos)
    for velocity in scenario.velocities:
        state[model.nq + np.array(velocity.dofs)] = episode[velocity.channel.name][row]
    return state


def _estimates_velocities(scenario: Scenario) -> bool:
    """True where some velocity that matters was not recorded."""
    moving = {dof for observed in scenario.observed for dof in observed.dofs}
    recorded = {dof for velocity in scenario.velocities for dof in velocity.dofs}
    return not moving <= recorded or bool(unseen_spins(scenario))
