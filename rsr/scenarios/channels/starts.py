"""Where a simulation of a recording begins, and in which state: the ways that published comparisons use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import mujoco
import numpy as np

from rsr.common import ScenarioError
from rsr.scenarios.channels.differences import difference
from rsr.scenarios.channels.observed import Observed
from rsr.scenarios.channels.turns import continuous
from rsr.scenarios.metrics import FreeFlight, StartName
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
            expected="the channels and the height that separate flight from contact",
            where=f"scenario {scenario.name}, start free_flight",
            next_step="Add `free_flight` to `evaluation` in the scenario's YAML file, or choose another start.",
        )
    low = np.flatnonzero(episode[flight.position][:, 2] < flight.below_m)
    row = int(low[0]) - flight.frames_before if low.size else -1
    if row + 1 >= _FEWEST_ROWS:
        yield Start(row, _flying_state(scenario, episode, flight, row), len(episode) - 1 - row)


_SAME_TURN_RAD = 2.5
"""Rotation vectors from the start's orientation are unique below half a turn, so older frames do not count."""
_LINKS_SINCE_S = 0.1
"""Links speed each other up: a parabola in time holds for so long."""
_IN_THE_ORIGIN_M = 1e-5
"""A centre of mass nearer than this is the origin: scenes write a micrometre where MuJoCo wants it not to be zero."""


def _flying_state(scenario: Scenario, episode: Episode, flight: FreeFlight, row: int) -> np.ndarray:
    """The recorded pose of a row, with velocities fitted to the frames up to it.

    In flight the centre of mass follows a parabola, and no other point does: neither a body's origin beside it nor one
    link of several. One rigid body turns evenly; links that push on each other may speed each other up.
    """
    model, state = scenario.base_model, scenario.recorded_state(episode, row)
    body = int(model.jnt_bodyid[model.dof_jntid[scenario.observed_channel(flight.position).dofs[0]]])
    links = _links(scenario, flight, body)
    elapsed_s = episode.time_s[: row + 1] - episode.time_s[row]
    turned = difference("quaternion", episode[flight.orientation][row], episode[flight.orientation][: row + 1])
    older = np.flatnonzero(
        (np.linalg.norm(turned, axis=1) > _SAME_TURN_RAD) | (bool(links) & (elapsed_s < -_LINKS_SINCE_S))
    )
    recent = slice(min(int(older[-1]) + 1, row + 1 - _FEWEST_ROWS) if older.size else 0, row + 1)
    order = 2 if links and row + 1 - recent.start > _FEWEST_ROWS else 1
    velocity = state[model.nq :]
    rates = [(scenario.observed_channel(flight.orientation), turned)]
    rates += [(link, continuous(model, link, episode[link.channel.name][: row + 1], "flight")) for link in links]
    for observed, angles in rates:
        velocity[list(observed.dofs)] = np.polyfit(elapsed_s[recent], angles[recent], order)[-2]
    fallen = 0.5 * elapsed_s[:, None] ** 2 * model.opt.gravity
    place = list(scenario.observed_channel(flight.position).dofs)
    if not links and np.linalg.norm(model.body_ipos[body]) < _IN_THE_ORIGIN_M:
        velocity[place] = np.polyfit(elapsed_s, episode[flight.position][: row + 1] - fallen, 1)[0]
        return state
    velocity[place] = 0.0
    # What the origin has to do so that the centre of mass flies as it was seen to.
    centres = _centres_of_mass(scenario, episode, body, row) - fallen
    velocity[place] = np.polyfit(elapsed_s, centres, 1)[0] - _centre_velocity(model, state, body)
    return state


def _links(scenario: Scenario, flight: FreeFlight, body: int) -> list[Observed]:
    """The channels that observe the joints of what flies; none for one rigid body."""
    model = scenario.base_model
    inside = {dof for dof in range(model.nv) if model.body_rootid[model.dof_bodyid[dof]] == body}
    for name in (flight.position, flight.orientation):
        inside -= set(scenario.observed_channel(name).dofs)
    found = [each for each in scenario.observed if inside & set(each.dofs)]
    unseen = sorted(inside - {dof for each in found for dof in each.dofs})
    if unseen:
        names = ", ".join(model.joint(int(model.dof_jntid[dof])).name or "(unnamed)" for dof in unseen)
        raise ScenarioError(
            got=f"a flying body with joints that no channel observes: {names}",
            expected="a channel for each of them, as its centre of mass depends on them all",
            where=f"scenario {scenario.name}, start free_flight",
            next_step="Record these joints, or choose another start.",
        )
    return found


def _centres_of_mass(scenario: Scenario, episode: Episode, body: int, row: int) -> np.ndarray:
    """Where the centre of mass of a body and its links was in the rows up to one, [row + 1, 3]."""
    model, found = scenario.base_model, np.zeros((row + 1, 3))
    data = mujoco.MjData(model)
    for index in range(row + 1):
        for observed in scenario.observed:
            if observed.qpos:
                data.qpos[list(observed.qpos)] = episode[observed.channel.name][index]
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        found[index] = data.subtree_com[body]
    return found


def _centre_velocity(model: mujoco.MjModel, state: np.ndarray, body: int) -> np.ndarray:
    """Velocity [3] of the centre of mass of a body and its links in a state."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = state[: model.nq], state[model.nq : model.nq + model.nv]
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_comVel(model, data)
    mujoco.mj_subtreeVel(model, data)
    return data.subtree_linvel[body].copy()
