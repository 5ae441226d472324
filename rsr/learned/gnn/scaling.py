"""Data scaling for any scenario of free bodies: recorded starts, varied, carried on by its own identified MuJoCo.

The paper's point: a handful of recordings identifies a simulator, and that one has as many trajectories as training
needs. Starts are like the recorded ones, turned, faster and slower, so that the network learns where it is used.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rsr.common import Advance, SessionError, about_z, from_rotation_vector, generator, ignore, product, turned
from rsr.learned.gnn.scenario_bodies import FreeBodies, free_bodies
from rsr.learned.gnn.trajectories import Trajectory
from rsr.scenarios import Scenario
from rsr.sessions import Episode
from rsr.simulators import MujocoSimulator

_SPEED_FACTOR = (0.7, 1.3)
_SPEED_NOISE_M_S = 0.15
_SPIN_NOISE_RAD_S = 2.0
_LIFT_M = 0.002
_AT_ONCE = 256


def varied_trajectories(
    scenario: Scenario,
    params: np.ndarray,
    episodes: Sequence[Episode],
    count: int,
    frames: int,
    seed: int = 0,
    threads: int = 2,
    advance: Advance = ignore,
) -> list[Trajectory]:
    """Simulate `count` trajectories from varied starts of recorded episodes. Equal arguments, equal trajectories.

    Bodies that fly get any orientation at all, others keep theirs but for their heading.
    """
    if not episodes:
        raise SessionError(
            got="no episode",
            expected="at least one whose start can be varied",
            where=f"data scaling of scenario {scenario.name}",
            next_step="Record an episode, or hold fewer of them out.",
        )
    bodies = free_bodies(scenario, params)
    starts = np.array([scenario.states(episode)[0] for episode in episodes])
    # One draw for all, whatever the batches and threads: equal seeds give equal trajectories.
    states = _varied(bodies, starts, count, generator(seed, "gnn", "variation"))
    found: list[Trajectory] = []
    with MujocoSimulator(scenario, threads) as simulator:
        for first in range(0, count, _AT_ONCE):
            chosen = states[first : first + _AT_ONCE]
            commands = np.zeros((len(chosen), scenario.history_steps + frames - 1, scenario.base_model.nu))
            poses = bodies.poses(simulator.rollout(chosen, commands, params))
            found += [
                Trajectory(bodies.world, each, scenario.control_dt_s, f"varied {first + index}")
                for index, each in enumerate(poses)
            ]
            advance(len(found) / count, f"{len(found):,} of {count:,} trajectories")
    return found


def _varied(bodies: FreeBodies, starts: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Starts [count, nq + nv]: all bodies turned together about z, faster or slower, those in flight as they please."""
    states = starts[rng.integers(len(starts), size=count)].copy()
    flying = bodies.flying(bodies.poses(states))
    heading = about_z(rng.uniform(-np.pi, np.pi, count))[:, None]
    qpos, qvel = states[:, bodies.qpos], states[:, bodies.size[0] + bodies.dofs]
    # 2 rad a component reaches every orientation.
    tumbled = product(qpos[..., 3:], from_rotation_vector(rng.normal(0, 2.0, qpos[..., :3].shape)))
    orientation = np.where(flying[..., None], tumbled, qpos[..., 3:])
    speed = rng.uniform(*_SPEED_FACTOR, (count, 1, 1))
    # What rests shall rest: a struck body begins at rest in every recording.
    moving = np.linalg.norm(qvel[..., :3], axis=-1, keepdims=True) > _SPEED_NOISE_M_S
    kicks = moving * rng.normal(0, _SPEED_NOISE_M_S, qvel[..., :3].shape)
    spins = moving * rng.normal(0, _SPIN_NOISE_RAD_S, qvel[..., 3:].shape)
    # On the floor bodies are kicked sideways and spun about the vertical, or they would start inside of it.
    level = np.where(flying[..., None], 1.0, [1.0, 1.0, 0.0])
    upright = np.where(flying[..., None], 1.0, [0.0, 0.0, 1.0])
    # The heading turns the whole scene about z, so that what lay ahead of a body still does.
    qpos = np.concatenate([turned(heading, qpos[..., :3]), product(heading, orientation)], axis=-1)
    linear = turned(heading, speed * qvel[..., :3] + level * kicks)
    qvel = np.concatenate([linear, speed * qvel[..., 3:] + upright * spins], axis=-1)
    states[:, bodies.qpos], states[:, bodies.size[0] + bodies.dofs] = qpos, qvel
    return _lifted(bodies, states, flying)


def _lifted(bodies: FreeBodies, states: np.ndarray, flying: np.ndarray) -> np.ndarray:
    """Raise what flies until it is clear of the floor in its new orientation."""
    # A tumbled cube reaches lower than the recorded one by up to 0.37 of its side.
    short = np.maximum(_LIFT_M - bodies.lowest(bodies.poses(states)), 0.0)
    states[:, bodies.qpos[:, 2]] += np.where(flying, short, 0.0)
    return states
