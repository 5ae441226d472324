"""From recorded sessions of any scenario of free bodies to trajectories."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rsr.errors import ScenarioError, SessionError
from rsr.gnn.trajectories import Trajectory
from rsr.gnn.worlds import FreeBodies, free_bodies
from rsr.scenarios import Scenario
from rsr.scenarios.two_cubes import ContactParameters
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


def contact_of(scenario: Scenario, params: np.ndarray) -> ContactParameters:
    """What the contacts of a calibrated scenario obey: its first contact pair's numbers."""
    model = scenario.model(params)
    if model.npair == 0:
        raise ScenarioError(
            got="no contact <pair>",
            expected="contacts written as pairs",
            where=f"scenario {scenario.name}, rsr.gnn",
            next_step="Write the contacts of its MJCF as pairs, or identify them with `rsr gnn identify`.",
        )
    d_0, d_width, width, midpoint, power = model.pair_solimp[0].tolist()
    time_constant, damping_ratio = model.pair_solref[0].tolist()
    friction = float(model.pair_friction[0, 0])
    return ContactParameters(friction, (d_0, d_width, width, midpoint, power), (time_constant, damping_ratio))


def _trajectory(scenario: Scenario, bodies: FreeBodies, episode: Episode, name: str) -> Trajectory:
    _refuse_gaps(scenario, episode, name)
    states = np.zeros((len(episode), scenario.state_size))
    for observed in scenario.observed:
        rows = episode[observed.channel.name]
        if observed.kind == "quaternion":
            rows = _unit(rows, f"{name}, channel {observed.channel.name}")
        states[:, list(observed.qpos)] = rows
    return Trajectory(bodies.world, bodies.poses(states), scenario.control_dt_s, name)


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
