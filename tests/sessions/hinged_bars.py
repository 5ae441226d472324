"""Two hinged bars on a board, as a stranger would record them: a free body and a joint that may turn round."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from rsr.scenarios import Scenario, load_scenario
from rsr.sessions import Card, Episode, Session
from rsr.simulators import MujocoSimulator

ROWS = 120


@cache
def elbow() -> Scenario:
    return load_scenario(str(Path(__file__).parents[2] / "examples" / "elbow" / "scenario.yaml"))


@cache
def throws(count: int = 6, seed: int = 0) -> Session:
    """Throws simulated with nominal parameters, with sensor noise; the angle is continuous and may exceed a turn."""
    scenario, rng = elbow(), np.random.default_rng(seed)
    start = np.zeros((count, scenario.state_size))
    start[:, 2], start[:, 3] = 0.25, 1.0
    start[:, 7] = rng.uniform(1.5, 3.0, count)
    start[:, 8:11] = rng.normal(0, 0.3, (count, 3))
    start[:, 11:14] = rng.normal(0, 3.0, (count, 3))
    start[:, 14] = rng.uniform(6.0, 14.0, count)
    with MujocoSimulator(scenario) as simulator:
        states = simulator.rollout(start, np.zeros((count, ROWS - 1, 0)), scenario.space.nominal)
    card = Card("session-001", scenario.name, "simulator", simulated=True, control_dt_s=scenario.control_dt_s)
    return Session(card, scenario.channels, tuple(_episode(i, path, rng) for i, path in enumerate(states)))


def _episode(index: int, path: np.ndarray, rng: np.random.Generator) -> Episode:
    quaternion = path[:, 3:7] / np.linalg.norm(path[:, 3:7], axis=1, keepdims=True)
    values = {
        "link1_position": path[:, :3] + rng.normal(0, 2e-4, (ROWS, 3)),
        "link1_orientation": quaternion,
        "elbow_angle": path[:, 7:8] + rng.normal(0, 2e-3, (ROWS, 1)),
        "link1_velocity": path[:, 8:11],
        "link1_angular_velocity": path[:, 11:14],
        "elbow_velocity": path[:, 14:15],
    }
    return Episode(index, np.arange(ROWS) * elbow().control_dt_s, values)
