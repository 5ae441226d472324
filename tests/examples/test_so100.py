"""The walk of docs/own-robot.md with a robot of MuJoCo Menagerie: loaded, and recorded on its stand-in."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from shared_data import shared_data

from rsr.common.progress import ignore
from rsr.environments.vector import TaskVecEnv
from rsr.realities import CollectionPlan, StandIn
from rsr.scenarios import load_scenario, task_of
from rsr.sessions import check_session

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "so100_reach"


class Still:
    def act(self, observation: np.ndarray) -> np.ndarray:
        return np.zeros((len(observation), 6))


@pytest.fixture
def arm(tmp_path):
    shutil.copytree(EXAMPLE, tmp_path / "arm")
    shutil.copytree(shared_data("../robots/trs_so_arm100"), tmp_path / "arm" / "robot")
    return load_scenario(tmp_path / "arm")


def test_its_files_are_as_short_as_the_manual_says():
    assert len((EXAMPLE / "scenario.yaml").read_text().splitlines()) <= 80
    assert len((EXAMPLE / "task.py").read_text().splitlines()) <= 60


def test_its_stand_in_records_a_session_and_a_policy_can_be_trained(arm):
    session = StandIn(arm, 1).collect(Still(), CollectionPlan("session-001", 2, seed=3), ignore)
    check_session(session, arm.channels)
    assert {"action", "clipped"} <= set(session.episodes[0].values), "declared by the loader"
    envs = TaskVecEnv(arm, arm.space.nominal, 4)
    assert envs.reset().shape == (4, task_of(arm).observation_size)
    _, reward, done, _ = envs.step(np.zeros((4, 6)))
    assert np.isfinite(reward).all()
    assert not done.all()
    envs.close()
