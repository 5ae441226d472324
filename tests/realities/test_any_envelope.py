"""Limits of motion for commands of any kind: what model and YAML file state, and that nothing sent breaks it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import rsr
from benchmarks._two_joint_arm import two_joint_arm
from rsr.calibration.problem.sensitivity import mjx_simulator
from rsr.common.errors import ScenarioError
from rsr.common.progress import ignore
from rsr.environments import World
from rsr.realities import CollectionPlan, SafetyEnvelope, StandIn
from rsr.scenarios import Scenario, load_scenario
from rsr.scenarios.motion.braking import PAST, RATE
from rsr.scenarios.motion.commands import command_kinds, rest_command, stated_limits
from rsr.scenarios.motion.kinematics import site_positions
from rsr.scenarios.motion.limits import MotionLimits

ROOT = Path(__file__).resolve().parents[2]
DT_S = 0.02
BOX = {"box_lower": [0.2, -0.3, 0.0], "box_upper": [0.5, 0.3, 0.2]}
POST = {"box_lower": [0.25, 0.15, 0.0], "box_upper": [0.35, 0.25, 0.2]}
SITES = {"tool": {"inside": BOX, "keep_out": [POST], "speed": 0.5}}
KINDS = ("torque", "velocity", "position")


@cache
def limited_arm(kind: str) -> Scenario:
    sites = {"tool": {key: value for key, value in SITES["tool"].items() if key != "speed" or kind != "torque"}}
    rates = {"torque": 60.0, "velocity": 20.0, "position": 1.5}
    growth = {} if kind == "torque" else {"command_acceleration": 300.0 if kind == "velocity" else 20.0}
    return two_joint_arm(Path(mkdtemp()), kind, limits={"command_rate": rates[kind], "sites": sites, **growth})


def tool(scenario: Scenario, joints: np.ndarray) -> np.ndarray:
    return site_positions(scenario.base_model, joints, [0])[:, 0]


def allowed_place(place: np.ndarray) -> np.ndarray:
    inside = np.all((place >= BOX["box_lower"]) & (place <= BOX["box_upper"]), axis=1)
    return inside & ~np.all((place > POST["box_lower"]) & (place < POST["box_upper"]), axis=1)


def trespass(place: np.ndarray) -> float:
    out = np.maximum(np.subtract(BOX["box_lower"], place), np.subtract(place, BOX["box_upper"])).max()
    deep = np.minimum(np.subtract(place, POST["box_lower"]), np.subtract(POST["box_upper"], place)).min()
    return float(max(out, deep, 0.0))


def changes_slowly(limits: MotionLimits, sent: np.ndarray, previous: np.ndarray, growth: np.ndarray) -> bool:
    """Whether commands change by no more than this, but for those that come nearer to the safe command."""
    safe = limits.safe(previous)
    nearer = np.abs(sent - safe) <= np.abs(previous - safe)
    return bool(((np.abs(sent - previous) <= growth + 1e-12) | nearer).all())


def starts(scenario: Scenario, rng: np.random.Generator, count: int = 8) -> np.ndarray:
    joints = rng.uniform(-0.9, 0.9, (40 * count, 2))
    return joints[allowed_place(tool(scenario, joints))][:count]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), reach=st.floats(0.0, 6.0))
def test_nothing_sent_breaks_a_limit(kind, seed, reach):
    scenario, rng = limited_arm(kind), np.random.default_rng(seed)
    limits = stated_limits(scenario)
    joints = starts(scenario, rng)
    previous = before = joints if kind == "position" else rng.uniform(-0.5, 0.5, joints.shape)
    wanted = previous + rng.normal(0, reach, joints.shape)
    found = SafetyEnvelope(limits).limit(wanted, previous, before, DT_S, {"joint_position": joints})
    growth = np.minimum(np.array(limits.command_rate) * DT_S, np.array(limits.command_acceleration) * DT_S**2)
    assert changes_slowly(limits, found.sent, previous, growth)
    assert ((found.sent >= limits.command_lower) & (found.sent <= limits.command_upper)).all()
    if kind != "torque":
        reached = found.sent if kind == "position" else joints + DT_S * found.sent
        place = tool(scenario, reached)
        assert allowed_place(place).all()
        # After slower commands of speed than those that are in force, a tool may still be slowing down.
        assert (np.linalg.norm(place - tool(scenario, joints), axis=1) <= 0.5 * DT_S + 1e-9).all()
    assert ((found.share >= 0) & (found.share <= 1)).all()
    untouched = (found.sent == wanted).all(axis=1)
    np.testing.assert_array_equal(found.share == 0, untouched)
    told = np.any(list(found.reasons.values()) or [np.zeros(len(joints), bool)], axis=0)
    assert (told | untouched).all(), "whatever is cut has a reason"
    assert set(found.reasons) <= set(SafetyEnvelope(limits).words)


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_acted_on_gets_the_safe_command(kind):
    scenario = limited_arm(kind)
    joints = starts(scenario, np.random.default_rng(0), 1)
    previous = joints if kind == "position" else np.array([[0.5, -0.5]])
    envelope, measured = SafetyEnvelope(stated_limits(scenario)), {"joint_position": joints}
    safe = previous if kind == "position" else np.zeros((1, 2))
    for wanted, held in ((np.full((1, 2), np.nan), {}), (previous, {"late": np.array([True])})):
        found = envelope.limit(wanted, previous, previous, DT_S, measured, held)
        np.testing.assert_array_equal(found.sent, safe)
        assert found.share[0] == (0.0 if np.array_equal(wanted, safe) else 1.0)


def test_a_torque_never_drives_a_joint_on_beyond_its_range_but_may_bring_it_back(tmp_path):
    limits = stated_limits(two_joint_arm(tmp_path))
    joints = np.array([[2.6, 0.0], [-2.6, 0.0], [0.0, 0.0]])
    for sign, kept in ((1.0, [0.0, 2.0, 2.0]), (-1.0, [-2.0, 0.0, -2.0])):
        wanted = np.full((3, 2), 2.0 * sign)
        found = SafetyEnvelope(limits).limit(wanted, 0 * joints, 0 * joints, DT_S, {"joint_position": joints})
        np.testing.assert_array_equal(found.sent[:, 0], kept)
        np.testing.assert_array_equal(found.reasons["joint_limit"], np.array(kept) == 0)


def test_a_brake_slows_all_joints_alike_though_they_push_each_other():
    """Were each joint braked for itself, the arm would leave the way that it was on, towards a limit perhaps."""
    scenario = load_scenario(ROOT / "benchmarks" / "_scara")
    model, joints, speeds = scenario.base_model, np.array([[0.6, -0.2, -0.1]]), np.array([[0.4, -1.0, 0.05]])
    held = rest_command(model, joints)
    channels = {
        "joint_position": joints,
        RATE + "joint_position": speeds,
        PAST: np.tile(held, (1, 1 + scenario.delay_steps)),
    }
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = joints, speeds, stated_limits(scenario).safe(held, channels)
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.qacc / speeds[0], (data.qacc / speeds[0]).mean(), rtol=0.3)


def test_what_is_set_moving_by_torque_is_braked_before_a_limit():
    """Torques at random, held long enough to reach every limit: neither tool nor joints ever come beyond one."""
    scenario = limited_arm("torque")
    with World.simulated(scenario, scenario.space.nominal, 8) as world:
        qpos, rng = starts(scenario, np.random.default_rng(1)), np.random.default_rng(0)
        start = world.task.reset(rng, 8)
        world.place(np.arange(8), type(start)(qpos, start.goal))
        travelled = np.zeros((8, 2))
        for step in range(150):
            if step % 10 == 0:
                action = rng.choice([-1.0, 1.0], (8, 2))
            before = world.states[:, :2]
            world.step(action)
            travelled += np.abs(world.states[:, :2] - before)
            assert allowed_place(tool(scenario, world.states[:, :2])).all()
        assert (travelled.sum(axis=1) > 5.0).all(), "it moves all the same"


def test_a_motor_that_holding_takes_nearly_all_of_is_not_trusted_to_brake_as_well():
    """Thrown about at more than 10 rad/s, the arm stays in its box and out of its keep-out."""
    scenario = load_scenario(ROOT / "benchmarks" / "_heavy_arm")
    inside, rng = stated_limits(scenario).sites[0], np.random.default_rng(0)
    with World.simulated(scenario, scenario.space.nominal, 32) as world:
        starts = world.task.reset(rng, 200)
        allowed = np.flatnonzero(inside.trespass(tool(scenario, starts.qpos)) == 0)
        world.place(np.arange(32), starts.take(allowed[:32]))
        fastest = 0.0
        for step in range(150):
            if step % 7 == 0:
                action = rng.choice([-1.0, 1.0], (32, 2))
            world.step(action)
            assert inside.trespass(tool(scenario, world.states[:, :2])).max() == 0.0
            fastest = max(fastest, np.abs(world.states[:, 2:]).max())
        assert fastest > 10.0, "it moves all the same"


def test_without_the_prediction_the_same_arm_coasts_out_of_its_box():
    scenario = limited_arm("torque")
    with World.simulated(scenario, scenario.space.nominal, 8) as world:
        world.limits = replace(stated_limits(scenario), brakes=None)
        start = world.task.reset(np.random.default_rng(0), 8)
        world.place(np.arange(8), type(start)(starts(scenario, np.random.default_rng(1)), start.goal))
        for _ in range(30):
            world.step(np.ones((8, 2)))
        assert not allowed_place(tool(scenario, world.states[:, :2])).all()


def test_a_stand_in_with_hidden_inertia_delay_and_noise_is_braked_in_time_too():
    scenario = limited_arm("torque")

    class Pushing:
        def act(self, observation: np.ndarray) -> np.ndarray:
            return np.tile([1.0, -1.0], (len(observation), 1))

    session = StandIn(scenario, 1).collect(Pushing(), CollectionPlan("session-001", 16, seed=3), ignore)
    for episode in session.episodes:
        if allowed_place(tool(scenario, episode["joint_position"][:1]))[0]:
            off = [trespass(place) for place in tool(scenario, episode["joint_position"])]
            assert max(off) < 0.002, "the noise of the joints' sensors moves the tool by up to 2 mm"
        assert "cut_stopping_distance" in episode.tags


def test_an_arm_that_gravity_pulls_is_held_by_its_brake(tmp_path):
    """A lift of 1 kg under a motor: its safe command of 0 lets it fall, its brake does not."""
    scene = """<mujoco><option timestep="0.002"/><worldbody><body name="load"><joint name="z" type="slide" axis="0 0 1"
      range="-1 1" limited="true"/><geom size="0.05" mass="1"/></body></worldbody>
      <actuator><motor name="z" joint="z" ctrlrange="-40 40" ctrllimited="true"/></actuator></mujoco>"""
    lift = Scenario.from_mjcf(
        mujoco.MjSpec.from_string(scene),
        dt=0.02,
        measured={"q": rsr.joints("z", noise=0.001)},
        command={"u": rsr.actuators("z")},
        tune={"mass": rsr.scale("body.mass")},
    )
    limits = stated_limits(lift)
    here, still = np.array([[0.2]]), np.zeros((1, 1))
    channels = {"q": here, RATE + "q": still, PAST: np.full((1, 1), 9.81)}
    np.testing.assert_array_equal(limits.safe(still), [[0.0]])
    np.testing.assert_allclose(limits.safe(still, channels), [[9.81]], rtol=1e-6)
    falling = channels | {RATE + "q": np.array([[-4.0]])}
    low = falling | {"q": np.array([[-0.5]])}  # 4 m/s: half a metre of braking at 15 m/s2
    holds = [limits.holds(np.full((1, 1), -10.0), each)["stopping_distance"][0] for each in (channels, falling, low)]
    assert holds == [False, False, True]


def test_a_speed_leads_no_farther_than_the_range(tmp_path):
    limits = stated_limits(two_joint_arm(tmp_path, "velocity", limits={"command_rate": 1e6}))
    joints = np.array([[2.49, 0.0], [2.51, 0.0]])
    found = SafetyEnvelope(limits).limit(np.full((2, 2), 3.0), 0 * joints, 0 * joints, DT_S, {"joint_position": joints})
    np.testing.assert_allclose(found.sent[:, 0], [0.5, 0.0])


def test_a_speed_that_leads_back_into_the_box_is_not_held():
    limits = stated_limits(limited_arm("velocity"))
    joints = np.array([[0.0, 0.0], [1.2, 0.0]])  # the second: the tool beyond its box, at y = 0.42
    back = np.array([[-0.2, 0.0]] * 2)
    for speed, reason in ((back, False), (-back, True)):
        found = SafetyEnvelope(limits).limit(speed, speed, speed, DT_S, {"joint_position": joints})
        assert bool(found.reasons.get("site_place", np.zeros(2, bool))[1]) == reason


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_limits_hold_in_training(kind):
    scenario = limited_arm(kind)
    with World.simulated(scenario, scenario.space.nominal, 8) as world:
        qpos = starts(scenario, np.random.default_rng(1))
        start = world.task.reset(np.random.default_rng(0), 8)
        world.place(np.arange(8), type(start)(qpos, start.goal))
        rng = np.random.default_rng(0)
        for _ in range(40):
            before = world.command.copy()
            world.step(rng.choice([-1.0, 1.0], (8, 2)))
            assert changes_slowly(world.limits, world.command, before, np.array(world.limits.command_rate) * DT_S)


def test_kinds_of_commands_and_what_rests_them(tmp_path):
    for kind, word, rest in (("torque", "force", 0.0), ("velocity", "velocity", 0.0), ("position", "position", 0.3)):
        model = two_joint_arm(tmp_path / kind, kind).base_model
        assert command_kinds(model).tolist() == [word] * 2
        np.testing.assert_array_equal(rest_command(model, np.full((1, 2), 0.3)), [[rest] * 2])
    assert set(command_kinds(load_scenario("push_cube").base_model)) == {"position"}


def test_a_gripper_that_is_no_position_is_held_by_its_own_safe_command():
    """Joints commanded by position, a gripper by force: holding the one must not move the other."""
    scene = """<mujoco><worldbody><body><joint name="a" damping="1"/><geom size="0.1"/>
      <body><joint name="g"/><geom size="0.1"/></body></body></worldbody>
      <actuator><position name="a" joint="a" kp="10"/><motor name="g" joint="g"/></actuator></mujoco>"""
    scenario = Scenario.from_mjcf(
        mujoco.MjSpec.from_string(scene),
        dt=0.02,
        measured={"q": rsr.joints("a", "g", noise=0.001)},
        command={"u": rsr.actuators("a", "g")},
        tune={"damping": rsr.scale("joint.damping")},
    )
    held = stated_limits(scenario).safe(np.array([[0.7, 3.0]]))
    np.testing.assert_array_equal(held, [[0.7, 0.0]])


def test_a_gripper_that_a_tendon_moves_to_a_position_is_held_there():
    """Two fingers under one servo, as in many grippers: its setpoint is a place, and not a force to be let go."""
    scene = """<mujoco><worldbody><body name="one"><joint name="a" type="slide" range="0 1"/><geom size="0.1"/>
      </body><body name="other"><joint name="b" type="slide" range="0 1"/><geom size="0.1"/></body></worldbody>
      <tendon><fixed name="grip"><joint joint="a" coef="0.5"/><joint joint="b" coef="0.5"/></fixed></tendon>
      <actuator><position name="grip" tendon="grip" kp="80" ctrlrange="0 0.04"/></actuator></mujoco>"""
    scenario = Scenario.from_mjcf(
        mujoco.MjSpec.from_string(scene),
        dt=0.02,
        measured={"q": rsr.joints("a", "b", noise=0.001)},
        command={"u": rsr.actuators("grip")},
        tune={"damping": rsr.scale("body.mass", "one", "other")},
    )
    limits, half = stated_limits(scenario), np.array([[0.02]])
    np.testing.assert_array_equal(limits.safe(half), half)
    joints = {"q": np.full((1, 2), 0.02)}
    found = SafetyEnvelope(limits).limit(np.array([[0.04]]), half, half, DT_S, joints)
    np.testing.assert_allclose(found.sent, half + 35.0 * DT_S**2)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"command_uper": 3.0}, "limits: got 'command_uper'; expected 'command_upper'"),
        ({"command_upper": {"wrist": 3.0}}, "command_upper: got 'wrist'; expected one of shoulder, elbow"),
        ({"command_upper": {"elbow": "low"}}, "command_upper: got 'low'; expected a number, or one for each of some"),
        ({"command_upper": 3.0}, "command_upper of elbow: got 3; expected a number in -2 to 2, as the model has it"),
        ({"command_lower": {"elbow": -2.5}}, "command_lower of elbow: got -2.5; expected a number in -2 to 2"),
        ({"brake_share": 1.5}, "limits: got brake_share 1.5; expected a number above 0, at most 1"),
        ({"command_rate": 0.0}, "command_rate of shoulder: got 0; expected a number above 0"),
        ({"safe_command": {"elbow": 5.0}}, "safe_command of elbow: got 5; expected a number in -2 to 2"),
        ({"sites": {"tol": {}}}, "site 'tol': got site 'tol'; expected one of tool"),
        ({"sites": {"tool": {"box": BOX}}}, "site 'tool': got 'box'; expected one of inside, keep_out, speed"),
        ({"sites": {"tool": {"inside": {"box_lower": [0, 0, 0]}}}}, "inside: got no box_upper; expected all of"),
        (
            {"sites": {"tool": {"inside": {"box_lower": [0, 0, 0], "box_upper": [1, 1]}}}},
            "inside: got box_upper [1, 1]; expected three numbers",
        ),
        (
            {"sites": {"tool": {"keep_out": [{"box_lower": [0, 0, 0], "box_upper": [1, 1, 0]}]}}},
            "keep_out: got from [0, 0, 0] to [1, 1, 0]; expected each number below its partner",
        ),
        ({"sites": {"tool": {"speed": 0.5}}}, "got the speed of a site; expected none where forces are commanded"),
    ],
)
def test_a_wrong_section_is_refused(tmp_path, section, message):
    with pytest.raises(ScenarioError) as caught:
        two_joint_arm(tmp_path, limits=section)
    assert message in str(caught.value)


def test_limits_need_a_command(tmp_path):
    with pytest.raises(ScenarioError, match="got limits, and nothing that is commanded; expected `command`"):
        two_joint_arm(tmp_path, command=None, limits={"command_rate": 3.0})


def test_a_scenario_with_limits_is_tuned_through_mjx_too(tmp_path):
    scenario = two_joint_arm(tmp_path, limits={"command_rate": 3.0, "sites": {"tool": {"inside": BOX}}})
    assert mjx_simulator(scenario) is mjx_simulator(scenario), "simulators are kept by scenario, which is hashed"


def test_limits_and_what_hides_survive_saving(tmp_path):
    section = {"ranges": {"damping": [2.0, 2.5]}}
    scenario = two_joint_arm(tmp_path, limits={"command_rate": 3.0}, stand_in=section)
    again = load_scenario(scenario.save(tmp_path / "saved"))
    assert again.limits == scenario.limits
    assert "ranges" in (tmp_path / "saved" / "scenario.yaml").read_text()
