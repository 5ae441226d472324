"""Actuators with internal state: windows begin with what the commands before them left, in C and in MJX."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from sensing_arm import recorded_runs, sensing_arm

import rsr
from rsr.common.errors import ScenarioError
from rsr.scenarios import residuals, rms
from rsr.simulators import MujocoSimulator

TIME_CONSTANT_S = 0.08
DELAYED = {
    "damping": rsr.scale("joint.damping"),
    "gain": rsr.scale("actuator.position_gain"),
    "delay": rsr.delay(upper=0.06),
}


def _window_errors(scenario, runs, params, steps: int = 15) -> float:
    """RMS error of joint positions over windows cut from runs, simulated with given parameters."""
    session = rsr.session_from_arrays(scenario, runs)
    values, errors = scenario.space.vector(params), []
    with MujocoSimulator(scenario, threads=1) as simulator:
        for episode in session.episodes:
            rows = range(scenario.history_steps, len(episode) - steps, steps)
            states = simulator.rollout(
                scenario.states(episode)[list(rows)],
                np.array([scenario.commands_from(episode, row, steps) for row in rows]),
                values,
            )
            real = {"q": np.array([episode["q"][row : row + steps + 1] for row in rows])}
            errors.append(residuals(scenario, real, scenario.measure(states))["q"].reshape(-1, 2))
    return rms(np.concatenate(errors))


def test_a_filtered_servo_at_its_true_parameters_has_no_gap(tmp_path):
    scenario = sensing_arm(tmp_path, timeconst=TIME_CONSTANT_S, tune=DELAYED)
    truth = {"damping": 1.2, "gain": 0.9, "delay": 0.03}
    runs = recorded_runs(scenario, truth, 3, 3.0, seed=3, noisy=False)
    # 0.197 rad where windows began with activations of 0; now what 5 time constants forget, and smoothed starts.
    assert _window_errors(scenario, runs, truth) < 0.002
    assert _window_errors(scenario, runs, {**truth, "gain": 0.5}) > 0.01


def test_a_window_begins_with_the_activation_that_mujoco_had(tmp_path):
    for dynamics in ("filter", "filterexact"):
        path = tmp_path / "one.xml"
        path.write_text(
            f"""<mujoco><option timestep="0.002"/><worldbody><body><joint name="j" damping="0.1"/>
            <geom size="0.1" mass="1"/></body></worldbody><actuator><general name="a" joint="j" dyntype="{dynamics}"
            dynprm="0.05" gainprm="3" biastype="affine" biasprm="0 -3 -0.1" ctrlrange="-1 1"/></actuator></mujoco>"""
        )
        scenario = rsr.Scenario.from_mjcf(
            path,
            dt=0.02,
            measured={"q": rsr.joints("j", noise=0.001)},
            command={"u": rsr.actuators("a")},
            tune={"damping": rsr.scale("joint.damping")},
        )
        assert scenario.history_steps == 13, "five time constants of 50 ms at 20 ms"
        commands = np.random.default_rng(0).uniform(-1.4, 1.4, (60, 1))
        data = mujoco.MjData(scenario.base_model)
        states = []
        for command in commands:
            states.append(np.concatenate([data.qpos, data.qvel, data.act]))
            data.ctrl[:] = command
            mujoco.mj_step(scenario.base_model, data, scenario.substeps)
        window = np.concatenate([states[40][:2], [0.0]])[None]
        with MujocoSimulator(scenario, threads=1) as simulator:
            after = simulator.rollout(window, commands[None, 27:50], scenario.space.nominal)
        # exp(-5) of a command of 1 is forgotten at the start.
        np.testing.assert_allclose(after[0, 1:10, 2], np.array(states[41:50])[:, 2], atol=0.007)
        np.testing.assert_allclose(after[0, 1:10, :2], np.array(states[41:50])[:, :2], atol=0.03)


@pytest.mark.parametrize(
    ("actuator", "message"),
    [
        (
            '<intvelocity name="turn" joint="j" kp="3" actrange="-1 1"/>',
            "Scenario.from_mjcf: got actuator 'turn' with an internal state of dyntype integrator; expected none, or a "
            "filter (dyntype filter or filterexact, timeconst), whose state follows from past commands. Replace it, "
            "for example by <position timeconst> or <general dyntype='filterexact'>.",
        ),
        (
            '<position name="turn" joint="j" kp="3" delay="0.01" nsample="8"/>',
            "Scenario.from_mjcf: got delays in the MJCF (turn); expected delays as parameters, which a calibration can "
            "estimate. Remove `delay` and `nsample` there; add a parameter with `delays: command` or `sensor_delay: "
            "CHANNEL`.",
        ),
    ],
)
def test_states_that_commands_do_not_determine_are_refused_by_name(tmp_path, actuator, message):
    path = tmp_path / "one.xml"
    path.write_text(
        f"""<mujoco><worldbody><body><joint name="j" damping="0.1"/><geom size="0.1" mass="1"/></body></worldbody>
        <actuator>{actuator}</actuator></mujoco>"""
    )
    with pytest.raises(ScenarioError) as error:
        rsr.Scenario.from_mjcf(
            path,
            dt=0.02,
            measured={"q": rsr.joints("j", noise=0.001)},
            command={"u": rsr.actuators("turn")},
            tune={"damping": rsr.scale("joint.damping")},
        )
    assert str(error.value) == message


@pytest.mark.slow
def test_mjx_begins_and_senses_as_c_does_and_its_derivatives_are_exact(tmp_path):
    from rsr.simulators.mjx import MjxSimulator, check_gradients

    sensors = {
        "imu": rsr.sensor("gyro", noise=0.01),
        "acceleration": rsr.sensor("accelerometer", noise=0.05),
        "turn": rsr.sensor("tool_quat", noise=0.002),
        "torque": rsr.sensor("shoulder_torque", noise=0.05),
    }
    late = rsr.sensor_delay("imu", upper=0.05)
    scenario = sensing_arm(tmp_path, sensors, timeconst=0.02, tune=DELAYED | {"late": late})
    rng = np.random.default_rng(0)
    states = np.zeros((3, scenario.state_size))
    states[:, :4] = rng.uniform(-0.5, 0.5, (3, 4))
    actions = rng.uniform(-0.5, 0.5, (3, scenario.history_steps + 6, 2))
    params = scenario.space.vector({"damping": 1.1, "gain": 0.9, "delay": 0.013, "late": 0.01})
    simulator = MjxSimulator(scenario, threads=1)
    with MujocoSimulator(scenario, threads=1) as reference:
        expected = reference.rollout(states, actions, params)
    np.testing.assert_allclose(simulator.rollout(states, actions, params), expected, atol=1e-8)
    health = check_gradients(simulator, states, actions, params)
    assert health.healthy, str(health)
    assert "late" not in str(health)  # the imu's readings depend on it, not the simulation: nothing to say


def test_mjx_refuses_sensors_that_it_cannot_differentiate_and_names_another_method(tmp_path):
    from rsr.simulators.mjx import MjxSimulator

    scenario = sensing_arm(tmp_path, {"wrist": rsr.sensor("wrist_torque", noise=0.1)})
    with pytest.raises(ScenarioError) as error:
        MjxSimulator(scenario)
    assert str(error.value) == (
        "scenario sensing_arm, simulator mjx: got sensor 'wrist_torque' of type torque; expected features that MuJoCo "
        "MJX simulates and differentiates. Calibrate it with method `cmaes`, which needs no derivatives, or change the "
        "MJCF."
    )
