"""From recorded sessions of any scenario of free bodies to trajectories."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rsr.errors import SessionError
from rsr.gnn.trajectories import Trajectory
from rsr.gnn.worlds import FreeBodies, free_bodies
from rsr.scenarios import Scenario
from rsr.sessions import Episode, Session

_UNEVEN = 0.1
_UNIT = 0.05


def from_sessions(
    scenario: Scenario, sessions: Sequence[Session], params: np.ndarray | None = None
) -> list[Trajectory]:
    """Take every episode of recorded sessions as a trajectory, with its noise and its jumps (`steady` mends them).

    Args:
        params: [P] of a calibration, if there is one: centre of mass, inertia and gravity are then those.
    """
    bodies = free_bodies(scenario, params)
    return [
        _trajectory(scenario, bodies, episode, f"{session.card.session}, episode {episode.index}")
        for session in sessions
        for episode in session.episodes
    ]


def _trajectory(scenario: Scenario, bodies: FreeBodies, episode: Episode, name: str) -> Trajectory:
    _refuse_gaps(scenario, episode, name)
    return Trajectory(bodies.world, recorded_poses(scenario, bodies, episode, name), scenario.control_dt_s, name)


def recorded_poses(scenario: Scenario, bodies: FreeBodies, episode: Episode, name: str) -> np.ndarray:
    """Poses [T, n, 7] of the centres of mass as recorded: `Scenario.states` would smear impacts."""
    states = np.zeros((len(episode), scenario.state_size))
    for observed in scenario.observed:
        rows = episode[observed.channel.name]
        if observed.kind == "quaternion":
            rows = _unit(rows, f"{name}, channel {observed.channel.name}")
        states[:, list(observed.qpos)] = rows
    return bodies.poses(states)


def _unit(quaternions: np.ndarray, where: str) -> np.ndarray:
    lengths = np.linalg.norm(quaternions, axis=1, keepdims=True)
    if np.abs(lengths - 1).max() > _UNIT:
        raise SessionError(
            got=f"quaternions of length {lengths.min():.2g} to {lengths.max():.2g}",
            expected="unit quaternions, wxyz",
            where=where,
            next_step="Correct the recording; where no tag was seen, leave the frame out.",
        )
    return quaternions / lengths


def _refuse_gaps(scenario: Scenario, episode: Episode, name: str) -> None:
    """Velocities are differences of neighbours, so no frame may be missing between two."""
    wanted, steps = scenario.control_dt_s, np.diff(episode.time_s)
    if len(steps) and np.abs(steps - wanted).max() > _UNEVEN * wanted:
        row = int(np.abs(steps - wanted).argmax())
        raise SessionError(
            got=f"{steps[row] * 1e3:.1f} ms between frames {row} and {row + 1}",
            expected=f"{wanted * 1e3:.1f} ms, as everywhere",
            where=name,
            next_step="Cut the episode there, or leave it out.",
        )
