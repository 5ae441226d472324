"""Effects: C and MJX agree, derivatives are right, known parameters are found again, and what cannot be is refused."""

from __future__ import annotations

import inspect
from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import rsr
from rsr.common.errors import ScenarioError
from rsr.common.progress import ignore
from rsr.environments import World
from rsr.realities.reality import CollectionPlan
from rsr.realities.stand_in import StandIn
from rsr.scenarios.effects.effect_laws import LAWS, JointMotion
from rsr.simulators import MujocoSimulator
from rsr.simulators.mjx import MjxSimulator  # sets JAX to 64 bits

SCENE = """<mujoco><option timestep="0.002" integrator="implicitfast"/><worldbody>
<body><joint name="upper" axis="0 1 0" armature="0.01"/><geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.02"
 mass="0.4" contype="0" conaffinity="0"/>
<body pos="0 0 -0.2"><joint name="lower" axis="0 1 0" armature="0.005"/>
 <geom type="capsule" fromto="0 0 0 0 0 -0.15" size="0.02" mass="0.2" contype="0" conaffinity="0"/></body></body>
</worldbody><actuator>{actuators}</actuator></mujoco>"""
SERVOS = '<position name="a" joint="upper" kp="3" ctrlrange="-2 2"/><position name="b" joint="lower" kp="3"/>'
SCENARIO = """
name: two_servos
title: two servos
mjcf: scene.xml
control_dt_s: 0.01
episode_steps: 50
gap_channel: q
command: u
channels:
  q: {{columns: [upper, lower], unit: rad, frame: joint, reads: {{joints: [upper, lower]}}, noise: 0.0005}}
  u: {{columns: [a, b], unit: rad, frame: joint, stamp: held_until_next}}
  firmware: {{columns: [kp, enabled], unit: "1", frame: joint, stamp: held_until_next}}
parameters:
{parameters}
effects:
{effects}
"""
NUMBER = "  {}: {{nominal: {:g}, lower: {:g}, upper: {:g}, unit: '1', prior_std: 0.3}}"
SERVO = """
  servo:
    law: servo
    actuators: [a, b]
    arguments: {gain: {channel: firmware, column: kp, otherwise: 2}, enabled: {channel: firmware, column: enabled,
      otherwise: 1}, supply_v: 7.4, torque_constant: constant, resistance: [resistance, 4.0], dead_band: 0.01}
"""
GEARBOX = """
  gearbox:
    law: friction_m6
    joints: [upper, lower]
    arguments: {coulomb: coulomb, viscous: 0.02, stribeck: 0.02, stribeck_speed: 0.3, stribeck_power: 1.4,
      motor_load: 0.1, external_load: load, motor_load_stribeck: 0.05, external_load_stribeck: 0.08,
      motor_quadratic: 0.02, external_quadratic: 0.03}
  air: {law: drag, joints: lower, arguments: {quadratic: 0.002}}
"""
NAMES = {"constant": 0.5, "resistance": 3.0, "coulomb": 0.03, "load": 0.1}


def made(folder: Path, effects: str, names: dict[str, float] = NAMES, actuators: str = SERVOS, more: str = ""):
    parameters = "\n".join(NUMBER.format(name, value, value / 10, value * 10) for name, value in names.items()) + more
    (folder / "scene.xml").write_text(SCENE.format(actuators=actuators))
    (folder / "scenario.yaml").write_text(SCENARIO.format(parameters=parameters, effects=effects))
    return rsr.load_scenario(folder)


def windows(scenario, count: int = 8, steps: int = 30, seed: int = 0):
    """Starts [B, n] and commands [B, T, 4]: gains that differ, a torque that is switched off on the way."""
    rng = np.random.default_rng(seed)
    states = np.zeros((count, scenario.state_size))
    states[:, :4] = rng.normal(0.0, 0.5, (count, 4))
    commands = np.zeros((count, steps, 4))
    commands[:, :, :2] = rng.uniform(-1.5, 1.5, (count, 1, 2)) * np.sin(np.arange(steps) / 7)[:, None]
    commands[:, :, 2], commands[:, :, 3] = rng.choice([0.5, 1.0, 3.0], (count, 1)), 1.0
    commands[: count // 2, steps // 2 :, 3] = 0.0
    return states, commands


def check_mjx_against_c(scenario, states, commands, values, step: float) -> None:
    """Trajectories agree to 1e-8, and 98 % of the derivatives with differences of two such steps to 1e-4."""
    with MujocoSimulator(scenario, threads=1) as simulator:
        expected = simulator.rollout(states, commands, values)
        got, derivatives = MjxSimulator(scenario, threads=1).sensitivities(states, commands, values)
        assert np.abs(got - expected).max() < 1e-8
        coordinates = scenario.space.to_coordinates(values)
        for index in range(len(values)):
            moved = np.eye(len(values))[index] * step
            up, down = (
                simulator.rollout(states, commands, scenario.space.to_values(coordinates + sign * moved))
                for sign in (1, -1)
            )
            differences = (up - down) / (2 * step)
            close = np.abs(derivatives[..., index] - differences) <= 1e-4 * np.abs(differences).max()
            # Where a joint comes to rest, or teeth touch, between two steps, differences straddle a kink.
            assert close.mean() > 0.98, scenario.space.names[index]


@pytest.mark.slow
def test_c_and_mjx_agree_and_derivatives_are_right(tmp_path):
    scenario = made(tmp_path, SERVO + GEARBOX)
    states, commands = windows(scenario)
    values = scenario.space.vector({"coulomb": 0.04, "load": 0.15})
    check_mjx_against_c(scenario, states, commands, values, step=1e-5)


@pytest.mark.parametrize("name", LAWS)
def test_the_derivatives_of_every_law_are_those_of_differences(name):
    law, rng = LAWS[name], np.random.default_rng(1)
    wanted = [each.name for each in inspect.signature(law).parameters.values() if each.kind is each.KEYWORD_ONLY]
    motion, arguments = rng.uniform(0.2, 0.9, (5, 3)) * rng.choice([-1, 1], (5, 3)), rng.uniform(0.2, 0.9, len(wanted))

    def forces(xp, motion, arguments):
        found = law(xp, JointMotion(*motion, step_s=0.002), **dict(zip(wanted, arguments, strict=True)))
        rows = [each + 0.0 * motion[0] for each in (found.torque, found.damping, found.dry_friction)]
        return xp.stack(rows)

    np.testing.assert_allclose(forces(jnp, motion, arguments), forces(np, motion, arguments), rtol=1e-12)
    # Along a direction in motions and arguments at once.
    along = rng.normal(size=motion.shape), rng.normal(size=arguments.shape)
    slope = jax.jvp(lambda *given: forces(jnp, *given), (motion, arguments), along)[1]
    up, down = (forces(np, motion + sign * along[0], arguments + sign * along[1]) for sign in (1e-6, -1e-6))
    np.testing.assert_allclose(slope, (up - down) / 2e-6, rtol=1e-4, atol=1e-7)


def test_a_servo_that_never_saturates_is_mujocos_own(tmp_path):
    # k V / R - k^2 v / R with V = supply * gain * error is <position kp kv>.
    scenario = made(
        tmp_path, SERVO.replace(", dead_band: 0.01", ", largest_duty: 100").replace("[resistance, 4.0]", "3.0")
    )
    states, commands = windows(scenario)
    commands[..., 2:] = 1.0
    kp, kv = 7.4 * 0.5 / 3.0, 0.25 / 3.0
    plain = SCENE.format(
        actuators="".join(
            f'<position joint="{joint}" kp="{kp}" kv="{kv}" {limit}/>'
            for joint, limit in (("upper", 'ctrlrange="-2 2"'), ("lower", ""))
        )
    ).replace("implicitfast", "Euler")  # forces of effects are explicit
    (tmp_path / "scene.xml").write_text((tmp_path / "scene.xml").read_text().replace("implicitfast", "Euler"))
    scenario = rsr.load_scenario(tmp_path)
    model = mujoco.MjModel.from_xml_string(plain)
    with MujocoSimulator(scenario, threads=1) as simulator:
        got = simulator.rollout(states, commands, scenario.space.nominal)
    data = mujoco.MjData(model)
    for window in range(len(states)):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = states[window, :2], states[window, 2:4]
        for command in commands[window]:
            data.ctrl[:] = command[:2]
            mujoco.mj_step(model, data, 5)
        np.testing.assert_allclose(got[window, -1, :4], [*data.qpos, *data.qvel], atol=1e-10)


def test_a_joint_with_dry_friction_sticks(tmp_path):
    scenario = made(
        tmp_path, "  rub: {law: friction_m1, joints: [upper, lower], arguments: {coulomb: 5.0, viscous: 0}}"
    )
    states = np.zeros((1, scenario.state_size))
    states[0, :2] = 0.6, -0.3  # gravity and the servos pull, and are too weak
    with MujocoSimulator(scenario, threads=1) as simulator:
        rest = simulator.rollout(states, np.zeros((1, 600, 2)), scenario.space.nominal)
    # Within six seconds, at rest to what MuJoCo's stiffest impedance allows.
    assert np.abs(rest[0, :, :2] - states[0, :2]).max() < 5e-4


def test_world_and_environment_and_simulator_move_alike(tmp_path):
    scenario = made(tmp_path, SERVO + GEARBOX)
    (tmp_path / "task.py").write_text(TASK)
    scenario = rsr.load_scenario(tmp_path)
    from rsr.environments.gymnasium import TaskEnv
    from rsr.scenarios import Starts

    values = scenario.space.vector({"coulomb": 0.05})
    starts = Starts(qpos=np.array([[0.4, -0.2]]), goal={})
    command = np.array([[0.9, -0.5]])
    with World.simulated(scenario, values, 1) as world, MujocoSimulator(scenario, threads=1) as simulator:
        world.place(np.arange(1), starts)
        begun = np.concatenate([world.states[0], np.zeros(scenario.state_size - 4)])[None]
        for _ in range(20):
            world.send(command)
        expected = simulator.rollout(begun, np.tile(command, (1, 20, 1)), values)[0, -1]
        np.testing.assert_allclose(world.states[0], expected[:4], atol=1e-12)
    environment = TaskEnv(scenario, {"coulomb": 0.05}, noisy=False)
    environment.place(starts)
    for _ in range(20):
        environment._sent.send(command)
        environment._advance(environment._sent.in_force()[0])
    np.testing.assert_allclose(environment.states[0], expected[:4], atol=1e-12)


def test_a_stand_in_records_the_settings_that_it_was_given(tmp_path):
    (tmp_path / "task.py").write_text(TASK)
    scenario = made(tmp_path, SERVO + GEARBOX)

    class Holding:
        def act(self, observation):
            return np.full((len(observation), 2), 0.5)

    plan = CollectionPlan(session="one", episodes=2, seed=3, policy_sha256=None)
    session = StandIn(scenario, seed=5).collect(Holding(), plan, ignore)
    episode = session.episodes[0]
    np.testing.assert_array_equal(episode["firmware"], np.tile([2.0, 1.0], (len(episode), 1)))
    assert np.abs(episode["q"][-1] - episode["q"][0]).max() > 0.05


TASK = """
import numpy as np
import rsr

TASK = rsr.Task(
    terms=(rsr.ObservationTerm("q", 2, "rad", "joint", ("q",)),),
    goal=(),
    action=rsr.AbsoluteAction((-1.0, -1.0), (1.0, 1.0)),
    reset=lambda rng, count: rsr.Starts(np.zeros((count, 2))),
    reward=lambda channels: -np.abs(channels["q"]).sum(axis=-1),
    figures=(rsr.ProgressFigure("upper", lambda channels: channels["q"][..., 0], "rad", "q", 0.1),),
)
"""


@pytest.mark.slow
def test_known_parameters_are_found_again(tmp_path):
    scenario = made(tmp_path, SERVO + GEARBOX)
    truth = {"constant": 0.58, "resistance": 3.6, "coulomb": 0.04, "load": 0.14}
    states, commands = windows(scenario, count=8, steps=120, seed=4)
    states[:, 2:4] = 0.0
    with MujocoSimulator(scenario, threads=1) as simulator:
        rows = simulator.rollout(states, commands, scenario.space.vector(truth))
    noisy = rows[..., :2] + np.random.default_rng(0).normal(0.0, 0.0005, rows[..., :2].shape)
    runs = [
        {"q": q, "u": np.vstack([c[:, :2], c[-1:, :2]]), "firmware": np.vstack([c[:, 2:], c[-1:, 2:]])}
        for q, c in zip(noisy, commands, strict=True)
    ]
    fit = rsr.calibrate(scenario, runs, method="sysid", budget=150, progress=False)
    inside = [fit.interval(name)[0] <= value <= fit.interval(name)[1] for name, value in truth.items()]
    assert sum(inside) >= 3, fit
    assert fit.values["resistance"] / fit.values["constant"] == pytest.approx(3.6 / 0.58, rel=0.02)
    saved = rsr.load_scenario(scenario.save(tmp_path / "saved"))
    assert saved.effects.each == scenario.effects.each


OWN = """
import rsr

def spring(xp, joint, *, stiffness, rest=0.0):
    return rsr.JointForces(torque=-stiffness * xp.sin(joint.position - rest))

def impure(xp, joint, *, size):
    joint.position[:] = 0
    return rsr.JointForces(torque=size)

def wide(xp, joint, *, size):
    return rsr.JointForces(torque=size * xp.ones((7, 9)))

def endless(xp, joint, *, size):
    return rsr.JointForces(torque=size / (0.0 * joint.velocity))

def wrong(xp, joint, *, size):
    return size * joint.position
"""


def test_a_law_of_ones_own_acts(tmp_path):
    (tmp_path / "effects.py").write_text(OWN)
    scenario = made(tmp_path, '  own: {law: "effects.py:spring", joints: upper, arguments: {stiffness: constant}}')
    states = np.zeros((1, scenario.state_size))
    states[0, 0] = 0.5
    with MujocoSimulator(scenario, threads=1) as simulator:
        soft, stiff = (
            simulator.rollout(states, np.zeros((1, 20, 2)), scenario.space.vector({"constant": value}))[0, -1, 0]
            for value in (0.1, 4.0)
        )
    assert stiff < soft < 0.5
    saved = rsr.load_scenario(scenario.save(tmp_path / "saved"))
    assert saved.effects.laws[0](np, JointMotion(*np.ones((5, 1)), step_s=0.1), stiffness=1.0).torque == -np.sin(1.0)


@pytest.mark.parametrize(
    ("effects", "words"),
    [
        ("  e: {law: nothing, joints: upper}", "got law 'nothing'; expected one of servo"),
        (
            "  e: {law: drag, joints: shoulder, arguments: {quadratic: 1}}",
            "got joint 'shoulder'; expected one of upper",
        ),
        (
            "  e: {law: drag, joints: upper, arguments: {quadratic: 1, gust: 2}}",
            "got argument 'gust'; expected some of",
        ),
        ("  e: {law: drag, joints: upper}", "got no quadratic"),
        ("  e: {law: drag, joints: upper, arguments: {quadratic: windy}}", "got parameter 'windy'; expected one of"),
        ("  e: {law: drag, joints: upper, arguments: {quadratic: [1, 2]}}", "2 values of quadratic"),
        ("  e: {law: drag, arguments: {quadratic: 1}}", "neither joints nor actuators"),
        (
            "  e: {law: drag, joints: upper, arguments: {quadratic: {channel: firmware, column: kd, otherwise: 1}}}",
            "got column 'kd'; expected one of kp, enabled",
        ),
        (SERVO + SERVO.replace("servo:", "again:"), "actuator 'a' in servo and again"),
        ('  e: {law: "effects.py:impure", joints: upper, arguments: {size: 1}}', "changes its inputs in place"),
        ('  e: {law: "effects.py:wide", joints: upper, arguments: {size: 1}}', "torque of shape"),
        ('  e: {law: "effects.py:endless", joints: upper, arguments: {size: 1}}', "torque that is not finite"),
        ('  e: {law: "effects.py:wrong", joints: upper, arguments: {size: 1}}', "expected rsr.JointForces"),
        ('  e: {law: "effects.py:absent", joints: upper, arguments: {size: 1}}', "no 'absent' in effects.py"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, effects, words):
    (tmp_path / "effects.py").write_text(OWN)
    with pytest.raises(ScenarioError) as caught:
        made(tmp_path, effects)
    assert words in str(caught.value)


def test_a_replaced_actuator_has_no_parameters_of_its_own(tmp_path):
    sets = "sets: [{actuator: a, field: position_gain}]"
    more = f"\n  kp: {{nominal: 3, lower: 1, upper: 9, unit: '1', prior_std: 0.3, {sets}}}"
    with pytest.raises(ScenarioError, match="got a parameter that is position_gain of actuator 'a'"):
        made(tmp_path, SERVO, more=more)


def test_learned_simulators_refuse_effects(tmp_path):
    from rsr.learned.gnn.simulator import GnnSimulator

    assert inspect.isclass(GnnSimulator)
    from rsr.scenarios.capabilities import check_simulated

    with pytest.raises(ScenarioError, match=r"got effects \(servo\); expected no effects"):
        check_simulated(made(tmp_path, SERVO), "gnn", "free bodies")
