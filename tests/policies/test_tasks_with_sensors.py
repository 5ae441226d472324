"""Worlds of a task whose channels read MuJoCo's sensors and whose servos have internal state."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from own_arm import write_own_arm

import rsr
from rsr.common.progress import ignore
from rsr.environments import World
from rsr.environments.gymnasium import TaskEnv
from rsr.environments.vector import TaskVecEnv
from rsr.realities import CollectionPlan, StandIn
from rsr.scenarios import Scenario, load_scenario
from rsr.simulators import MujocoSimulator

CHANNEL = "  tip: {columns: [x, y, z], unit: m, frame: world, reads: {sensor: [tip]}, noise: 0.001}\n  q_goal:"
SENSOR = """
adds:
  lower: |
    <site name="tip" pos="0.25 0 0"/>
  mjcf: |
    <sensor><framepos name="tip" objtype="site" objname="tip"/></sensor>
"""


def sensing(folder) -> Scenario:
    path = write_own_arm(folder)
    path.write_text(path.read_text().replace("  q_goal:", CHANNEL) + SENSOR)
    arm = (folder / "arm.xml").read_text()
    (folder / "arm.xml").write_text(arm.replace('kp="25"', 'kp="25" timeconst="0.08"'))
    return load_scenario(path)


def test_a_world_reads_sensors_where_it_stands(tmp_path):
    scenario = sensing(tmp_path)
    model, rng = scenario.base_model, np.random.default_rng(1)
    data = mujoco.MjData(model)
    with World.simulated(scenario, scenario.space.nominal, 4) as world:
        world.place(np.arange(4), world.task.reset(rng, 4))
        for _ in range(15):
            for copy in range(4):
                data.qpos[:] = world.states[copy, : model.nq]
                mujoco.mj_kinematics(model, data)
                np.testing.assert_allclose(world.channels["tip"][copy], data.site("tip").xpos, atol=1e-12)
            world.step(rng.uniform(-1, 1, (4, 3)))


def test_filtered_servos_begin_at_rest_and_one_copy_goes_the_way_of_many(tmp_path):
    scenario = sensing(tmp_path)
    single = TaskEnv(scenario, noisy=False)
    batched = TaskVecEnv(scenario, scenario.space.nominal, 1, seed=3, stagger=False, noisy=False)
    seen, _ = single.reset(seed=3)
    np.testing.assert_allclose(batched.reset()[0], seen)
    rng = np.random.default_rng(2)
    for _ in range(20):
        action = rng.uniform(-1, 1, 3)
        others = batched.step(action[None])[0]
        np.testing.assert_allclose(others[0], single.step(action)[0], atol=1e-5)
    batched.close()


def test_the_stand_in_records_the_sensor(tmp_path):
    class Still:
        def act(self, observation: np.ndarray) -> np.ndarray:
            return np.zeros((len(observation), 3))

    session = StandIn(sensing(tmp_path), 2).collect(Still(), CollectionPlan("session-001", 2, seed=1), ignore)
    tips = np.stack([episode["tip"][0] for episode in session.episodes])
    assert (np.linalg.norm(tips - [0.0, 0.0, 1.0], axis=1) < 0.56).all()
    assert np.ptp(tips, axis=0).max() > 1e-3


LATE = """parameters:
  control_delay:
    {nominal: 0.03, lower: 0.0, upper: 0.1, unit: s, scale: linear, unit_step: 0.02, prior_std: 1.0, delays: command}
  torque_gain: {nominal: 1.0, lower: 0.3, upper: 3.0, unit: "1", prior_std: 0.3, sensor_gain: torque}
"""
TORQUES = """
adds:
  mjcf: |
    <sensor>
      <jointactuatorfrc name="base" joint="base"/><jointactuatorfrc name="shoulder" joint="shoulder"/>
      <jointactuatorfrc name="elbow" joint="elbow"/>
    </sensor>
"""
MEASURED = (
    '  torque: {columns: [base, shoulder, elbow], unit: "N m", frame: joint, '
    "reads: {sensor: [base, shoulder, elbow]}, noise: 0.05}\n  q_goal:"
)


def driven(folder) -> Scenario:
    """The arm with torques that depend on the command, which acts 0.6 control steps after it was sent."""
    path = write_own_arm(folder)
    text = path.read_text().replace("  q_goal:", MEASURED).replace("parameters:\n", LATE)
    path.write_text(text + TORQUES)
    return load_scenario(path)


def recorded(scenario: Scenario, values: np.ndarray, rows: int, copies: int) -> tuple[np.ndarray, ...]:
    """States and torques [B, T + 1, ...] of a world under setpoints [B, T, 3] that change with each row."""
    rng = np.random.default_rng(4)
    commands = np.cumsum(rng.uniform(-0.15, 0.15, (copies, rows, 3)), axis=1)
    states, torques = [], []
    with World.simulated(scenario, values, copies) as world:
        world.place(np.arange(copies), world.task.reset(rng, copies))
        held = world.command.copy()
        for row in range(rows + 1):
            states.append(world.states.copy())
            torques.append(scenario.measure(world.states, world.sensordata)["torque"])
            if row < rows:
                world.send(commands[:, row])
    before = np.repeat(held[:, None], scenario.history_steps, axis=1)
    return np.stack(states, axis=1), np.stack(torques, axis=1), np.concatenate([before, commands], axis=1)


def test_worlds_and_simulators_read_torques_under_the_same_command(tmp_path):
    scenario = driven(tmp_path)
    states, torques, commands = recorded(scenario, scenario.space.nominal, 12, 2)
    begun = np.concatenate([states[:, 0], np.zeros((2, scenario.state_size - states.shape[-1]))], axis=1)
    with MujocoSimulator(scenario) as simulator:
        simulated = scenario.measure(simulator.rollout(begun, commands, scenario.space.nominal))["torque"]
    assert np.ptp(torques[:, 1:]) > 1.0
    np.testing.assert_allclose(torques[:, 1:], simulated[:, 1:], atol=1e-9)


def test_one_copy_reads_what_many_read(tmp_path):
    scenario = driven(tmp_path)
    single = TaskEnv(scenario, noisy=False)
    single.reset(seed=3)
    rng = np.random.default_rng(2)
    with World.simulated(scenario, scenario.space.nominal, 1) as world:
        world.place(np.arange(1), world.task.reset(np.random.default_rng(0), 1))
        single.place(world.task.reset(np.random.default_rng(0), 1))
        for _ in range(6):
            action = rng.uniform(-1, 1, 3)
            world.step(action[None])
            single.step(action)
            np.testing.assert_allclose(world.sensordata, single.sensordata, atol=1e-6)


@pytest.mark.slow
def test_the_hidden_gain_of_a_torque_sensor_comes_back(tmp_path):
    """Of a recording by a world whose commands are late by a time that is not known either."""
    scenario, rng = driven(tmp_path), np.random.default_rng(5)
    truth = {"control_delay": 0.03, "torque_gain": 1.15}
    states, torques, commands = recorded(scenario, scenario.space.vector(truth), 60, 6)
    sent = commands[:, scenario.history_steps :]
    sent = np.concatenate([sent, sent[:, -1:]], axis=1)
    angles = states[..., :3] + 0.002 * rng.normal(size=states[..., :3].shape)
    torques = 1.15 * torques + 0.05 * rng.normal(size=torques.shape)
    zero = np.zeros_like(sent)
    runs = [
        {"q": q, "q_set": u, "torque": torque, "action": each, "q_goal": each, "clipped": each[:, :1]}
        for q, u, torque, each in zip(angles, sent, torques, zero, strict=True)
    ]
    fit = rsr.calibrate(scenario, runs, method="sysid")
    for name, value in truth.items():
        estimate = fit.calibration.estimates[name]
        assert estimate.lower <= value <= estimate.upper, (name, estimate)
        assert estimate.verdict == "identified"
