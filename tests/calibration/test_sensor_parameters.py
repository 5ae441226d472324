"""Errors of sensors that all runs share come back in their intervals: pose, delay, gain and bias.

The recordings are of plain MuJoCo, which delays readings by physics steps and knows nothing of how a fit does it.
"""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from sensing_arm import MJCF

import rsr
from rsr.common.errors import ScenarioError
from rsr.scenarios import Scenario, load_scenario
from rsr.scenarios.channels.sensors import readings, start_states, unscaled
from rsr.sessions import Episode
from rsr.simulators import MujocoSimulator

DT_S = 0.01
CAMERA = '<camera name="eye" pos="0.1 -1 1.2" xyaxes="1 0 0 0 0.2 1"/>'
SEEN = '<framepos name="seen" objtype="site" objname="tool" reftype="camera" refname="eye"/>'


def arm(folder, measured, tune) -> Scenario:
    """The sensing arm with a camera that sees its tool."""
    path = folder / "arm.xml"
    mjcf = MJCF.format(timeconst="").replace("<worldbody>", f"<worldbody>{CAMERA}")
    path.write_text(mjcf.replace("</sensor>", f"{SEEN}</sensor>"))
    return rsr.Scenario.from_mjcf(
        path,
        dt=DT_S,
        measured={"q": rsr.joints("shoulder", "elbow", noise=0.0005), **measured},
        command={"u": rsr.actuators("shoulder", "elbow")},
        tune={"gain": rsr.scale("actuator.position_gain", prior=0.2), **tune},
        window_s=0.4,
    )


def runs_of(scenario: Scenario, truth: dict[str, float], late_s: float = 0.0, gains=None, biases=None) -> list[dict]:
    """Runs of 2 s under sums of sines; what `measured` but q reads is late, and then scaled."""
    model = scenario.model(scenario.space.vector(truth))
    rng, runs, substeps = np.random.default_rng(3), [], scenario.substeps
    late = round(late_s / model.opt.timestep)
    for _ in range(6):
        data = mujoco.MjData(model)
        times = DT_S * np.arange(201)
        rate, phase = rng.uniform(3.0, 12.0, (3, 2)), rng.uniform(0.0, 6.0, (3, 2))
        commands = 0.3 * (np.sin(rate * times[:, None, None] + phase) - np.sin(phase)).sum(axis=1)
        shown, angles = [], []
        for command in commands:
            data.ctrl[:] = command
            for _ in range(substeps):
                mujoco.mj_forward(model, data)
                shown.append(data.sensordata.copy())
                mujoco.mj_step(model, data)
            angles.append(data.qpos.copy())
        mujoco.mj_forward(model, data)
        shown.append(data.sensordata.copy())
        # Row i shows the state after command i; a command is in force from its row on.
        rows = substeps * np.arange(1, 202)
        run = {"q": np.array(angles), "u": np.concatenate([commands[1:], commands[-1:]])}
        for observed in scenario.observed:
            name = observed.channel.name
            if observed.sensor_columns:
                run[name] = np.array(shown)[np.maximum(rows - late, 0)][:, list(observed.sensor_columns)]
                run[name] = (gains or {}).get(name, 1.0) * run[name] + (biases or {}).get(name, 0.0)
            run[name] = run[name] + observed.noise * rng.normal(size=run[name].shape)
        runs.append(run)
    return runs


def check_recovered(fit, truth: dict[str, float]) -> None:
    for name, value in truth.items():
        estimate = fit.calibration.estimates[name]
        assert estimate.lower <= value <= estimate.upper, (name, value, estimate)
        assert estimate.verdict in ("identified", "weak"), (name, estimate)


@pytest.mark.slow
def test_an_imu_that_is_turned_and_late(tmp_path):
    angle = np.radians(3.0)
    measured = {"gyro": rsr.sensor("gyro", noise=0.02), "acceleration": rsr.sensor("accelerometer", noise=0.1)}
    tune = {
        f"imu_{axis}": rsr.absolute(f"site.turn_{axis}", "tool", lower=-0.3, upper=0.3, prior=0.1, linear=True)
        for axis in "xyz"
    }
    tune["late"] = rsr.sensor_delay("gyro", "acceleration", lower=-0.02, upper=0.04)
    scenario = arm(tmp_path, measured, tune)
    placed = {"gain": 0.9, "imu_x": 0.01, "imu_y": angle, "imu_z": -0.02}
    fit = rsr.calibrate(scenario, runs_of(scenario, placed, late_s=0.012), method="sysid")
    check_recovered(fit, {**placed, "late": 0.012})


@pytest.mark.slow
def test_a_torque_sensor_with_gain_and_bias(tmp_path):
    measured = {"torque": rsr.sensor("wrist_torque", noise=0.005)}
    bias = rsr.sensor_bias("torque.wrist_torque_y", upper=0.5, unit="N m")
    scenario = arm(tmp_path, measured, {"torque_gain": rsr.sensor_gain("torque"), "torque_bias": bias})
    ours = {"gains": {"torque": 1.15}, "biases": {"torque": np.array([0.0, 0.08, 0.0])}}
    fit = rsr.calibrate(scenario, runs_of(scenario, {"gain": 0.9}, **ours), method="sysid")
    check_recovered(fit, {"gain": 0.9, "torque_gain": 1.15, "torque_bias": 0.08})


@pytest.mark.slow
def test_a_camera_that_is_off_by_a_centimetre(tmp_path):
    measured = {"seen": rsr.sensor("seen", noise=0.002)}
    at = {"x": 0.1, "y": -1.0, "z": 1.2}
    tune = {
        f"eye_{axis}": rsr.absolute(f"camera.{axis}", "eye", lower=x - 0.1, upper=x + 0.1, prior=0.02, linear=True)
        for axis, x in at.items()
    }
    tune["eye_turn"] = rsr.absolute("camera.turn_z", "eye", lower=-0.2, upper=0.2, prior=0.05, linear=True)
    scenario = arm(tmp_path, measured, tune)
    truth = {"gain": 0.9, "eye_x": 0.11, "eye_y": -1.0, "eye_z": 1.193, "eye_turn": 0.02}
    fit = rsr.calibrate(scenario, runs_of(scenario, truth), method="sysid")
    check_recovered(fit, truth)


TORQUE = {"torque": rsr.sensor("wrist_torque", noise=0.005)}
SCALED = {
    "all_gain": rsr.sensor_gain("torque"),
    "angle_gain": rsr.sensor_gain("q"),
    "elbow_bias": rsr.sensor_bias("q.elbow", upper=0.2, unit="rad"),
    "late": rsr.sensor_delay("q", lower=-0.02, upper=0.02),
}


def test_what_a_sensor_shows_is_undone_in_recordings_and_in_initial_states(tmp_path):
    scenario = arm(tmp_path, TORQUE, SCALED)
    values = scenario.space.vector({"all_gain": 1.2, "angle_gain": 0.8, "elbow_bias": 0.05, "late": 0.01})
    rng = np.random.default_rng(0)
    states = np.cumsum(rng.normal(size=(1, 5, scenario.state_size)), axis=1)
    true = scenario.measure(states)
    shown = readings(scenario, true, values)
    np.testing.assert_allclose(shown["q"][0, 1:], 0.8 * true["q"][0, :-1] + [0.0, 0.05])
    np.testing.assert_allclose(shown["torque"], 1.2 * true["torque"])
    recorded = Episode(0, DT_S * np.arange(5), {name: rows[0] for name, rows in shown.items()})
    corrected = unscaled(scenario, recorded, values)
    np.testing.assert_allclose(corrected["torque"], true["torque"][0])
    np.testing.assert_allclose(corrected["q"][1:], true["q"][0, :-1])
    around = states.copy()
    for observed in scenario.observed:
        around[..., list(observed.places)] = shown[observed.channel.name]
    around[..., 2:4] *= 0.8  # velocities of recorded positions, scaled with them and as late
    around[:, 1:, 2:4] = around[:, :-1, 2:4].copy()
    np.testing.assert_allclose(start_states(scenario, around[:, 2], around[:, 1:4], values), states[:, 2])


def test_a_saved_scenario_has_the_same_sensor_parameters(tmp_path):
    scenario = arm(tmp_path, TORQUE, SCALED)
    loaded = load_scenario(scenario.save(tmp_path / "saved"))
    assert loaded.sensor_scales == scenario.sensor_scales
    assert loaded.sensor_delays == scenario.sensor_delays


@pytest.mark.parametrize(
    ("measured", "tune", "message"),
    [
        (
            {"turn": rsr.sensor("tool_quat", noise=0.01)},
            {"off": rsr.sensor_gain("turn")},
            "Scenario.from_mjcf, parameter off, sensor_gain: got the gain of an orientation; expected a channel of "
            "numbers; where a sensor is mounted wrong, tune turn_x, turn_y, turn_z of its site. Correct the scenario's "
            "YAML file.",
        ),
        (
            {"turn": rsr.sensor("tool_quat", noise=0.01)},
            {"off": rsr.sensor_bias("q.wrist", upper=1.0, unit="rad")},
            "Scenario.from_mjcf, parameter off, sensor_bias: got 'q.wrist'; expected one of q, turn, q.shoulder, "
            "q.elbow, turn.tool_quat_w, turn.tool_quat_x, turn.tool_quat_y, turn.tool_quat_z. Correct the scenario's "
            "YAML file.",
        ),
        (
            {"torque": rsr.sensor("wrist_torque", noise=0.1, bias_std=0.1)},
            {"off": rsr.sensor_gain("torque")},
            "Scenario.from_mjcf, parameter off, sensor_gain: got a gain of torque, which has `bias_std`; expected one "
            "of the two, as the bias of a run would be scaled by the gain of all. Correct the scenario's YAML file.",
        ),
        (
            TORQUE,
            {"off": rsr.sensor_gain("torque"), "more": rsr.sensor_gain("torque.wrist_torque_x")},
            "Scenario.from_mjcf, parameter more: got a second gain of torque; expected one a column. Correct the "
            "scenario's YAML file.",
        ),
    ],
)
def test_a_sensor_parameter_that_cannot_be_is_refused(tmp_path, measured, tune, message):
    with pytest.raises(ScenarioError) as error:
        arm(tmp_path, measured, tune)
    assert str(error.value) == message


def test_turned_sites_and_cameras_are_where_mujoco_would_compile_them(tmp_path):
    """A site that was compiled to the pose of its body, a camera, and a body; each against an MJCF that says it."""
    tune = {
        "x": rsr.absolute("site.x", "tool", lower=0.1, upper=0.5),
        "site_y": rsr.absolute("site.turn_y", "tool", lower=-1, upper=1, linear=True),
        "site_z": rsr.absolute("site.turn_z", "tool", lower=-1, upper=1, linear=True),
        "eye_x": rsr.absolute("camera.turn_x", "eye", lower=-1, upper=1, linear=True),
        "fore_x": rsr.absolute("body.turn_x", "fore", lower=-1, upper=1, linear=True),
    }
    measured = {"gyro": rsr.sensor("gyro", noise=0.02), "seen": rsr.sensor("seen", noise=0.02)}
    scenario = arm(tmp_path, measured, tune)
    values = {"gain": 1.0, "x": 0.2, "site_y": 0.3, "site_z": -0.2, "eye_x": 0.1, "fore_x": 0.4}
    spec = scenario.spec()
    spec.site("tool").pos[0] = 0.2
    spec.site("tool").quat = turned(turned([1, 0, 0, 0], 1, 0.3), 2, -0.2)
    spec.camera("eye").quat = turned(scenario.base_model.cam_quat[0], 0, 0.1)
    spec.camera("eye").alt.type = mujoco.mjtOrientation.mjORIENTATION_QUAT
    spec.body("fore").quat = turned([1, 0, 0, 0], 0, 0.4)
    expected = spec.compile()
    data = mujoco.MjData(expected)
    rng = np.random.default_rng(0)
    start, commands = np.zeros((1, scenario.state_size)), rng.uniform(-1, 1, (1, 20, 2))
    with MujocoSimulator(scenario, threads=1) as simulator:
        states = simulator.rollout(start, commands, scenario.space.vector(values))
    for command in commands[0]:
        data.ctrl[:] = command
        mujoco.mj_step(expected, data, scenario.substeps)
    mujoco.mj_forward(expected, data)
    measured = scenario.measure(states[0, -1])
    for name in ("gyro", "seen"):
        np.testing.assert_allclose(measured[name], data.sensordata[list(scenario.sensor_columns(name))], atol=1e-9)


def turned(quaternion, axis: int, angle: float) -> np.ndarray:
    turn, product = np.zeros(4), np.zeros(4)
    mujoco.mju_axisAngle2Quat(turn, np.eye(3)[axis], angle)
    mujoco.mju_mulQuat(product, np.array(quaternion, float), turn)
    return product
