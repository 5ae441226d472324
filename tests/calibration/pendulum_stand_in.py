"""Recordings of a simulated double pendulum whose parameters and encoder biases are known."""

from __future__ import annotations

from functools import cache

import numpy as np

from rsr.scenarios import load_scenario
from rsr.sessions import Card, Episode, Session
from rsr.simulators import MujocoSimulator

TRUTH = {"shoulder_damping": 0.02, "shoulder_friction": 0.1, "elbow_friction": 0.07, "upper_com": 0.22}
ROWS = 1001
"""Two seconds."""


@cache
def swings(episodes: int = 6, biases: bool = True, seed: int = 0) -> tuple[Session, np.ndarray]:
    """Swings under smooth random torques, with sensor noise; and the biases [E, 2] that were added to what is shown."""
    scenario = load_scenario("double_pendulum")
    rng = np.random.default_rng(seed)
    time_s = np.arange(ROWS) * scenario.control_dt_s
    torque = sum(
        rng.normal(size=(episodes, 1, 2))
        * np.sin(2 * np.pi * hz * time_s[:, None] + rng.uniform(0, 6, (episodes, 1, 2)))
        for hz in (0.4, 0.9, 1.7)
    )
    sent = np.array([0.8, 0.4]) * torque
    start = np.zeros((episodes, 4))
    start[:, :2] = rng.uniform(-1.0, 1.0, (episodes, 2))
    commands = np.concatenate([np.repeat(sent[:, :1], scenario.history_steps, axis=1), sent[:, :-1]], axis=1)
    with MujocoSimulator(scenario) as simulator:
        states = simulator.rollout(start, commands, scenario.space.vector(TRUTH))
    offsets = rng.normal(0.0, 0.03, (episodes, 2)) * biases
    noise = rng.normal(0.0, scenario.observed_channel("joint_position").noise, (episodes, ROWS, 2))
    shown = states[..., :2] + offsets[:, None] + noise
    recorded = tuple(
        Episode(
            index=i,
            time_s=time_s,
            values={
                "joint_position": shown[i],
                "joint_velocity": states[i, :, 2:],
                "measured_torque": sent[i],
                "commanded_torque": sent[i],
            },
        )
        for i in range(episodes)
    )
    card = Card("session-001", scenario.name, "stand_in", simulated=True, control_dt_s=scenario.control_dt_s)
    return Session(card, scenario.channels, recorded), offsets
