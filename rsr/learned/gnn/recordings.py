"""Recorded sessions of free bodies as trajectories, freed of what tags add: noise in the start, frames that jump."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rsr.common import SessionError, turned
from rsr.learned.gnn.scenario_bodies import FreeBodies, free_bodies
from rsr.learned.gnn.start_frames import fit_all_first_frames
from rsr.learned.gnn.trajectories import Trajectory
from rsr.scenarios import Scenario, starts_of
from rsr.sessions import Episode, Session

_UNEVEN = 0.1
_UNIT = 0.05


def freed_of_noise(scenario: Scenario, session: Session) -> Session:
    """A session whose first frames are fitted, until a body is hit, and whose jumped frames are filled in.

    Where bodies go depends on how fast they start, and the five noisy frames that `Scenario.states` looks at tell
    that badly (docs/evidence/gnn.md).

    Raises:
        SessionError: an episode in which nothing moves, a tag jumps or trembles too much, or a frame is missing.
    """
    bodies = free_bodies(scenario)
    found = fit_all_first_frames(from_sessions(scenario, [session]))
    episodes = [
        replace(episode, values={**episode.values, **_channels(scenario, bodies, each.poses)})
        for episode, each in zip(session.episodes, found, strict=True)
    ]
    return replace(session, episodes=tuple(episodes))


def _channels(scenario: Scenario, bodies: FreeBodies, poses: np.ndarray) -> dict[str, np.ndarray]:
    """Observed channels as they would show poses [T, n, 7] of the centres of mass."""
    qpos = np.zeros((len(poses), bodies.size[0]))
    # Poses are of centres of mass, channels of the bodies' frames: p = c - R com.
    origins = poses[..., :3] - turned(poses[..., 3:], bodies.com_m)
    qpos[:, bodies.qpos] = np.concatenate([origins, poses[..., 3:]], axis=-1)
    return {each.channel.name: qpos[:, list(each.qpos)] for each in scenario.observed}


def from_sessions(
    scenario: Scenario, sessions: Sequence[Session], params: np.ndarray | None = None
) -> list[Trajectory]:
    """Take every episode of recorded sessions as a trajectory, noise and jumps included (see `freed_of_noise`).

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
    # `Scenario.states` smooths, and would smear impacts over five frames.
    states = np.zeros((len(episode), scenario.state_size))
    for observed in scenario.observed:
        rows = episode[observed.channel.name]
        if observed.kind == "quaternion":
            rows = _unit(rows, f"{name}, channel {observed.channel.name}")
        states[:, list(observed.qpos)] = rows
    return bodies.poses(states)


def _unit(quaternions: np.ndarray, where: str) -> np.ndarray:
    # Rounding is mended; a tag that was not seen is often stored as zeros, which is not.
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
    # A missing frame would be read as twice the velocity.
    wanted, steps = scenario.control_dt_s, np.diff(episode.time_s)
    if len(steps) and np.abs(steps - wanted).max() > _UNEVEN * wanted:
        row = int(np.abs(steps - wanted).argmax())
        raise SessionError(
            got=f"{steps[row] * 1e3:.1f} ms between frames {row} and {row + 1}",
            expected=f"{wanted * 1e3:.1f} ms, as everywhere",
            where=name,
            next_step="Cut the episode there, or leave it out.",
        )


def recorded_trajectories(scenario: Scenario, params: np.ndarray, episodes: Sequence[Episode]) -> list[Trajectory]:
    """Recorded episodes as poses of the centres of mass, freed of measurement noise as far as a few rows allow."""
    bodies = free_bodies(scenario, params)
    return [
        Trajectory(bodies.world, bodies.poses(scenario.states(each)), scenario.control_dt_s, f"episode {each.index}")
        for each in episodes
    ]


def judged_trajectories(
    scenario: Scenario, params: np.ndarray, episodes: Sequence[Episode], frames: int
) -> list[Trajectory]:
    """Recorded episodes from the starts that the scenario is judged by, cut to so many frames.

    The first two frames are the start's state, whose velocities were fitted to more of them; the others are as
    recorded.
    """
    bodies = free_bodies(scenario, params)
    found = []
    for episode in episodes:
        poses = recorded_poses(scenario, bodies, episode, f"episode {episode.index}")
        for start in starts_of(scenario, episode, scenario.evaluation.start(None)):
            # Two frames are the start: the row itself and the one before it.
            after = poses[start.row + 1 :][: frames - 2]
            if len(after):
                whole = np.concatenate([bodies.start(start.state[None])[0], after])
                name = f"episode {episode.index}, frame {start.row}"
                found.append(Trajectory(bodies.world, whole, scenario.control_dt_s, name))
    return found
