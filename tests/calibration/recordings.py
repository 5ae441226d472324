"""Recordings of simulators whose parameters are known, as a lab would make them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from rsr.calibration import Calibration, Estimate, start_calibration
from rsr.environments import World
from rsr.scenarios.built_in.push_cube import task
from rsr.scenarios.built_in.pushing import kinematics, tool_plane
from rsr.sessions import Card, Episode, Session
from tests.push_samples import push_cube

TRUTH = {
    "table_friction": 0.1,
    "finger_friction": 0.25,
    "cube_mass": 0.3,
    "joint_damping": 2.0,
    "actuator_gain": 0.45,
    "control_delay": 0.08,
    "contact_softness": 0.03,
}


class Prodder:
    """Pushes the cube beside its middle, backs off so that it slides freely, and pushes again."""

    def __init__(self, episodes: int, rng: np.random.Generator) -> None:
        self._beside_m = np.stack([0 * rng.normal(size=episodes), 0.012 * rng.normal(size=episodes)], axis=1)
        self._speed = rng.uniform(0.6, 1.0, (episodes, 1))

    def act(self, observation: np.ndarray, step: int) -> np.ndarray:
        tip, block = observation[:, 6:8], observation[:, 12:14]
        towards = block - tip + self._beside_m
        towards = towards / np.linalg.norm(towards, axis=1, keepdims=True)
        return tool_plane.displacements(observation, towards * self._speed * (1.0 if step % 24 < 16 else -1.0))


@cache
def recording(
    episodes: int = 12, steps: int = 80, seed: int = 0, noise: float = 1.0, truth: tuple[tuple[str, float], ...] = ()
) -> Session:
    """Episodes of a prodded cube in a simulator with known parameters, with the scenario's own sensor noise.

    Args:
        noise: factor on the noise.
        truth: overrides of `TRUTH`.
    """
    scenario = push_cube()
    rng = np.random.default_rng(seed)
    starts = task.sample_starts(rng, episodes)
    prodder = Prodder(episodes, rng)
    states, sent = [], []
    with World.simulated(scenario, scenario.space.vector({**TRUTH, **dict(truth)}), episodes) as world:
        world.place(np.arange(episodes), starts)
        for step in range(steps):
            states.append(world.states.copy())
            world.step(prodder.act(world.observation(), step))
            sent.append(world.command.copy())
        states.append(world.states.copy())
    return session_of(np.stack(states, axis=1), np.stack([*sent, sent[-1]], axis=1), noise, rng)


def calibrated() -> Calibration:
    """A calibration that knows the truth."""
    start = start_calibration(push_cube())
    known = {
        name: Estimate(TRUTH[name], TRUTH[name], TRUTH[name], estimate.unit, "identified")
        for name, estimate in start.estimates.items()
    }
    return replace(start, estimates=known)


@cache
def stillness(episodes: int = 6, steps: int = 30) -> Session:
    """Nothing moves; sensors are noisy."""
    starts = task.sample_starts(np.random.default_rng(5), episodes)
    qpos = np.tile(starts.qpos[:, None], (1, steps + 1, 1))
    states = np.concatenate([qpos, np.zeros((episodes, steps + 1, 12))], axis=2)
    return session_of(states, qpos[..., 7:], 1.0, np.random.default_rng(6))


def session_of(states: np.ndarray, sent: np.ndarray, noise: float, rng: np.random.Generator) -> Session:
    """Measure states [B, T + 1, nq + nv] under commands [B, T + 1, 6]."""
    scenario = push_cube()
    rows = states.shape[1]
    measured = scenario.measure(states)
    for name in ("joint_position", "block_position"):
        spread = noise * scenario.observed_channel(name).noise
        measured[name] = measured[name] + rng.normal(0.0, spread, measured[name].shape)
    still = {"action": np.zeros((rows, 6)), "clipped": np.zeros((rows, 1)), "target_position": np.zeros((rows, 3))}
    episodes = tuple(
        Episode(
            index=i,
            time_s=np.arange(rows) * scenario.control_dt_s,
            values={
                **{name: values[i] for name, values in measured.items()},
                "joint_setpoint": sent[i],
                "tip_position": kinematics.fingertip(states[i, :, 7:13]),
                **still,
            },
        )
        for i in range(len(states))
    )
    card = Card("session-001", scenario.name, "stand_in", simulated=True, control_dt_s=scenario.control_dt_s)
    return Session(card, scenario.channels, episodes)
