"""Where what flies has joints, or its centre of mass beside its origin, the start's velocities are still right."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "sessions"))
from hinged_bars import elbow

from rsr.common.errors import ScenarioError
from rsr.scenarios import load_scenario
from rsr.scenarios.channels.starts import starts_of
from rsr.scenarios.metrics import Evaluation, FreeFlight
from rsr.scenarios.scenario import Scenario
from rsr.sessions import Episode
from rsr.simulators import MujocoSimulator

ROWS = 30


def judged_in_flight(scenario: Scenario, orientation: str) -> Scenario:
    flight = FreeFlight(scenario.gap_channel, orientation, 0.3, 3)
    return replace(scenario, evaluation=Evaluation(("free_flight",), (), free_flight=flight))


def flown(scenario: Scenario, spin, rate: float = 0.0) -> tuple[Episode, np.ndarray]:
    """A flight that falls below 0.3 m near its end, without noise, and its states."""
    start = np.zeros((1, scenario.state_size))
    nq = scenario.base_model.nq
    start[0, 2:4], start[0, nq : nq + 3], start[0, nq + 3 : nq + 6] = (0.42, 1.0), (0.5, -0.2, 0.1), spin
    start[0, nq + 6 :] = rate
    with MujocoSimulator(scenario) as simulator:
        states = simulator.rollout(start, np.zeros((1, ROWS, 0)), scenario.space.nominal)[0]
    values = {each.channel.name: states[:, list(each.qpos)] for each in scenario.observed}
    values |= {each.channel.name: states[:, [nq + dof for dof in each.dofs]] for each in scenario.velocities}
    return Episode(0, np.arange(ROWS + 1) * scenario.control_dt_s, values), states


def _half_a_step(scenario: Scenario) -> float:
    """A simulated fall is not quite a parabola: velocities gain what gravity does in half a physics step."""
    return 1.1 * 0.5 * 9.81 * scenario.base_model.opt.timestep


def test_the_centre_of_mass_of_two_bars_flies_and_not_the_first_ones_origin():
    scenario = judged_in_flight(elbow(), "link1_orientation")
    episode, states = flown(scenario, (1.0, 3.0, -2.0), rate=6.0)
    (start,) = starts_of(scenario, episode, "free_flight")
    speeds = slice(scenario.base_model.nq, None)
    np.testing.assert_allclose(start.state[speeds][:3], states[start.row, speeds][:3], atol=0.007)
    np.testing.assert_allclose(start.state[speeds][3:], states[start.row, speeds][3:], atol=0.15)
    elapsed_s = (episode.time_s - episode.time_s[start.row])[: start.row + 1]
    fallen = 0.5 * elapsed_s[:, None] ** 2 * scenario.base_model.opt.gravity
    origin = np.polyfit(elapsed_s, episode["link1_position"][: start.row + 1] - fallen, 1)[0]
    assert np.linalg.norm(origin - states[start.row, speeds][:3]) > 0.025, "the origin's own parabola is wrong"


def test_more_than_half_a_turn_of_flight_is_counted_right():
    scenario = judged_in_flight(load_scenario("cube_toss"), "cube_orientation")
    episode, states = flown(scenario, (0.0, 0.0, 25.0))
    (start,) = starts_of(scenario, episode, "free_flight")
    np.testing.assert_allclose(start.state[7:], states[start.row, 7:], atol=_half_a_step(scenario))


def test_a_body_with_its_centre_of_mass_beside_its_origin():
    cube = load_scenario("cube_toss")
    model = mujoco.MjModel.from_xml_path(str(cube.mjcf))
    model.body_ipos[1] = [0.02, 0.01, 0.0]
    scenario = judged_in_flight(replace(cube, base_model=model, bindings=()), "cube_orientation")
    episode, states = flown(scenario, (0.0, 0.0, 9.0))
    (start,) = starts_of(scenario, episode, "free_flight")
    np.testing.assert_allclose(start.state[7:], states[start.row, 7:], atol=_half_a_step(scenario))


def test_joints_that_nobody_observes_refuse_the_start():
    blind = replace(elbow(), observed=elbow().observed[:2])
    scenario = judged_in_flight(blind, "link1_orientation")
    episode, _ = flown(judged_in_flight(elbow(), "link1_orientation"), (1.0, 0.0, 0.0))
    with pytest.raises(ScenarioError, match="joints that no channel observes: elbow"):
        starts_of(scenario, episode, "free_flight")
