"""Channels that read sensors of the MJCF: recorded, simulated at rows of the control step, compared, fitted, saved."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from sensing_arm import MJCF, recorded_runs, sensing_arm

import rsr
from rsr.common.errors import ScenarioError
from rsr.scenarios import load_scenario, residuals
from rsr.simulators import MujocoSimulator

SENSORS = {
    "imu": rsr.sensor("gyro", noise=0.01),
    "acceleration": rsr.sensor("accelerometer", noise=0.05),
    "tool": rsr.sensor("tool_pos", noise=0.001),
    "turn": rsr.sensor("tool_quat", noise=0.002),
    "speed": rsr.sensor("shoulder_speed", "elbow_speed", noise=0.01),
    "torque": rsr.sensor("shoulder_torque", noise=0.05),
}


def test_readings_are_those_of_mj_forward_at_each_row(tmp_path):
    scenario = sensing_arm(tmp_path, SENSORS)
    rng = np.random.default_rng(0)
    commands = rng.uniform(-0.5, 0.5, (1, 8, 2))
    with MujocoSimulator(scenario, threads=1) as simulator:
        states = simulator.rollout(np.zeros((1, scenario.state_size)), commands, scenario.space.nominal)
    measured = scenario.measure(states[0])
    model = scenario.model(scenario.space.nominal)
    data = mujoco.MjData(model)
    for row in range(8):
        data.ctrl[:] = commands[0, row]
        mujoco.mj_step(model, data, scenario.substeps)
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(states[0, row + 1, :4], np.concatenate([data.qpos, data.qvel]), atol=1e-12)
        for name in SENSORS:
            expected = data.sensordata[list(scenario.sensor_columns(name))]
            np.testing.assert_allclose(measured[name][row + 1], expected, atol=1e-9, err_msg=name)
        given = scenario.measure(np.concatenate([data.qpos, data.qvel]), data.sensordata)
        np.testing.assert_allclose(given["torque"], measured["torque"][row + 1], atol=1e-9)


def test_units_columns_and_frames_follow_the_sensors(tmp_path):
    channels = {channel.name: channel for channel in sensing_arm(tmp_path, SENSORS).channels}
    assert channels["imu"].columns == ("gyro_x", "gyro_y", "gyro_z")
    assert channels["turn"].columns == ("tool_quat_w", "tool_quat_x", "tool_quat_y", "tool_quat_z")
    units = {name: (channels[name].unit, channels[name].frame) for name in SENSORS}
    assert units == {
        "imu": ("rad/s", "sensor"),
        "acceleration": ("m/s^2", "sensor"),
        "tool": ("m", "world"),
        "turn": ("1", "world"),
        "speed": ("rad/s", "joint"),
        "torque": ("N m", "joint"),
    }


def test_orientations_differ_by_rotation_vectors(tmp_path):
    scenario = sensing_arm(tmp_path, {"turn": rsr.sensor("tool_quat", noise=0.002)})
    half = 0.05
    real = {"q": np.zeros((1, 2)), "turn": np.array([[1.0, 0, 0, 0]])}
    turned = {"q": np.zeros((1, 2)), "turn": -np.array([[np.cos(half), 0, np.sin(half), 0]])}
    np.testing.assert_allclose(residuals(scenario, real, turned)["turn"], [[0, 2 * half, 0]], atol=1e-12)


def test_sensors_of_joint_positions_are_coordinates(tmp_path):
    scenario = sensing_arm(tmp_path, {"angles": rsr.sensor("elbow_angle", "shoulder_angle", noise=0.001)})
    assert scenario.observed_channel("angles").qpos == (1, 0)
    assert not scenario.has_sensors


def test_a_saved_scenario_reads_the_same_sensors(tmp_path):
    scenario = sensing_arm(tmp_path, SENSORS)
    loaded = load_scenario(scenario.save(tmp_path / "saved"))
    assert loaded.observed == scenario.observed
    assert loaded.history_steps == scenario.history_steps


@pytest.mark.slow
@pytest.mark.parametrize("method", ["cmaes", "adam"])
def test_torques_reveal_a_gain_that_positions_do_not(tmp_path, method):
    truth = {"damping": 1.3, "gain": 0.8}
    scenario = sensing_arm(tmp_path, {"torque": SENSORS["torque"], "imu": SENSORS["imu"], "turn": SENSORS["turn"]})
    runs = recorded_runs(scenario, truth, 6, 2.0, seed=1)
    fit = rsr.calibrate(scenario, runs, method=method)
    assert fit.values["gain"] == pytest.approx(0.8, rel=0.01)
    assert fit.values["damping"] == pytest.approx(1.3, rel=0.05)
    errors = rsr.evaluate(scenario, recorded_runs(scenario, truth, 4, 2.0, seed=2), fit)
    assert "torque" in str(errors)
    assert "imu" in str(errors)


@pytest.mark.parametrize(
    ("channel", "message"),
    [
        (
            rsr.sensor("gyroscope", noise=0.1),
            "Scenario.from_mjcf, channel s: got sensor 'gyroscope'; expected one of gyro, accelerometer, tool_pos, "
            "tool_quat, shoulder_speed, elbow_speed, shoulder_torque, shoulder_angle, elbow_angle, wrist_torque, "
            "clock. Correct the name in the scenario's YAML file or add it to the MJCF.",
        ),
        (
            rsr.sensor("gyro", "tool_quat", noise=0.1, unit="1"),
            "Scenario.from_mjcf, channel s: got an orientation among 2 sensors (gyro, tool_quat); expected a channel "
            "of its own for each framequat or ballquat: its differences are rotations. Correct the name in the "
            "scenario's YAML file or add it to the MJCF.",
        ),
        (
            rsr.sensor("gyro", "shoulder_torque", noise=0.1),
            "Scenario.from_mjcf, channel s: got no unit for gyro (gyro), shoulder_torque (jointactfrc); expected one "
            'unit a channel. Say it: rsr.sensor(..., unit="N").',
        ),
    ],
)
def test_what_is_wrong_with_a_sensor_is_said(tmp_path, channel, message):
    with pytest.raises(ScenarioError) as error:
        sensing_arm(tmp_path, {"s": channel})
    assert str(error.value) == message


def test_an_mjcf_without_sensors_says_so(tmp_path):
    path = tmp_path / "arm.xml"
    path.write_text(MJCF.format(timeconst="").split("<sensor>")[0] + "</mujoco>")
    with pytest.raises(ScenarioError, match="expected a sensor: the MJCF has none"):
        rsr.Scenario.from_mjcf(
            path,
            dt=0.02,
            measured={"s": rsr.sensor("gyro", noise=0.1)},
            tune={"damping": rsr.scale("joint.damping")},
        )


def test_a_recording_of_sensors_is_stored_and_a_swinging_tool_is_no_falling_body(tmp_path, capsys):
    from rsr.cli import main

    scenario = sensing_arm(tmp_path, SENSORS, timeconst=0.05)
    runs = recorded_runs(scenario, {"damping": 1.2, "gain": 0.9}, 4, 2.0, seed=1)
    rsr.write_session(tmp_path, rsr.session_from_arrays(scenario, runs, name="monday"))
    yaml = scenario.save(tmp_path / "saved")
    assert main(["check", str(tmp_path / "sensing_arm" / "monday"), "--scenario", str(yaml)]) == 0
    said = capsys.readouterr().out
    assert "free fall" not in said
    assert "acceleration" in said
