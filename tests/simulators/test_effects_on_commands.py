"""Latency, lag and backlash: what reaches the joint, alike in C, MJX, training, and found again from recordings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import rsr
from rsr.common.errors import ScenarioError, SessionError
from rsr.common.progress import ignore
from rsr.environments import World
from rsr.realities.reality import CollectionPlan
from rsr.realities.stand_in import StandIn
from rsr.scenarios import Starts
from rsr.scenarios.effects.effect_laws import JointMotion, backlash
from rsr.sessions import Episode
from rsr.simulators import MujocoSimulator, delay_weights, delayed, in_force, weights_of
from rsr.simulators.mujoco import controls_of
from tests.simulators.test_effects import SERVOS, TASK, check_mjx_against_c, made

WIRE = "  wire: {law: latency, actuators: [a, b], arguments: {seconds: wire_s}}\n"
MOTOR = "  motor: {law: lag, actuators: a, arguments: {time_constant: motor_s}}\n"
TEETH = """  teeth: {law: backlash, actuators: b, arguments: {gap: gap, stiffness: 3, damping: 0.05}}
  rub: {law: friction_m1, joints: [upper, lower], arguments: {coulomb: 0.02, viscous: 0.02}}
"""
NAMES = {"wire_s": 0.013, "motor_s": 0.03, "gap": 0.08}
LONGEST = {"wire_s": 0.13, "motor_s": 0.3}


def driven(scenario, count: int = 4, steps: int = 30, seed: int = 0):
    """Starts [B, n] and commands [B, H + T, nu + C], smooth after a jump."""
    rng = np.random.default_rng(seed)
    states = np.zeros((count, scenario.state_size))
    states[:, :4] = rng.normal(0.0, 0.3, (count, 4))
    time_s = 0.01 * np.arange(scenario.history_steps + steps)[:, None]
    commands = np.ones((count, len(time_s), scenario.command_width))
    rate, phase = rng.uniform(5, 15, (count, 1, 2)), rng.uniform(0, 6, (count, 1, 2))
    commands[..., :2] = np.sin(rate * time_s + phase) + (time_s > 0.05) * rng.uniform(-0.5, 0.5, (count, 1, 2))
    return states, commands


def test_what_acts_is_what_a_lag_after_a_latency_lets_through(tmp_path):
    """Against the equation, integrated in steps a hundred times finer."""
    scenario = made(tmp_path, WIRE + MOTOR, NAMES)
    assert scenario.delay_steps == np.ceil((LONGEST["wire_s"] + 5 * LONGEST["motor_s"]) / 0.01)
    values = scenario.space.vector({"wire_s": 0.0173, "motor_s": 0.021})
    _, commands = driven(scenario, count=1, steps=40)
    controls = delayed(commands, weights_of(scenario, values)[None])[0]
    fine_s, oldest = 1e-5, np.repeat(commands[0], 1000, axis=0)
    late = np.concatenate([np.repeat(oldest[:1], 1730, axis=0), oldest[:-1730]])
    filtered, kept = late.copy(), np.exp(-fine_s / 0.021)
    for row in range(1, len(late)):
        filtered[row, 0] = late[row, 0] + kept * (filtered[row - 1, 0] - late[row, 0])
    rows = slice(-40 * 1000, None)
    for column, expected in ((0, filtered), (1, late)):
        mean = expected[rows, column].reshape(-1, 200).mean(axis=1)
        np.testing.assert_allclose(controls[:, column], mean, atol=2e-4)


def test_a_latency_alone_is_a_delay(tmp_path):
    scenario = made(tmp_path, WIRE, {"wire_s": 0.013})
    for late_s in (0.0, 0.004, 0.0131):
        own = weights_of(scenario, np.array([late_s]))[..., 0]
        np.testing.assert_allclose(own, delay_weights(late_s, 0.01, 5, scenario.delay_steps), atol=1e-12)
    commands = np.random.default_rng(0).normal(size=(scenario.delay_steps + 1, 2))
    np.testing.assert_allclose(in_force(weights_of(scenario, np.array([0.0])), commands), np.tile(commands[0], (5, 1)))


def test_within_the_gap_nothing_drives_the_joint():
    joint = JointMotion(np.array([0.0, 0.0, 0.0]), np.zeros(3), np.array([0.01, 0.2, -0.2]), 0.0, 0.0, 0.002)
    made = backlash(np, joint, gap=0.1, stiffness=2.0, damping=0.3)
    np.testing.assert_allclose(made.torque, [0.0, 0.3, -0.3])
    np.testing.assert_allclose(made.damping, [0.0, 0.3, 0.3])


@pytest.mark.slow
def test_c_and_mjx_agree_and_derivatives_are_right(tmp_path):
    scenario = made(tmp_path, WIRE + MOTOR + TEETH, NAMES)
    states, commands = driven(scenario)
    values = scenario.space.vector({"wire_s": 0.0171, "motor_s": 0.027})
    check_mjx_against_c(scenario, states, commands, values, step=1e-6)


def test_world_and_simulator_move_alike(tmp_path):
    made(tmp_path, WIRE + MOTOR + TEETH, NAMES)
    (tmp_path / "task.py").write_text(TASK)
    scenario = rsr.load_scenario(tmp_path)
    values, starts = scenario.space.nominal, Starts(qpos=np.array([[0.4, -0.2]]), goal={})
    with World.simulated(scenario, values, 1) as world, MujocoSimulator(scenario, threads=1) as simulator:
        world.place(np.arange(1), starts)
        before = np.repeat(world.command[:, None], scenario.history_steps, axis=1)
        begun = np.concatenate([world.states[0], np.zeros(scenario.state_size - 4)])[None]
        sent = np.random.default_rng(0).uniform(-1, 1, (1, 20, 2))
        for command in sent[0]:
            world.send(command[None])
        expected = simulator.rollout(begun, np.concatenate([before, sent], axis=1), values)[0, -1]
        np.testing.assert_allclose(world.states[0], expected[:4], atol=1e-12)


def with_values_per_episode(folder, law: str):
    return made(folder, law + "per_episode: {wire_s: {nominal: 0.02, unit: s}}\n", {"gain": 1.0}, SERVOS)


def test_a_latency_that_differs_from_run_to_run(tmp_path):
    law = "  wire: {law: latency, actuators: [a, b], arguments: {seconds: wire_s, longest: 0.05}}\n"
    scenario = with_values_per_episode(tmp_path, law)
    assert scenario.history_steps == 5
    states, commands = driven(scenario, count=1, steps=10)
    given = {"time_s": 0.01 * np.arange(16), "values": {"u": np.zeros((16, 2)), "firmware": np.ones((16, 2))}}
    given["values"]["u"][:15] = commands[0, :15, :2]
    episodes = [Episode(index=0, tags={"wire_s": late}, **given) for late in ("0", "0.03", "0.08")]
    with MujocoSimulator(scenario, threads=1) as simulator:
        sent = [scenario.commands_from(episode, 5, 10) for episode in episodes[:2]]
        assert sent[1][0, -1] == 0.03
        prompt, late = simulator.rollout(np.tile(states, (2, 1)), np.array(sent), scenario.space.nominal)
        shifted = np.concatenate([np.repeat(sent[0][:1], 3, axis=0), sent[0][:-3]])  # three control steps
        np.testing.assert_allclose(
            simulator.rollout(states, shifted[None], scenario.space.nominal)[0], late, atol=1e-12
        )
    assert np.abs(prompt - late).max() > 0.01
    with pytest.raises(
        SessionError, match=r"got seconds of 0.08 s in effect wire; expected 0 to 0.05 s, its `longest`"
    ):
        scenario.commands_from(episodes[2], 5, 10)


# A latency that changes within a run.

CHANGING = """
  wire: {law: latency, actuators: [a, b],
    arguments: {seconds: {channel: firmware, column: kp, otherwise: [0.0, 0.04]}, longest: 0.05}}
"""
RUBBING = "  rub: {law: friction_m1, joints: [upper, lower], arguments: {coulomb: 0.02, viscous: rub}}\n"


def changing(folder):
    """Two servos; `kp` is how late each command is, in s."""
    made(folder, CHANGING + MOTOR + RUBBING, {"rub": 0.02, "motor_s": 0.03})
    file = folder / "scenario.yaml"
    file.write_text(file.read_text().replace("columns: [kp, enabled]", "columns: [kp]"))
    (folder / "task.py").write_text(TASK)
    return rsr.load_scenario(folder)


def test_each_command_arrives_after_its_own_latency_and_never_after_a_newer_one(tmp_path):
    scenario = made(tmp_path, CHANGING + RUBBING, {"rub": 0.02})
    rng, steps = np.random.default_rng(3), 30
    _, commands = driven(scenario, count=1, steps=steps)
    late_s = rng.choice([0.0, 0.0137, 0.03, 0.05], commands.shape[1])
    commands[0, :, 2] = late_s
    controls = controls_of(scenario, scenario.space.nominal[None], commands)[0]
    # Event by event, in steps of 10 microseconds: of the commands that have arrived the newest acts.
    dt_s, begin = 0.01, scenario.history_steps
    time_s = dt_s * begin + 1e-5 * (np.arange(steps * 1000) + 0.5)
    arrivals = dt_s * np.arange(len(late_s)) + late_s
    newest = np.where(arrivals[None] <= time_s[:, None], np.arange(len(late_s)), 0).max(axis=1)
    expected = commands[0, newest, :2].reshape(-1, 200, 2).mean(axis=1)
    np.testing.assert_allclose(controls[:, :2], expected, atol=2e-3)
    assert (np.diff(arrivals) < 0).any()  # some were overtaken


@pytest.mark.slow
def test_c_and_mjx_agree_on_a_latency_that_changes(tmp_path):
    scenario = changing(tmp_path)
    states, commands = driven(scenario)
    commands[..., 2] = np.random.default_rng(1).uniform(0.0, 0.05, commands.shape[:2])
    values = scenario.space.vector({"rub": 0.03, "motor_s": 0.027})
    check_mjx_against_c(scenario, states, commands, values, step=1e-6)


def test_a_world_draws_a_latency_for_each_command(tmp_path):
    scenario = changing(tmp_path)
    values, starts = scenario.space.nominal, Starts(qpos=np.array([[0.4, -0.2]]), goal={})
    with World.simulated(scenario, values, 1) as world, MujocoSimulator(scenario, threads=1) as simulator:
        world.place(np.arange(1), starts)
        begun, late_s = np.concatenate([world.states[0], np.zeros(scenario.state_size - 4)])[None], []
        sent = np.random.default_rng(0).uniform(-1, 1, (1, 20, 2))
        for row, command in enumerate(sent[0]):
            world.send(command[None])
            late_s.append(world.sent.settings[0, 0])
            if row == 9:  # killed and gone on, it draws the same
                middle = world.snapshot()
                world.send(command[None])
                world.restore(middle)
        assert 0.0 <= min(late_s) < 0.01 < 0.03 < max(late_s) <= 0.04
        before = np.tile([0.4, -0.2, 0.02], (1, scenario.history_steps, 1))
        commands = np.concatenate([sent, np.array(late_s)[None, :, None]], axis=2)
        expected = simulator.rollout(begun, np.concatenate([before, commands], axis=1), values)[0, -1]
        np.testing.assert_allclose(world.states[0], expected[:4], atol=1e-12)


def test_a_stand_in_records_how_late_each_command_was(tmp_path):
    class Swinging:
        def act(self, observation):
            return np.sin(40.0 * observation[:, :2])

    plan = CollectionPlan(session="one", episodes=2, seed=3, policy_sha256=None)
    episodes = StandIn(changing(tmp_path), seed=5).collect(Swinging(), plan, ignore).episodes
    late_s = np.stack([episode["firmware"][:-1, 0] for episode in episodes])
    assert 0.0 <= late_s.min() < 0.01 < 0.03 < late_s.max() <= 0.04
    assert len(np.unique(late_s)) == late_s.size


@pytest.mark.slow
def test_latency_lag_and_gap_come_back(tmp_path):
    scenario = made(tmp_path, WIRE + MOTOR + TEETH, NAMES)
    scenario = replace(scenario, window_s=0.5)
    truth = {"wire_s": 0.017, "motor_s": 0.045, "gap": 0.06}
    states, commands = driven(scenario, count=6, steps=100, seed=4)
    states[:] = 0.0
    commands = commands[:, scenario.history_steps :]
    history = np.repeat(commands[:, :1], scenario.history_steps, axis=1)
    with MujocoSimulator(scenario, threads=1) as simulator:
        sent = np.concatenate([history, commands], axis=1)
        rows = simulator.rollout(states, sent, scenario.space.vector(truth))
    noisy = rows[..., :2] + np.random.default_rng(0).normal(0.0, 0.0005, rows[..., :2].shape)
    runs = [
        {"q": q, "u": np.vstack([c[:, :2], c[-1:, :2]]), "firmware": np.ones((len(q), 2))}
        for q, c in zip(noisy, commands, strict=True)
    ]
    fit = rsr.calibrate(scenario, runs, method="sysid", budget=60, progress=False)
    for name, value in truth.items():
        lower, upper = fit.interval(name)
        assert lower <= value <= upper, fit
        assert np.log(upper / lower) < 0.5 * (2 * 1.96 * 0.3), fit  # half as wide as the prior, at most
    saved = rsr.load_scenario(scenario.save(tmp_path / "saved"))
    assert saved.command_laws == scenario.command_laws
    assert saved.history_steps == scenario.history_steps


@pytest.mark.parametrize(
    ("law", "words"),
    [
        ("  e: {law: lag, joints: upper, arguments: {time_constant: 1}}", "got no actuators; expected actuators"),
        ("  e: {law: lag, actuators: a, arguments: {seconds: 1}}", "got arguments seconds; expected time_constant"),
        ("  e: {law: lag, actuators: a, arguments: {time_constant: 0}}", "got time_constant of 0 s; expected 0.0001"),
        (
            "  e: {law: lag, actuators: a, arguments: {time_constant: {channel: firmware, column: kp, otherwise: 1}}}",
            "got a recorded column; expected a number, a parameter's name or a value per episode",
        ),
        (
            "  e: {law: latency, actuators: a, arguments: {seconds: {channel: firmware, column: kp, otherwise: 1}}}",
            "got longest None; expected the longest",
        ),
        (
            "  e: {law: latency, actuators: a,"
            " arguments: {seconds: {channel: firmware, column: kp, otherwise: [0, 1]}, longest: 0.1}}",
            "got otherwise [0, 1]; expected 0 to 0.1 s, its `longest`",
        ),
        ("  e: {law: latency, actuators: a, arguments: {seconds: wire_s}}", "got longest None; expected the longest"),
        (
            "  e: {law: lag, actuators: a, arguments: {time_constant: 0.1}}\n"
            "  f: {law: lag, actuators: [b, a], arguments: {time_constant: 0.2}}",
            "got actuator 'a' in e and f; expected one lag each",
        ),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, law, words):
    with pytest.raises(ScenarioError) as caught:
        with_values_per_episode(tmp_path, law + "\n")
    assert words in str(caught.value)


def test_a_lag_of_an_actuator_with_a_filter_is_refused(tmp_path):
    actuators = '<position name="a" joint="upper" kp="3" timeconst="0.1"/><position name="b" joint="lower" kp="3"/>'
    with pytest.raises(ScenarioError, match="got actuator 'a' with internal state"):
        made(tmp_path, MOTOR, NAMES, actuators)
