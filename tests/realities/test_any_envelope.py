"""Limits of motion for commands of any kind: what model and YAML file state, and that nothing sent breaks it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rsr
from benchmarks._two_joint_arm import two_joint_arm
from rsr.environments import World
from rsr.errors import ScenarioError
from rsr.realities import SafetyEnvelope
from rsr.scenarios import Scenario, load_scenario
from rsr.scenarios.commands import command_kinds, rest_command, stated_limits
from rsr.scenarios.kinematics import site_positions
from rsr.scenarios.limits import MotionLimits

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


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"command_uper": 3.0}, "limits: got 'command_uper'; expected 'command_upper'"),
        ({"command_upper": {"wrist": 3.0}}, "command_upper: got 'wrist'; expected one of shoulder, elbow"),
        ({"command_upper": {"elbow": "low"}}, "command_upper: got 'low'; expected a number, or one for each of some"),
        ({"command_upper": 3.0}, "command_upper of elbow: got 3; expected a number in -2 to 2, as the model has it"),
        ({"command_lower": {"elbow": -2.5}}, "command_lower of elbow: got -2.5; expected a number in -2 to 2"),
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


def test_limits_and_what_hides_survive_saving(tmp_path):
    section = {"ranges": {"damping": [2.0, 2.5]}}
    scenario = two_joint_arm(tmp_path, limits={"command_rate": 3.0}, stand_in=section)
    again = load_scenario(scenario.save(tmp_path / "saved"))
    assert again.limits == scenario.limits
    assert "ranges" in (tmp_path / "saved" / "scenario.yaml").read_text()
