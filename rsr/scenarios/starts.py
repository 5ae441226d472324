"""Where a simulation of a recording begins, and in which state: the ways that published comparisons use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rsr.errors import ScenarioError
from rsr.scenarios.metrics import FreeFlight, StartName
from rsr.scenarios.residuals import difference
from rsr.scenarios.scenario import Scenario
from rsr.sessions import Episode

_FEWEST_ROWS = 3
"""A flight is fitted to this many frames at least: two give a velocity without any check of the position."""


@dataclass(frozen=True)
class Start:
    """One rollout to compare with a recording.

    Args:
        row: the episode's row that the state belongs to.
        state: [nq + nv].
        steps: control steps to simulate.
    """

    row: int
    state: np.ndarray
    steps: int


def starts_of(scenario: Scenario, episode: Episode, start: StartName) -> tuple[Start, ...]:
    """The rollouts an episode is judged by; none where it does not allow such a start."""
    last = len(episode) - 1
    if start == "first":
        return (Start(0, scenario.recorded_state(episode, 0), last),)
    if start == "free_flight":
        return tuple(_free_flight(scenario, episode))
    horizon = round((scenario.evaluation.horizon_s or 0.0) / scenario.control_dt_s)
    states = scenario.states(episode)
    rows = range(scenario.history_steps, last - horizon + 1, max(horizon, 1))
    return tuple(Start(row, states[row], horizon) for row in rows)


def _free_flight(scenario: Scenario, episode: Episode) -> Iterator[Start]:
    flight = scenario.evaluation.free_flight
    if flight is None:
        raise ScenarioError(
            got="no evaluation: free_flight",
            expected="the channels and the height that tell flight from contact",
            where=f"scenario {scenario.name}, start free_flight",
            next_step="Add `free_flight` to `evaluation` in the scenario's YAML file, or choose another start.",
        )
    low = np.flatnonzero(episode[flight.position][:, 2] < flight.below_m)
    row = int(low[0]) - flight.frames_before if low.size else -1
    if row + 1 >= _FEWEST_ROWS:
        yield Start(row, _flying_state(scenario, episode, flight, row), len(episode) - 1 - row)


def _flying_state(scenario: Scenario, episode: Episode, flight: FreeFlight, row: int) -> np.ndarray:
    """The recorded pose of a row, with velocities fitted to the frames up to it: a parabola and an even rotation."""
    model = scenario.base_model
    elapsed_s = episode.time_s[: row + 1] - episode.time_s[row]
    fallen = 0.5 * elapsed_s[:, None] ** 2 * model.opt.gravity
    state = scenario.recorded_state(episode, row)
    turned = difference("quaternion", episode[flight.orientation][row], episode[flight.orientation][: row + 1])
    for name, moved in ((flight.position, episode[flight.position][: row + 1] - fallen), (flight.orientation, turned)):
        observed = scenario.observed_channel(name)
        state[model.nq + np.array(observed.dofs)] = np.polyfit(elapsed_s, moved, 1)[0]
    return state
