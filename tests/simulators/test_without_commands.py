"""Scenes in which nothing is commanded: actions have no columns, and their number still says how long to simulate."""

import numpy as np

from rsr.scenarios import load_scenario
from rsr.simulators import MujocoSimulator, delay_weights, delayed


def test_a_thrown_cube_falls_as_it_should():
    scenario = load_scenario("cube_toss")
    steps, dt_s = 12, scenario.control_dt_s
    starts = np.zeros((3, 13))
    starts[:, 2], starts[:, 3] = [1.0, 2.0, 3.0], 1.0
    starts[:, 7] = [0.5, -0.5, 0.0]
    with MujocoSimulator(scenario) as simulator:
        states = simulator.rollout(starts, np.zeros((3, steps, 0)), scenario.space.nominal)
    assert states.shape == (3, steps + 1, 13)
    time_s = np.arange(steps + 1) * dt_s
    np.testing.assert_allclose(states[:, :, 0], starts[:, 7, None] * time_s, atol=1e-9)
    fallen = starts[:, 2, None] - states[:, :, 2]
    # MuJoCo's own step is half a time step ahead of the parabola.
    half_step_s = scenario.base_model.opt.timestep / 2
    np.testing.assert_allclose(fallen, np.tile(9.81 * time_s * (time_s / 2 + half_step_s), (3, 1)), atol=1e-9)


def test_parameters_may_differ_from_window_to_window():
    scenario = load_scenario("cube_toss")
    sliding = np.zeros(13)
    sliding[2], sliding[3], sliding[7] = 0.0524, 1.0, 1.0
    params = np.array([scenario.space.vector({"friction": value}) for value in (0.1, 0.3)])
    with MujocoSimulator(scenario) as simulator:
        states = simulator.rollout(np.array([sliding, sliding]), np.zeros((2, 20, 0)), params)
    lost = 1.0 - states[:, -1, 7]
    np.testing.assert_allclose(lost, 9.81 * params[:, 0] * 20 * scenario.control_dt_s, rtol=0.05)


def test_delays_of_nothing():
    weights = delay_weights(0.0, 0.01, 5, 2)[None]
    assert delayed(np.zeros((2, 9, 0)), weights).shape == (2, 35, 0)
