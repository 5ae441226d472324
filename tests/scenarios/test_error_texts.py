"""Errors that a lab meets with a robot and a task of its own, word for word."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from own_arm import MJCF, TASK, YAML, write_own_arm

from rsr.calibration import calibrator, start_prior
from rsr.calibration.fitting import Effort
from rsr.common.errors import RsrError, ScenarioError, SessionError
from rsr.common.progress import ignore
from rsr.config import LoopConfig, TuneConfig
from rsr.environments.vector import TaskVecEnv
from rsr.pipelines.loop.collect import check_beginning
from rsr.policies.rollouts import recorded
from rsr.realities import CollectionPlan, StandIn
from rsr.scenarios import load_scenario
from rsr.sessions import Episode, check_session

REWARD = 'reward=lambda channels: -np.linalg.norm(channels["q"] - channels["q_goal"], axis=-1),'
ACTION = "DisplacementAction((0.1,) * 3, (-2.0,) * 3, (2.0,) * 3)"
START = "Starts(rng.uniform(-0.6, 0.6, (count, 3))"
LINE = TASK.lstrip()[: TASK.lstrip().index(REWARD)].count("\n") + 1

IN_TASK = {
    "raises": (
        (REWARD, "reward=lambda channels: 1 / 0,"),
        f"task of own_arm, reward: task.py, line {LINE}: got ZeroDivisionError: division by zero; expected Python that "
        "runs. Correct the file there.",
    ),
    "raises when it is read": (
        ("def off(joint):", "1 / 0\n\n\ndef off(joint):"),
        "task of own_arm: task.py, line 7: got ZeroDivisionError: division by zero; expected Python that runs. Correct "
        "the file there.",
    ),
    "returns a wrong shape": (
        (REWARD, 'reward=lambda channels: -np.abs(channels["q"] - channels["q_goal"]),'),
        f"task of own_arm, reward: task.py, line {LINE}: got an array of shape [8, 3]; expected [8], as the channels "
        "are [8, 'width']. Compute along the last axis alone: channels are batches (docs/scenarios.md).",
    ),
    "returns NaN": (
        (REWARD, 'reward=lambda channels: np.nan * channels["q"][..., 0],'),
        f"task of own_arm, reward: task.py, line {LINE}: got nan from finite channels; expected finite numbers. Guard "
        "divisions, roots and logarithms there.",
    ),
    "is made by a function that raises": (
        ("TASK = Task(", "TASK = lambda scenario: Task(scenario.nothing,"),
        "task of own_arm: task.py, line 16: got AttributeError: 'Scenario' object has no attribute 'nothing'; expected "
        "Python that runs. Correct the file there.",
    ),
    "is no task": (
        ("TASK = Task(", "TASK = dict("),
        "task.py: TASK: got a dict; expected a `rsr.Task`, or a function (scenario) -> `rsr.Task`. See "
        "docs/scenarios.md for what a task says.",
    ),
    "asks for an unknown channel": (
        ('each["q_goal"] - each["q"])', 'each["q_goal"] - each["p"])'),
        "task of own_arm, observation term to go: task.py, line 19: got channel 'p'; expected one of q, q_goal, q_set, "
        "episode:time, action. Correct the name there; `velocity:NAME` is there where an observation term lists it.",
    ),
    "lists an unknown channel": (
        ('"joint", ("q",)),', '"joint", ("p",)),'),
        "task of own_arm, observation term joints: got 'p'; expected one of q, q_goal, q_set, episode:time, action. "
        "Name channels, what `derived` computes, or `velocity:` and a measured channel.",
    ),
    "has a goal that is no channel": (
        ('goal=("q_goal",)', 'goal=("p_goal",)'),
        "task of own_arm, goal: got 'p_goal'; expected one of q, q_set, action, q_goal, clipped. Declare it under "
        "`channels:` (columns, unit, frame): a session records it.",
    ),
    "has a figure of an unknown channel": (
        ('off(0), "rad", "q"', 'off(0), "rad", "p"'),
        "task of own_arm, figure base: got 'p'; expected one of q. Name the measured channel whose noise is the "
        "figure's.",
    ),
    "acts wider than the command": (
        (ACTION, "DisplacementAction((0.1,) * 4, (-2.0,) * 4, (2.0,) * 4)"),
        "task of own_arm, action: `scale`: got 4 numbers; expected 3, one a command (base, shoulder, elbow). One "
        "number an actuator, in the MJCF's order.",
    ),
    "starts outside the joint range": (
        (START, "Starts(np.full((count, 3), 2.5)"),
        "task of own_arm, reset: got joint shoulder at 2.5; expected -2 to 2, its range in the MJCF. Begin episodes "
        "within the ranges of the joints.",
    ),
    "starts fewer joints": (
        (START, "Starts(np.zeros((count, 2))"),
        "task of own_arm, reset: got qpos of shape [8, 2]; expected [8, 3] for 8 episodes. One row an episode.",
    ),
    "has failed before it begins": (
        ("reset=reset,", 'reset=reset,\n    failure=lambda channels: channels["q"][..., 0] < 3.0,'),
        "task of own_arm, failure: got a task that has failed at every start; expected starts from which it can be "
        "done. Widen its bounds, or begin within them.",
    ),
    "sets what its training does not have": (
        ("reset=reset,", 'reset=reset,\n    training={"ppo": {"steps": 100}},'),
        "task of own_arm, training, ppo: got 'steps'; expected one of train_steps, copies, rollout_steps, batch_size, "
        "epochs, learning_rate, gamma, gae_lambda, exploration_std, continued_std, hidden, checkpoint_rollouts, "
        "checks, further_steps. Correct `training` of the task.",
    ),
    "sets its training without an algorithm": (
        ("reset=reset,", 'reset=reset,\n    training={"train_steps": 100},'),
        "task of own_arm, training: got train_steps: 100; expected settings of ppo or sac, such as `ppo: {train_steps: "
        "600000}`. Correct `training` of the task.",
    ),
    "sets its training to no number": (
        ("reset=reset,", 'reset=reset,\n    training={"ppo": {"train_steps": "100k"}},'),
        "task of own_arm, training, ppo: got train_steps: '100k'; expected a whole number from 0. Correct `training` "
        "of the task.",
    ),
}
JOINTS = "reads: {joints: [base, shoulder, elbow]}"
IN_YAML = {
    "a hidden range outside the bounds": (
        ("title:", "stand_in: {ranges: {damping: [0.1, 0.5]}}\ntitle:"),
        "FOLDER/scenario.yaml, stand_in, ranges: got damping hidden in [0.1, 0.5]; expected a number or two in order, "
        "within its bounds 0.2 to 5. Correct the section `stand_in` of the scenario's YAML file.",
    ),
    "a body that every episode begins inside another": (
        (
            "title:",
            'adds: {world: \'<body name="wall"><geom type="box" size="0.1 0.1 0.1" pos="0 0 1"/></body>\'}\ntitle:',
        ),
        "task of own_arm, reset: got wall inside upper by up to 130 mm at every start; expected bodies that touch and "
        "do not penetrate. Begin episodes with the bodies apart; a position is that of a body's frame, in m.",
    ),
    "an unknown hidden parameter": (
        ("title:", "stand_in: {ranges: {dampings: 0.5}}\ntitle:"),
        "FOLDER/scenario.yaml, stand_in, ranges: got parameter 'dampings'; expected one of damping, gain. Correct the "
        "section `stand_in` of the scenario's YAML file.",
    ),
    "an unknown effect": (
        ("title:", "stand_in: {backlash: 1}\ntitle:"),
        "FOLDER/scenario.yaml, stand_in: got 'backlash'; expected one of delay_jitter_s, dry_friction, "
        "friction_anisotropy, gravity_compensation, ranges, sensor_noise, sliding_pairs, timestep_s. Correct the "
        "scenario's YAML file; docs/scenarios.md explains every key.",
    ),
    "an effect of an unknown law": (
        ("title:", "effects: {gears: {law: back_lash, joints: elbow}}\ntitle:"),
        "scenario.yaml, effects, gears: got law 'back_lash'; expected one of servo, dc_motor, backlash, drag, "
        "friction_m1, friction_m2, friction_m3, friction_m4, friction_m5, friction_m6, latency, lag, or FILE.py:NAME "
        "beside this file. Correct the section `effects` of the scenario's YAML file; docs/effects.md has all laws.",
    ),
    "an unknown site": (
        ("title:", "limits: {sites: {tool: {speed: 1.0}}}\ntitle:"),
        "scenario.yaml, limits, site 'tool': got site 'tool'; expected a site of the MJCF, which has none. Correct the "
        "section `limits` of the scenario's YAML file.",
    ),
    "an unknown sensor": (
        (JOINTS, "reads: {sensor: [imu]}"),
        "scenario.yaml, channel q: got sensor 'imu'; expected a sensor: the MJCF has none. Correct the name in the "
        "scenario's YAML file or add it to the MJCF.",
    ),
    "an unknown joint": (
        (JOINTS, "reads: {joints: [base, sholder, elbow]}"),
        "scenario.yaml, channel q: got joint 'sholder'; expected one of base, shoulder, elbow. Correct the name in the "
        "scenario's YAML file or add it to the MJCF.",
    ),
    "commands in another order than the actuators": (
        ("q_set: {columns: [base, shoulder, elbow]", "q_set: {columns: [base, elbow, shoulder]"),
        "scenario.yaml, channel q_set: got columns base, elbow, shoulder; expected the order base, shoulder, elbow. A "
        "column stands for the coordinate in its place: reorder them, or call them otherwise.",
    ),
    "joints in another order than its columns": (
        (JOINTS, "reads: {joints: [shoulder, base, elbow]}"),
        "scenario.yaml, channel q: got columns base, shoulder, elbow; expected the order shoulder, base, elbow. A "
        "column stands for the coordinate in its place: reorder them, or call them otherwise.",
    ),
    "a quaternion that ends with w": (
        (
            "title:",
            'adds: {world: \'<body name="ball"><freejoint/><geom size="0.02"/></body>\'}\ntitle:',
            "\nparameters:",
            '\n  turn: {columns: [x, y, z, w], unit: "1", frame: world, reads: {free_joint_quaternion: ball}, '
            "noise: 0.01}\nparameters:",
        ),
        "scenario.yaml, channel turn: got columns x, y, z, w; expected the order w, x, y, z. A column stands for the "
        "coordinate in its place: reorder them, or call them otherwise.",
    ),
    "no noise at all": (
        ("noise: 0.002", "noise: 0"),
        "scenario.yaml, channel q: got noise 0; expected a number above 0 (YAML reads 1e-3 as a word: write 0.001 or "
        "1.0e-3). Correct the scenario's YAML file; docs/scenarios.md explains every key.",
    ),
    "a model that is a file of Python": (
        ("mjcf: arm.xml", "mjcf: arm.py"),
        "scenario.yaml, mjcf: arm.py: got a file of Python; expected a function in it. Write `mjcf: arm.py:FUNCTION` "
        "in the scenario's YAML file.",
    ),
    "starts that the limits hold": (
        (
            "title:",
            "adds: {lower: '<site name=\"tip\"/>'}\nlimits: {sites: {tip: {inside: {box_lower: [2, 2, 2], "
            "box_upper: [3, 3, 3]}}}}\ntitle:",
        ),
        "task of own_arm, limits: got limits that hold the robot at every start: a site of the robot would have left "
        "its box, or entered one that it keeps out of; expected starts within the limits. Widen them, or begin within "
        "them.",
    ),
    "a mistake in what it adds": (
        ("title:", "adds: {lower: '<sight name=\"tip\"/>'}\ntitle:"),
        "scenario.yaml, mjcf: arm.xml with `adds`: got XML Error: Schema violation: unrecognized element Element "
        "'sight', line 16; expected an MJCF that MuJoCo compiles, with all its files in the scenario's folder. Correct "
        "`adds`, or the MJCF.",
    ),
}


def refusal(folder: Path, file: str, *edits: str) -> str:
    """What the beginning of a campaign says after edits of one of the files: old, new, old, new, ..."""
    path = write_own_arm(folder)
    text = (folder / file).read_text()
    for old, new in zip(edits[::2], edits[1::2], strict=True):
        assert text.count(old) == 1
        text = text.replace(old, new)
    (folder / file).write_text(text)
    with pytest.raises(RsrError) as raised:
        check_beginning(LoopConfig(scenario=str(path)))
    return str(raised.value).replace(str(folder), "FOLDER")


@pytest.mark.parametrize("case", IN_TASK)
def test_a_task_that(tmp_path, case):
    edit, expected = IN_TASK[case]
    assert refusal(tmp_path, "task.py", *edit) == expected


@pytest.mark.parametrize("case", IN_YAML)
def test_the_yaml_file_with(tmp_path, case):
    edit, expected = IN_YAML[case]
    assert refusal(tmp_path, "scenario.yaml", *edit) == expected


def test_goals_beyond_the_limits_of_the_task(tmp_path):
    path = write_own_arm(tmp_path)
    (tmp_path / "task.py").unlink()
    box = "{of: q, within: 0.1, box_lower: [1.5, 1.5, 1.5], box_upper: [1.9, 1.9, 1.9]}"
    goal = "  q_goal: {columns: [base, shoulder, elbow], unit: rad, frame: joint}\n"
    path.write_text(
        path.read_text().replace(goal, "") + f"task:\n  action: {{}}\n  reach: {box}\n  limits: {{q: [-1, 1]}}\n"
    )
    with pytest.raises(ScenarioError) as raised:
        check_beginning(LoopConfig(scenario=str(path)))
    assert str(raised.value) == (
        "task of own_arm, failure: got goals of q where the task has failed; expected goals within its limits. Widen "
        "the limits, or draw goals within them."
    )
    path.write_text(path.read_text().replace("limits: {q: [-1, 1]}", "limits: {q: [-2, 2]}"))
    assert check_beginning(LoopConfig(scenario=str(path))).name == "own_arm"


def test_a_model_without_actuators(tmp_path):
    motors = MJCF[MJCF.index("  <actuator>") : MJCF.index("</mujoco>")]
    assert refusal(tmp_path, "arm.xml", motors, "") == (
        "scenario.yaml: got command 'q_set', and a model without actuators; expected an actuator for each of its "
        "columns. Add them to the MJCF, or in "
        '`adds`: mjcf: <actuator><position name="a" joint="a" kp="10"/></actuator>.'
    )


def test_a_range_in_radians_that_mujoco_read_as_degrees(tmp_path):
    assert refusal(tmp_path, "arm.xml", '  <compiler angle="radian"/>\n', "") == (
        "scenario.yaml, mjcf: got joint 'shoulder' with a range of -0.0349 to 0.0349 rad, and commands over 4 rad; "
        "expected commands within the joint's range. Angles of an MJCF are in degrees unless it says <compiler "
        'angle="radian"/>: add that, or correct `range` of the joint or `ctrlrange` of its actuator.'
    )


def test_a_sensor_that_the_calibration_cannot_use_is_named_before_anything_is_trained(tmp_path):
    path = write_own_arm(tmp_path)
    force = '<sensor><force name="wrist" site="tip"/></sensor>'
    adds = f"adds: {{lower: '<site name=\"tip\"/>', mjcf: '{force}'}}\ntitle:"
    text = path.read_text().replace("title:", adds, 1)
    channel = "\n  f: {columns: [x, y, z], unit: N, frame: body, reads: {sensor: [wrist]}, noise: 0.1}\nparameters:"
    path.write_text(text.replace("\nparameters:", channel))
    with pytest.raises(ScenarioError) as raised:
        check_beginning(LoopConfig(scenario=str(path)))
    assert str(raised.value) == (
        "scenario own_arm, method mjx, with which `tune` would calibrate: got sensor 'wrist' of type force; "
        "expected what method mjx can do (`rsr capabilities` lists it). Write `tune: {method: cmaes}`, which needs no "
        "derivatives, into a params.yaml in the campaign's folder and run `rsr init` there; or change the MJCF."
    )
    check_beginning(LoopConfig(scenario=str(path), tune=TuneConfig(method="cmaes")))


def test_a_mesh_that_is_missing(tmp_path):
    asset = '<asset><mesh name="link" file="link.stl"/></asset>\n  <worldbody>'
    assert refusal(tmp_path, "arm.xml", "<worldbody>", asset) == (
        "scenario.yaml, mjcf: arm.xml: got Error: Error opening file 'link.stl'; expected an MJCF that MuJoCo "
        "compiles, with all its files in the scenario's folder. Correct the MJCF."
    )


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (
            '<transmission name="drive"/>',
            "scenario.yaml, mjcf: arm.urdf: got URDF parts that MuJoCo leaves out: transmission (drive); expected a "
            "URDF of links, joints and meshes. Expand macros with xacro; write motors in `adds`: "
            'mjcf: <actuator><position name="a" joint="a" kp="10"/></actuator>.',
        ),
        (
            '<joint name="j" type="screw"><parent link="a"/><child link="b"/></joint>',
            "scenario.yaml, mjcf: arm.urdf: got XML Error: invalid joint type in URDF joint definition Element "
            "'joint', line 1; expected an MJCF that MuJoCo compiles, with all its files in the scenario's folder. "
            "Correct the MJCF.",
        ),
    ],
)
def test_a_urdf_with_parts_that_are_not_simulated(tmp_path, part, expected):
    (tmp_path / "arm.urdf").write_text(f'<robot name="r"><link name="a"/><link name="b"/>{part}</robot>')
    (tmp_path / "scenario.yaml").write_text(YAML.replace("arm.xml", "arm.urdf"))
    with pytest.raises(ScenarioError) as raised:
        load_scenario(tmp_path)
    assert str(raised.value) == expected


def test_a_function_that_goes_wrong_only_later_in_an_episode_says_so_too(tmp_path):
    late = 'reward=lambda channels: np.where(np.abs(channels["action"]).max(axis=-1) > 0, np.nan, 0.0),'
    path = write_own_arm(tmp_path)
    (tmp_path / "task.py").write_text((tmp_path / "task.py").read_text().replace(REWARD, late))
    scenario = load_scenario(path)
    envs = TaskVecEnv(scenario, scenario.space.nominal, 2)
    envs.reset()
    with pytest.raises(ScenarioError, match=f"reward: task.py, line {LINE}: got nan from finite channels"):
        envs.step(np.ones((2, 3)))
    envs.close()


def test_an_angle_that_diverged_is_not_blamed_on_the_task(tmp_path):
    """Where the simulation itself is not finite, a reward that is not is no fault of the task's."""
    from rsr.scenarios import task_of

    task = task_of(load_scenario(write_own_arm(tmp_path)))
    diverged = {"q": np.full((2, 3), np.nan), "q_goal": np.zeros((2, 3))}
    assert np.isnan(task.reward(diverged)).all()


def test_the_arm_itself_is_in_order(tmp_path):
    assert "<worldbody>" in MJCF
    assert check_beginning(LoopConfig(scenario=str(write_own_arm(tmp_path)))).name == "own_arm"


def test_episodes_of_unequal_lengths_are_legal_and_one_that_is_too_short_is_named(tmp_path):
    """As a lab's session has them: all are judged by what they hold."""
    scenario = load_scenario(write_own_arm(tmp_path))
    session = StandIn(scenario, 1).collect(Still(), CollectionPlan("session-001", 4, seed=3), ignore)
    cut = tuple(_cut(each, rows) for each, rows in zip(session.episodes, (41, 30, 12, 5), strict=True))
    unequal = replace(session, episodes=cut)
    check_session(unequal, scenario.channels)
    assert recorded(scenario, unequal).rows.tolist() == [41, 30, 12, 5]
    fitting = calibrator(TuneConfig(method="sysid", fit_episodes=2), Effort(budget=4, max_windows=4, threads=1))
    found = fitting.fit(scenario, (unequal,), start_prior(scenario), 0, ignore)
    assert np.isfinite(found.evidence.gap_after)
    with pytest.raises(SessionError) as raised:
        check_session(replace(session, episodes=(_cut(session.episodes[0], 1),)), scenario.channels)
    assert str(raised.value) == (
        "session 'session-001', episode 0: got time_s of shape (1,); expected [T] with at least 2 rows. Drop or "
        "re-record this episode: what was not measured cannot be tuned to."
    )


class Still:
    def act(self, observation: np.ndarray) -> np.ndarray:
        return np.zeros((len(observation), 3))


def _cut(episode: Episode, rows: int) -> Episode:
    values = {name: array[:rows] for name, array in episode.values.items()}
    return Episode(episode.index, episode.time_s[:rows], values, episode.tags)
