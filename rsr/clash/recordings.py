"""From sessions to strikes: episodes of a scenario that declares a collision, as the extractor wants them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rsr.clash.extraction import Trajectory, extract_strikes
from rsr.clash.planar import Planar
from rsr.errors import CalibrationError
from rsr.scenarios import Scenario
from rsr.scenarios.strike import RecordedStrikes, declared_collision
from rsr.sessions import Episode, Session


@dataclass(frozen=True)
class Recordings:
    """The strikes of some sessions.

    Args:
        episodes: [N], which episode each strike is, counted over all sessions one after the other.
        rejected: (episode, why it is no strike).
        ground_friction: by regression; None without any strike.
    """

    strikes: RecordedStrikes
    episodes: tuple[int, ...]
    rejected: tuple[tuple[int, str], ...]
    ground_friction: float | None

    def take(self, rows: np.ndarray) -> RecordedStrikes:
        return self.strikes.take(rows)


def strikes_of(scenario: Scenario, sessions: Sequence[Session]) -> Recordings:
    """Extract strikes from recorded trajectories.

    Raises:
        CalibrationError: sessions of another scenario, or not one strike in them.
    """
    for session in sessions:
        if session.card.scenario != scenario.name:
            raise _refused(scenario, f"a session of scenario {session.card.scenario}", f"one of {scenario.name}")
    episodes = [episode for session in sessions for episode in session.episodes]
    planar = Planar(scenario)
    trajectories = [trajectory_of(scenario, planar, episode) for episode in episodes]
    found = extract_strikes(planar.shape, trajectories, declared_collision(scenario).nose_radius_m)
    if found.recorded is None:
        why = found.rejected[0][1] if found.rejected else "there are no episodes"
        raise _refused(scenario, f"no strike in {len(episodes)} episodes ({why})", "recordings of one strike each")
    return Recordings(found.recorded, found.kept, found.rejected, found.ground_friction)


def trajectory_of(scenario: Scenario, planar: Planar, episode: Episode) -> Trajectory:
    """Block and striker in the plane, by the scenario's own kinematics: row by row as recorded."""
    states = np.zeros((len(episode), scenario.state_size))
    states[:, : scenario.base_model.nq] = scenario.base_model.qpos0
    for observed in scenario.observed:
        states[:, list(observed.qpos)] = episode[observed.channel.name]
    block, nose = planar.poses(states)
    return Trajectory(episode.time_s, block, nose)


def _refused(scenario: Scenario, got: str, expected: str) -> CalibrationError:
    return CalibrationError(
        got=got,
        expected=expected,
        where=f"strikes of scenario {scenario.name}",
        next_step="Look at the sessions with `rsr check`; docs/clash.md says what is a strike.",
    )
