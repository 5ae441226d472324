"""Sensors' delays, gains and biases that parameters state: what a policy sees in training shows them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import rsr
from rsr.environments.gymnasium import TaskEnv
from rsr.environments.vector import TaskVecEnv
from tests.simulators.test_effects import SCENARIO, SCENE, SERVOS, TASK

SENSORS = """
  late: {nominal: 0.025, lower: 0, upper: 0.1, unit: s, prior_std: 1, scale: linear, unit_step: 0.01, sensor_delay: q}
  gain: {nominal: 1.2, lower: 0.5, upper: 2, unit: "1", prior_std: 0.1, sensor_gain: q}
  bias: {nominal: 0.3, lower: -1, upper: 1, unit: rad, prior_std: 1, scale: linear, unit_step: 0.1,
    sensor_bias: q.lower}
"""


def scenario_of(folder):
    (folder / "scene.xml").write_text(SCENE.format(actuators=SERVOS))
    text = SCENARIO.format(parameters=SENSORS, effects="  {}").replace("effects:\n  {}", "")
    text = text.replace("0.0005", "0.000000001")
    (folder / "scenario.yaml").write_text(text)
    (folder / "task.py").write_text(TASK)
    return rsr.load_scenario(folder)


def test_the_vector_environment_shows_what_was_with_gain_and_bias(tmp_path):
    scenario = scenario_of(tmp_path)
    params = np.array([[0.025, 1.2, 0.3], [0.0, 1.0, -0.5]])  # of each copy its own
    with_errors = TaskVecEnv(scenario, params, count=2, stagger=False, threads=1)
    seen, true = [with_errors.reset()], [with_errors.world.states[:, :2]]
    for _ in range(20):
        seen.append(with_errors.step(np.ones((2, 2)))[0])
        true.append(with_errors.world.states[:, :2].copy())
    true, seen = np.stack(true, axis=1), np.stack(seen, axis=1)
    late = 0.5 * (true[0, 8:-2] + true[0, 7:-3])  # 2.5 steps of 10 ms
    np.testing.assert_allclose(seen[0, 10:], 1.2 * late + [0.0, 0.3], atol=1e-6)
    np.testing.assert_allclose(seen[0, 0], 1.2 * true[0, 0] + [0.0, 0.3], atol=1e-6)
    np.testing.assert_allclose(seen[1], true[1] + [0.0, -0.5], atol=1e-6)
    assert np.abs(true[0, -1] - true[0, 0]).max() > 0.1


def test_a_restored_environment_goes_on_with_the_same_readings(tmp_path):
    scenario = scenario_of(tmp_path)
    scenario = replace(scenario, observed=tuple(replace(each, noise=0.01) for each in scenario.observed))
    envs = TaskVecEnv(scenario, scenario.space.nominal, count=2, threads=1)
    envs.reset()
    for _ in range(5):
        envs.step(np.ones((2, 2)))
    middle = envs.snapshot()
    first = [envs.step(np.ones((2, 2)))[0] for _ in range(4)]
    envs.restore(middle)
    np.testing.assert_array_equal(first, [envs.step(np.ones((2, 2)))[0] for _ in range(4)])


def test_the_single_environment_shows_them_too(tmp_path):
    env = TaskEnv(scenario_of(tmp_path))
    seen, _ = env.reset(seed=0)
    np.testing.assert_allclose(seen, 1.2 * env.states[0, :2] + [0.0, 0.3], atol=1e-6)
    quiet = TaskEnv(scenario_of(tmp_path), noisy=False)
    np.testing.assert_allclose(quiet.reset(seed=0)[0], quiet.states[0, :2], atol=1e-12)
