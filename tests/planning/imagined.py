"""Recordings of a simulator with nominal parameters, for scenarios with commands and without."""

from __future__ import annotations

import numpy as np

from rsr.scenarios import Scenario
from rsr.sessions import Card, Episode, Session
from rsr.simulators import MujocoSimulator


def recorded(scenario: Scenario, starts: np.ndarray, commands: np.ndarray, seed: int = 0) -> Session:
    """Episodes from starts [B, nq + nv] under commands [B, T, nu], seen through the scenario's sensors."""
    rng = np.random.default_rng(seed)
    before = np.repeat(commands[:, :1], scenario.history_steps, axis=1)
    with MujocoSimulator(scenario) as simulator:
        states = simulator.rollout(starts, np.concatenate([before, commands], axis=1), scenario.space.nominal)
    measured = scenario.measure(states)
    for observed in scenario.observed:
        name = observed.channel.name
        measured[name] = measured[name] + observed.noise * rng.standard_normal(measured[name].shape)
    if scenario.command:
        measured[scenario.command] = np.concatenate([commands, commands[:, -1:]], axis=1)
    time_s = scenario.control_dt_s * np.arange(states.shape[1])
    episodes = tuple(
        Episode(index, time_s, {name: values[index] for name, values in measured.items()})
        for index in range(len(states))
    )
    card = Card("session-001", scenario.name, "imagined", True, scenario.control_dt_s)
    return Session(card, scenario.channels, episodes)


def swings(scenario: Scenario, episodes: int = 4, steps: int = 400) -> Session:
    """A double pendulum driven by slow sines."""
    rng = np.random.default_rng(1)
    time_s = scenario.control_dt_s * np.arange(steps)[:, None]
    commands = np.array([np.sin(2 * np.pi * rng.uniform(0.5, 1.5, 2) * time_s) for _ in range(episodes)])
    start = np.concatenate([scenario.base_model.qpos0, np.zeros(scenario.base_model.nv)])
    return recorded(scenario, np.tile(start, (episodes, 1)), commands)


def tosses(scenario: Scenario, episodes: int = 5, steps: int = 70) -> Session:
    """Cubes thrown with different velocities and spins."""
    rng = np.random.default_rng(2)
    model = scenario.base_model
    starts = np.zeros((episodes, scenario.state_size))
    starts[:, : model.nq] = model.qpos0
    starts[:, 2] = 0.2
    starts[:, model.nq :] = rng.normal(0, [0.5, 0.5, 0.2, 3, 3, 3], (episodes, 6))
    return recorded(scenario, starts, np.zeros((episodes, steps, model.nu)))
