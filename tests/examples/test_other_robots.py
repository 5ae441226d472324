"""Other robots of MuJoCo Menagerie, their files as they are, by changing the names in a scenario that there is."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from shared_data import shared_data
from small_steps import SMALL, SMALL_TABLE
from toy.bare import find_faults

from rsr import scenarios
from rsr.common.progress import ignore
from rsr.config import InfoGapConfig
from rsr.environments.task_trial import tried_task
from rsr.environments.vector import TaskVecEnv
from rsr.realities import CollectionPlan, StandIn
from rsr.scenarios import load_scenario
from rsr.sessions import check_session
from rsr_tasks.begin import begin
from rsr_tasks.loop import run_bare_loop

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "so100_reach"
QUADROTOR = Path(scenarios.__file__).parent / "built_in" / "quadrotor"
ARM = "waist, shoulder, elbow, forearm_roll, wrist_angle, wrist_rotate"
WX250S = {
    "scenario.yaml": (
        ("so_arm100.xml", "wx250s.xml"),
        ("Fixed_Jaw", "wx250s/gripper_link"),
        ("0.01 -0.09 0", "0.09 0 0"),
        ("&joints [Rotation, Pitch, Elbow, Wrist_Pitch, Wrist_Roll, Jaw]", f"&joints [{ARM}, left_finger]"),
        ("&motors [Rotation, Pitch, Elbow, Wrist_Pitch, Wrist_Roll, Jaw]", f"&motors [{ARM}, gripper]"),
    ),
    "task.py": (
        ("[0.0, -1.57, 1.57, 0.5, 0.0, 0.3]", "[0.0, -0.96, 1.16, 0.0, -0.3, 0.0, 0.015, -0.015]"),
        ("[0.9, 0.5, 0.5, 0.5, 0.5, 0.0]", "[0.9, 0.3, 0.3, 0.0, 0.4, 0.0, 0.0, 0.0]"),
        ("[-0.20, -0.42, 0.06]", "[0.2, -0.2, 0.1]"),
        ("[0.20, -0.20, 0.26]", "[0.4, 0.2, 0.35]"),
    ),
}
"""All that docs/own-robot.md says to change: names, where the tool sits, home pose and the box of goals."""


def wx250s(folder: Path) -> Path:
    """The arm of `examples/so100_reach` exchanged."""
    shutil.copytree(shared_data("../robots/trossen_wx250s"), folder / "robot")
    for name, edits in WX250S.items():
        text = (EXAMPLE / name).read_text()
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        (folder / name).write_text(text)
    return folder


def skydio_x2(folder: Path) -> Path:
    """The frame of `quadrotor` exchanged; the maker's motors have no lag."""
    shutil.copytree(shared_data("../robots/skydio_x2"), folder / "robot")
    text = (QUADROTOR / "scenario.yaml").read_text()
    text = re.sub(r"  motor_lag:\n(    .*\n)+", "", text)
    text = re.sub(r"    motor_lag: .*\n", "", text)
    for old, new in (
        ("scene.xml", "robot/x2.xml"),
        (": frame}", ": x2}"),
        ("rotor", "thrust"),
        ("quadthrust", "quadrotor"),
    ):
        text = text.replace(old, new)
    (folder / "scenario.yaml").write_text(text.replace("name: quadrotor", "name: skydio_hover"))
    (folder / "task.py").write_text((QUADROTOR / "task.py").read_text().replace("2.207", "3.2495625"))
    return folder


ENOUGH = InfoGapConfig(transitions=400)
"""More columns of state than a block on a table has."""
ROBOTS = {"wx250s": wx250s, "skydio_x2": skydio_x2}


class Still:
    """Acts as the middle of the range, or leaves a setpoint where it is."""

    def __init__(self, size: int) -> None:
        self.size = size

    def act(self, observation: np.ndarray) -> np.ndarray:
        return np.zeros((len(observation), self.size))


@pytest.mark.parametrize("name", ROBOTS)
def test_its_stand_in_records_a_session_and_a_policy_can_be_trained(tmp_path, name):
    scenario = load_scenario(ROBOTS[name](tmp_path / name))
    task = tried_task(scenario)
    session = StandIn(scenario, 1).collect(Still(task.action.size), CollectionPlan("session-001", 2, seed=3), ignore)
    check_session(session, scenario.channels)
    envs = TaskVecEnv(scenario, scenario.space.nominal, 4)
    assert envs.reset().shape == (4, task.observation_size)
    _, reward, _, _ = envs.step(np.zeros((4, task.action.size)))
    assert np.isfinite(reward).all()
    envs.close()


def test_a_rover_with_its_task_in_yaml_alone_records_on_its_stand_in():
    scenario = load_scenario(EXAMPLE.parent / "rover")
    task = tried_task(scenario)
    session = StandIn(scenario, 1).collect(Still(task.action.size), CollectionPlan("session-001", 2, seed=3), ignore)
    check_session(session, scenario.channels)


@pytest.mark.slow
@pytest.mark.parametrize("name", ROBOTS)
def test_from_the_folder_to_the_report_of_the_first_iteration(tmp_path, name):
    settings = SMALL.model_copy(update={"scenario": str(ROBOTS[name](tmp_path / name)), "infogap": ENOUGH})
    workspace = begin(tmp_path / "campaign", settings)
    (row,) = run_bare_loop(workspace.root, 1, SMALL_TABLE)
    assert row["gap_after"] < row["gap_before"]
    assert find_faults(workspace.root, 1, SMALL_TABLE) == []
    page = workspace.report_path(1).read_text()
    assert "Not shown: curve" not in page
    assert "distance" in page
