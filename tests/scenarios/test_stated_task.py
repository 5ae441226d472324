"""A task said in YAML: the same `Task` as in Python, and every name checked."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

from rsr import scenarios
from rsr.common.errors import RsrError
from rsr.common.progress import ignore
from rsr.common.randomness import generator
from rsr.config import LoopConfig
from rsr.environments.task_trial import tried_task
from rsr.environments.vector import TaskVecEnv
from rsr.pipelines.loop.collect import check_beginning
from rsr.policies.rollouts import recorded
from rsr.policies.training import settings_from_scratch, train
from rsr.realities import CollectionPlan, StandIn
from rsr.scenarios import Scenario, load_scenario, task_of
from rsr.scenarios.tasks.task import HELD, TIME
from rsr.sessions import check_session
from rsr.workspace import Workspace
from rsr_tasks.own_scenario import take_in

BUILT_IN = Path(scenarios.__file__).parent / "built_in"
REACH = """
action: {step: 0.1}
start: {turn: [-1.2, 1.2], lift: [-1.6, -0.6], elbow: [0.6, 1.8], roll: [-1, 1], pitch: [-0.6, 1.2], spin: [-1, 1]}
reach: {of: tool, within: 0.015}
smoothness: {action: 0.02, joint_position: 0.01}
training: {ppo: {train_steps: 600000}}
"""
SWING_UP = """
start: {shoulder: [-0.2, 0.2], elbow: [-0.2, 0.2]}
balance: {of: joint_position, near: [3.14159265, 0], within: 0.2, still: 1.0}
limits: {joint_position: [-20, 20]}
"""
QUADROTOR = """
start: {frame: [[-0.8, -0.8, 0.6], [0.8, 0.8, 1.6]]}
reach: [{of: position, within: 0.06, box_lower: [-0.8, -0.8, 0.6], box_upper: [0.8, 0.8, 1.6]}]
balance: {of: orientation, near: [1, 0, 0, 0], within: 0.5, weight: 0.2}
"""


class Held:
    """Leaves every setpoint where it is."""

    def act(self, observation: np.ndarray) -> np.ndarray:
        return np.zeros((len(observation), 6))


def said(folder: Path, name: str, task: str) -> Scenario:
    """A built-in scenario whose task is said in YAML instead."""
    shutil.copytree(BUILT_IN / name, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "task.py").unlink()
    document = yaml.safe_load((folder / "scenario.yaml").read_text())
    for channel in ("action", "clipped", "tool_position", "goal_position"):
        document["channels"].pop(channel, None)
    document["task"] = yaml.safe_load(task)
    (folder / "scenario.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    return load_scenario(folder)


def test_reach_is_the_task_that_python_says(tmp_path):
    """Same starts, goals in the same reach, the same distance and success; the reward differs by its scale alone."""
    stated, written = tried_task(said(tmp_path / "r", "reach", REACH)), task_of(load_scenario("reach"))
    starts, python = stated.reset(generator(0, "x"), 4000), written.reset(generator(0, "x"), 4000)
    assert np.abs(starts.qpos.min(axis=0) - python.qpos.min(axis=0)).max() < 0.01
    assert np.abs(starts.goal["goal_tool"].mean(axis=0) - python.goal["goal_position"].mean(axis=0)).max() < 0.02
    joints, goal = starts.qpos[:4], starts.goal["goal_tool"][:4]
    measured = {"joint_position": joints, "action": np.zeros((4, 6)), "velocity:joint_position": np.zeros((4, 6))}
    here = stated.completed({**measured, "goal_tool": goal})
    there = written.completed({**measured, "goal_position": goal})
    assert here["tool_position"] == pytest.approx(there["tool_position"], abs=1e-12)
    assert stated.off_target(here) == pytest.approx(written.off_target(there))
    assert stated.reward(here) == pytest.approx(written.reward(there), abs=1e-9), "both pay exp(-(d / 0.03)^2) / 2 - d"
    assert stated.action.command(np.ones((4, 6)), joints, here) == pytest.approx(
        written.action.command(np.ones((4, 6)), joints, there), abs=0.1
    )


def test_a_balance_that_must_be_still(tmp_path):
    task = tried_task(said(tmp_path / "s", "swing_up", SWING_UP))
    upright = {"joint_position": np.array([[-np.pi, 2 * np.pi]] * 2)}
    moving = {**upright, "velocity:joint_position": np.array([[0.0, 0.0], [2.0, 0.0]])}
    assert task.succeeded(moving).tolist() == [True, False], "angles count modulo a turn"
    assert task.failure is not None
    assert task.failure({"joint_position": np.array([[0.0, 19.0], [0.0, -21.0]])}).tolist() == [False, True]
    assert [figure.name for figure in task.figures] == ["shoulder", "elbow", "distance", "speed"]


def test_a_free_body_and_two_terms(tmp_path):
    task = tried_task(said(tmp_path / "q", "quadrotor", QUADROTOR))
    starts = task.reset(generator(0, "x"), 50)
    assert (starts.qpos[:, 3:] == [1, 0, 0, 0]).all()
    goal = starts.goal["goal_position"]
    assert (np.abs(goal - [0.0, 0.0, 1.1]) < [0.8, 0.8, 0.5]).all()
    names = [figure.name for figure in task.figures if figure.tolerance]
    assert names == ["position distance", "orientation distance"]


def test_a_push_pays_for_the_way_to_the_block(tmp_path):
    push = "push: {of: block_position, by: tip, within: 0.03}"
    task = task_of(said(tmp_path / "p", "push_cube", push))
    assert task.potential is not None
    near = {"block_position": np.zeros((1, 3)), "tip_position": np.array([[0.0, 0.0, 0.1]])}
    assert task.potential(near) == pytest.approx([-0.1])


TRACK = """
action: {step: 0.1}
track: {of: tool, within: 0.03, period_s: 4.0, around: [0.4, 0, 0.3], amplitude: [0, 0.1, 0.1], phase: [0, 0, 0.25]}
"""


def test_a_goal_that_moves_is_followed_where_it_is_and_recorded_so(tmp_path):
    scenario = said(tmp_path / "r", "reach", TRACK)
    task, dt_s = tried_task(scenario), scenario.control_dt_s
    assert task.goal == ("phase_tool",)
    session = StandIn(scenario, 1).collect(Held(), CollectionPlan("session-001", 3, seed=3), ignore)
    check_session(session, scenario.channels)
    for episode in session.episodes:
        phase = episode["phase_tool"][0, 0]
        assert (episode["phase_tool"] == phase).all(), "where on the path the episode begins"
        turns = 2 * np.pi * (phase + dt_s * np.arange(1, len(episode) + 1) / 4.0)
        circle = np.stack([0.4 + 0 * turns, 0.1 * np.sin(turns), 0.3 + 0.1 * np.cos(turns)], axis=1)
        np.testing.assert_allclose(episode["goal_tool"], circle, atol=1e-9)
        pace = np.diff(circle, axis=0) / dt_s
        np.testing.assert_allclose(episode["pace_tool"][1:-1], 0.5 * (pace[1:] + pace[:-1]), atol=1e-3)
    found = recorded(scenario, session)
    off = np.linalg.norm(found.channels["tool_position"] - found.channels["goal_tool"], axis=-1)
    np.testing.assert_array_equal(found.success, off[:, -1] < 0.03)


def test_a_path_through_points_comes_back_to_the_first(tmp_path):
    points = "[[0, -1, 1, 0, 0, 0], [1, -1, 1, 0, 0, 0], [1, -1, 2, 0, 0, 0]]"
    path = f"track: {{of: joint_position, within: 0.1, period_s: 3.0, through: {points}}}"
    task = tried_task(said(tmp_path / "r", "reach", f"action: {{step: 0.1}}\n{path}"))
    at = {"joint_position": np.zeros((4, 6)), "phase_joint_position": np.zeros((4, 1))}
    there = task.completed({**at, TIME: np.array([[0.0], [0.5], [1.5], [3.0]])})
    np.testing.assert_allclose(there["goal_joint_position"][:, [0, 2]], [[0, 1], [0.5, 1], [1, 1.5], [0, 1]], atol=1e-9)
    np.testing.assert_allclose(there["pace_joint_position"][1], [1, 0, 0, 0, 0, 0], atol=1e-6)


def test_what_must_be_held_has_succeeded_once_it_was_held_to_the_end(tmp_path):
    near = "action: {step: 0.1}\nbalance: {of: joint_position, near: [0, -1, 1, 0, 0, 0], within: 0.6}\n"
    start = "start: {lift: [-1, -1], elbow: [1, 1]}\n"
    scenario = said(tmp_path / "r", "reach", f"{near}{start}held_s: 0.5")
    envs, dt_s = TaskVecEnv(scenario, scenario.space.nominal, 2), scenario.control_dt_s
    envs.reset()
    task, world = envs.task, envs.world
    world.place(np.arange(2), task.reset(generator(0, "x"), 2))
    seen = []
    for _ in range(round(0.8 / dt_s)):
        assert task.reached(world.channels).all(), "it stays where it begins"
        seen.append(task.succeeded(world.channels)[0])
        world.step(np.zeros((2, 6)))
    assert seen == [row * dt_s >= 0.5 - 1e-9 for row in range(len(seen))]
    for _ in range(8):
        world.step(np.ones((2, 6)))
    assert not task.succeeded(world.channels).any()
    assert (world.channels[HELD] == 0).all()
    envs.close()
    session = StandIn(scenario, 1).collect(Held(), CollectionPlan("session-001", 2, seed=3), ignore)
    assert recorded(scenario, session).success.all(), "a lab's recording says nothing of how long: that follows"


def test_its_stand_in_records_goals_and_sites_and_the_copy_that_is_saved_has_it_too(tmp_path):
    scenario = said(tmp_path / "r", "reach", REACH)
    assert check_beginning(LoopConfig(scenario=str(tmp_path / "r" / "scenario.yaml"))).name == "reach"

    session = StandIn(scenario, 1).collect(Held(), CollectionPlan("session-001", 2, seed=3), ignore)
    check_session(session, scenario.channels)
    assert {"action", "clipped", "goal_tool", "tool_position"} <= set(session.episodes[0].values)
    assert recorded(scenario, session).success.shape == (2,)
    saved = load_scenario(scenario.save(tmp_path / "saved"))
    assert [term.name for term in task_of(saved).terms] == [term.name for term in task_of(scenario).terms]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "of: tool",
            "of: tol",
            "task, reach: got 'tol'; expected a site (tool) or a measured channel (joint_position)",
        ),
        (
            "turn:",
            "torn:",
            "task, start: got 'torn'; expected one of turn, lift, elbow, roll, pitch, spin, or a free body",
        ),
        ("[-1.2, 1.2]", "1.2", "task, start: got turn: 1.2; expected two numbers, from and to"),
        ("[-1.2, 1.2]", "[-7, -6]", "task of reach, reset: got joint turn at -"),
        ("joint_position: 0.01", "joints: 0.01", "smoothness: got 'joints'; expected action, or one of joint_position"),
        ("step: 0.1", "step: [1, 2]", "task, action: got step [1, 2]; expected a number, or 6, one a command"),
        ("within: 0.015", "within: 0", "task, reach: got within 0; expected a number above 0"),
        (", within: 0.015", "", "task, reach: got no within; expected all of of, within"),
        ("reach:", "limits: {q: [0, 1]}\nreach:", "task, limits: got 'q'; expected one of joint_position"),
        ("reach: {of: tool, within: 0.015}", "", "task: got no term that says when it has succeeded"),
        ("start:", "held_s: 60\nstart:", "task: got held_s 60; expected at most "),
        ("reach: {", "track: {period_s: 2, ", "task, track: got no path; expected either `through`, or `amplitude`"),
        (
            "reach: {",
            "track: {period_s: 2, through: [[0, 0], [1, 1]], ",
            "task, track: got points of 2 numbers; expected 3 numbers, one a column of tool",
        ),
        (
            "reach: {",
            "track: {period_s: 2, through: [[0, 0, 0]], ",
            "expected two or more points, each a list of numbers",
        ),
        ("reach:", "raech:", "task: got 'raech'; expected 'reach'"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path, old, new, words):
    assert REACH.count(old) == 1
    with pytest.raises(RsrError) as raised:
        tried_task(said(tmp_path / "r", "reach", REACH.replace(old, new)))
    assert words in str(raised.value)


def test_a_task_in_a_file_of_its_own_is_the_same_and_no_part_of_the_model(tmp_path):
    scenario = said(tmp_path / "lab", "reach", REACH)
    file, beside = tmp_path / "lab" / "scenario.yaml", tmp_path / "lab" / "reach_task.yaml"
    document = yaml.safe_load(file.read_text())
    beside.write_text(yaml.safe_dump(document["task"]))
    file.write_text(yaml.safe_dump(document | {"task": "reach_task.yaml"}, sort_keys=False))
    again = load_scenario(tmp_path / "lab")
    assert [term.name for term in task_of(again).terms] == [term.name for term in task_of(scenario).terms]
    take_in(str(file), tmp_path / "w")
    workspace = Workspace(tmp_path / "w")
    own = workspace.scenario_dir
    assert (own / "reach_task.yaml").is_file()
    assert [path.name for path in workspace.model_files] == ["scenario.yaml", "scene.xml"]
    beside.write_text(beside.read_text().replace("0.015", "0.5"))
    (figure,) = [each for each in task_of(load_scenario(tmp_path / "lab")).figures if each.tolerance]
    assert figure.tolerance == 0.5, "an edit is seen"
    beside.unlink()
    with pytest.raises(RsrError, match="reach_task.yaml: got .*No such file.*expected YAML, as a section `task` would"):
        load_scenario(tmp_path / "lab")


def test_one_of_the_two_forms(tmp_path):
    said(tmp_path / "r", "reach", REACH)
    (tmp_path / "r" / "task.py").write_text("TASK = None\n")
    with pytest.raises(RsrError, match="got a section `task`, and task.py beside it; expected one of the two"):
        load_scenario(tmp_path / "r")


def test_it_steps_in_the_environment(tmp_path):
    scenario = said(tmp_path / "r", "reach", REACH)
    envs = TaskVecEnv(scenario, scenario.space.nominal, 4)
    envs.reset()
    _, reward, _, _ = envs.step(np.zeros((4, 6)))
    assert np.isfinite(reward).all()
    envs.close()


@pytest.mark.slow
def test_it_is_learnt(tmp_path):
    """The share of training episodes that succeed, exploration noise on, goes from nothing to most."""
    scenario = said(tmp_path / "r", "reach", REACH)
    trained = train(scenario, scenario.space.nominal, settings_from_scratch("ppo", scenario, None), 1, ignore)
    assert trained.curve[0]["success"] < 0.1
    assert trained.curve[-1]["success"] > 0.5
