"""`robot.yaml`: what it can say wrongly, and what its numbers become."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import yaml
from robots import STAND_IN_FILE, robot_document

from rsr.common.errors import ConfigError, PolicyError, RealityError, Waiting
from rsr.common.rotations import about_z
from rsr.policies.policy_contract import check_contract, task_contract
from rsr.realities import SafetyEnvelope
from rsr.realities.robot import Placement, ask_at_terminal, instruction, make_robot_reality
from rsr.realities.robot_file import RobotFile, load_robot_file
from rsr.realities.wiring import Wiring
from rsr.scenarios import Starts, load_scenario, task_of
from rsr.scenarios.built_in.pushing import kinematics
from rsr.scenarios.built_in.pushing.limits import ArmLimits

JOINTS = [f"joint{number}" for number in range(1, 7)]


def wiring(document) -> Wiring:
    return Wiring(RobotFile.model_validate(document), load_scenario("push_cube"))


def in_degrees() -> dict:
    """An arm in degrees, its second joint the other way round and its third off by 90 degrees."""
    document = robot_document()
    signs, zeros = [1, -1, 1, 1, 1, 1], [0, 0, 90, 0, 0, 0]
    document["command"] |= {"unit": "deg", "signs": signs, "zeros": zeros}
    document["channels"]["joint_position"] |= {"unit": "deg", "signs": signs, "zeros": zeros}
    document["channels"]["block_position"]["unit"] = "mm"
    return document


def test_units_signs_and_zeros_both_ways():
    lines = wiring(in_degrees())
    observation = {f"{joint}.pos": 10.0 * number for number, joint in enumerate(JOINTS)}
    observation |= {"block.x": 360.0, "block.y": -20.0, "block.z": 25.0, "block.age": 0.01}
    observation |= {"block.qw": 1.0, "block.qx": 0.0, "block.qy": 0.0, "block.qz": 0.0}
    reading = lines.read(observation)
    np.testing.assert_allclose(reading.values["joint_position"][0], np.deg2rad([0, -10, -70, 30, 40, 50]))
    np.testing.assert_allclose(reading.values["block_position"][0], [0.36, -0.02, 0.025])
    assert reading.age_s == {"joint_position": 0.0, "block_position": 0.01, "block_orientation": 0.01}
    command = lines.command(reading.values["joint_position"][0])
    assert command == pytest.approx({f"{joint}.pos": 10.0 * number for number, joint in enumerate(JOINTS)})
    np.testing.assert_allclose(lines.sent(command), reading.values["joint_position"][0])
    check_contract(task_contract(load_scenario("push_cube")), lines.body)


def test_a_robot_may_narrow_the_envelope():
    narrow = {"joint_speed_rad_s": 0.5, "tip_speed_m_s": 0.1, "tip_lower_m": [0.2, -0.2, 0.01]}
    section = {"max_sensor_age_s": 0.1, "limits": narrow}
    scenario = load_scenario("push_cube")
    envelope = wiring(robot_document() | {"envelope": section}).envelope(scenario)
    assert envelope == SafetyEnvelope(
        ArmLimits(joint_speed_rad_s=0.5, tip_speed_m_s=0.1, tip_lower_m=(0.2, -0.2, 0.01)), max_sensor_age_s=0.1
    )
    assert wiring(robot_document()).envelope(scenario) == SafetyEnvelope.of(scenario)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"joint_speed_rad_s": 9.0}, "joint_speed_rad_s: got 9.0; expected nothing wider than 2.0."),
        ({"joint_speed_rad_s": -1.0}, "joint_speed_rad_s: got -1.0; expected nothing wider than 2.0."),
        ({"tip_lower_m": [0.0, -0.3, 0.01]}, "tip_lower_m: got (0.0, -0.3, 0.01); expected nothing wider than (0.08, "),
        ({"tip_upper_m": [0.5, 0.3, 2.0]}, "tip_upper_m: got (0.5, 0.3, 2.0); expected nothing wider than (0.55, "),
        ({"tip_upper_m": [0.5, 0.3]}, "tip_upper_m: got (0.5, 0.3); expected a number, or 3 of them."),
        ({"tip_sped_m_s": 0.1}, "tip_sped_m_s: got an unknown limit; expected one of tip_speed_m_s, tip_lower_m, "),
    ],
)
def test_a_robot_never_widens_the_envelope(limits, message):
    with pytest.raises(ConfigError) as caught:
        wiring(robot_document() | {"envelope": {"limits": limits}}).envelope(load_scenario("push_cube"))
    assert str(caught.value).startswith(f"robot rsr.realities.stand_in:StandInRobot: envelope.limits.{message}")


def changed(*path_and_value) -> dict:
    document = robot_document()
    *path, last, value = path_and_value
    place = document
    for key in path:
        place = place[key]
    place[last] = value
    return document


SWAPPED = {"joint2": "joint2.pos", "joint1": "joint1.pos", **{joint: f"{joint}.pos" for joint in JOINTS[2:]}}


@pytest.mark.parametrize(
    ("document", "got"),
    [
        (changed("rate_hz", 30), "a rate of 30 Hz"),
        (changed("command", "keys", SWAPPED), "joints joint2, joint1, joint3, joint4, joint5, joint6"),
        (changed("command", "unit", "ticks"), "commands in ticks"),
        (changed("channels", "joint_position", "keys", SWAPPED), "columns joint2, joint1, joint3, joint4, joint5"),
        (changed("channels", "joint_position", "unit", "ticks"), "unit 'ticks' of channel 'joint_position'"),
        (changed("channels", "block_position", "unit", "rad"), "unit 'rad' of channel 'block_position'"),
        (changed("channels", "block_position", "frame", "camera"), "frame 'camera' of channel 'block_position'"),
    ],
)
def test_what_does_not_fit_the_policy_is_refused(tmp_path, document, got):
    (tmp_path / "robot.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    with pytest.raises(PolicyError) as caught:
        make_robot_reality(load_scenario("push_cube"), tmp_path / "robot.yaml", tmp_path)
    assert caught.value.got.startswith(got)
    assert caught.value.next_step.endswith("The policy was not run.")


def test_a_missing_channel_is_refused():
    document = robot_document()
    del document["channels"]["block_position"]
    with pytest.raises(PolicyError, match="expected channel 'block_position'"):
        check_contract(task_contract(load_scenario("push_cube")), wiring(document).body)


def test_a_channel_that_only_the_calibration_needs_is_missed_too(tmp_path):
    document = robot_document()
    del document["channels"]["block_orientation"]
    (tmp_path / "robot.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    with pytest.raises(PolicyError) as caught:
        make_robot_reality(load_scenario("push_cube"), tmp_path / "robot.yaml", tmp_path)
    assert str(caught.value) == (
        "robot rsr.realities.stand_in:StandInRobot: got channels block_position, joint_position; expected "
        "block_orientation, block_position, joint_position, as scenario push_cube observes them. "
        "Map these channels in the robot's file. The policy was not run."
    )


def test_keys_that_the_robot_does_not_have(tmp_path):
    document = changed("channels", "block_position", "keys", {"x": "cube.x", "y": "block.y", "z": "block.z"})
    (tmp_path / "robot.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    with pytest.raises(PolicyError, match="got no cube.x in observation_features \\(joint1.pos, "):
        make_robot_reality(load_scenario("push_cube"), tmp_path / "robot.yaml", tmp_path)


def test_an_answer_that_lacks_a_number():
    with pytest.raises(RealityError) as caught:
        wiring(robot_document()).read({"joint1.pos": 0.0})
    assert caught.value.got == "KeyError: 'joint2.pos'"


@pytest.mark.parametrize(
    ("document", "place", "got"),
    [
        (changed("channels", "block_position", "age", None), ": channels.block_position.age", "None"),
        (changed("command", "signs", [1, 2, 1, 1, 1, 1]), ": command.signs.1", "2"),
        (changed("command", "signs", [1, 1]), ": command", "2 signs or zeros for 6 columns"),
        (changed("speed", 3), ": speed", "an unknown key"),
        (changed("robot", "no colon"), ": robot", "'no colon'"),
        (changed("rate_hz", 0), ": rate_hz", "0"),
        (changed("envelope", {"max_speed_rad_s": 1}), ": envelope.max_speed_rad_s", "an unknown key"),
        (changed("envelope", {"limits": {"x": "fast"}}), ": envelope.limits.x.float", "'fast'"),
        (changed("envelope", {"max_sensor_age_s": 1}), ": envelope.max_sensor_age_s", "1"),
        (["a list"], ": top level", "['a list']"),
    ],
)
def test_files_that_say_something_wrong(tmp_path, document, place, got):
    path = tmp_path / "robot.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    with pytest.raises(ConfigError) as caught:
        load_robot_file(path)
    assert caught.value.where == f"{path}{place}"
    assert caught.value.got == got
    assert caught.value.next_step == "Correct the file; docs/robot.md has an example."


@pytest.mark.parametrize("text", [None, "a: [", "\x00"])
def test_files_that_are_none(tmp_path, text):
    if text is not None:
        (tmp_path / "robot.yaml").write_text(text)
    with pytest.raises(ConfigError, match="expected the YAML file of a robot"):
        load_robot_file(tmp_path / "robot.yaml")


@pytest.mark.parametrize(
    ("robot", "options", "got"),
    [
        ("no.such.module:Robot", {}, "ModuleNotFoundError: No module named 'no'"),
        ("rsr.realities.stand_in:Nobody", {}, "AttributeError: "),
        ("rsr.realities.stand_in:StandInRobot", {"port": "/dev/ttyACM0"}, "TypeError: "),
    ],
)
def test_robots_that_cannot_be_made(tmp_path, robot, options, got):
    path = tmp_path / "robot.yaml"
    path.write_text(yaml.safe_dump(robot_document() | {"robot": robot, "options": options}, sort_keys=False))
    with pytest.raises(ConfigError) as caught:
        make_robot_reality(load_scenario("push_cube"), path, tmp_path)
    assert caught.value.got.startswith(got)


def test_what_really_moves_gets_real_time(tmp_path):
    path = tmp_path / "robot.yaml"
    path.write_text(yaml.safe_dump(robot_document() | {"simulated": False}, sort_keys=False))
    make_robot_reality(load_scenario("push_cube"), path, tmp_path)
    with pytest.raises(ConfigError) as caught:
        make_robot_reality(load_scenario("push_cube"), path, tmp_path, real_time=False)
    assert str(caught.value) == (
        f"{path}: simulated: got simulated time for a robot that is no stand-in; expected real time: it would get all "
        "its commands at once. Run it in real time."
    )


def words(scenario: str, **goal: list[float]) -> str:
    joints = kinematics.joints_for(np.array([0.3, -0.1, 0.025]))
    pose = [0.376, -0.028, 0.025, *about_z(np.deg2rad(30.0))]
    start = Starts(np.array([[*pose, *joints]]), {name: np.array([values]) for name, values in goal.items()})
    return instruction(load_scenario(scenario), task_of(load_scenario(scenario)), start)


def test_a_person_is_told_what_to_put_where():
    block = "put the block at x = 0.376 m, y = -0.028 m, turned by 30 degrees; its target is x = 0.267 m, y = -0.097 m"
    tip = "Bring the fingertip near x = 0.300 m, y = -0.100 m."
    target, turned = [0.267, -0.097, 0.025], about_z(np.deg2rad(-15.0)).tolist()
    assert words("push_cube", target_position=target) == f"{block.replace(', turned by 30 degrees', '')}. {tip}"
    told = words("push_t", target_position=target, target_orientation=turned)
    assert told == f"{block}, turned by -15 degrees. {tip}"


def test_without_a_person_it_waits(monkeypatch):
    monkeypatch.setattr(sys, "stdin", STAND_IN_FILE.open())
    with sys.stdin, pytest.raises(Waiting) as caught:
        ask_at_terminal(Placement(2, 12, Starts(np.zeros((1, 13))), "put it back."))
    assert caught.value.where == "episode 3 of 12"
