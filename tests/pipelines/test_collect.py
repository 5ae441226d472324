"""Where sessions come from is a setting: stand-in, inbox, robot."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from rsr.common.errors import ConfigError, Waiting
from rsr.common.files import sha256, write_json
from rsr.common.progress import ignore
from rsr.config import LoopConfig, dump_config, parse_config
from rsr.pipelines.loop.collect import collect
from rsr.policies import Normaliser, Policy
from rsr.scenarios import load_scenario, task_of
from rsr.sessions import read_session, write_session
from rsr.workspace import Workspace

STAND_IN_FILE = Path(__file__).parents[2] / "examples" / "robots" / "stand_in.yaml"


def workspace(root: Path, **reality) -> Workspace:
    """A workspace whose first session is to be recorded with a policy that stands still."""

    write_json(root / "iterations.json", {"chain": {}})
    settings = parse_config({"reality": {"episodes": 2, **reality}}, "test")
    dump_config(settings, root / "params.yaml")
    made = Workspace(root)
    made.plan(0)
    made.plan(1)
    task = task_of(load_scenario("push_cube"))
    size = task.observation_size
    layers = ((np.zeros((2, size), np.float32), np.zeros(2, np.float32)),)
    Policy(task, Normaliser(np.zeros(size), np.ones(size), 10.0), layers).save(made.policy_dir(0))
    return made


def test_stand_in(tmp_path):
    made = workspace(tmp_path)
    collect(made, 1, ignore)
    card = read_session(made.session_dir(1)).card
    assert (card.reality, card.policy_sha256) == ("stand_in", sha256(made.policy_dir(0) / "policy.npz"))


def test_robot(tmp_path):
    made = workspace(tmp_path, kind="robot", robot="lab/stand_in.yaml", real_time=False)
    (tmp_path / "lab").mkdir()
    shutil.copy(STAND_IN_FILE, tmp_path / "lab" / "stand_in.yaml")
    collect(made, 1, ignore)
    session = read_session(made.session_dir(1))
    assert (session.card.reality, session.card.simulated, len(session.episodes)) == ("robot", True, 2)
    assert session.card.policy_sha256 == sha256(made.policy_dir(0) / "policy.npz")


def test_inbox(tmp_path):
    made = workspace(tmp_path / "loop", kind="inbox")
    with pytest.raises(Waiting):
        collect(made, 1, ignore)
    assert not made.session_dir(1).exists()
    lab = workspace(tmp_path / "lab")
    collect(lab, 1, ignore)
    session = read_session(lab.session_dir(1))
    shutil.move(write_session(tmp_path / "usb stick", session), tmp_path / "loop" / "inbox" / "session-001")
    collect(made, 1, ignore)
    assert read_session(made.session_dir(1)).card == session.card


def test_robot_without_its_file(tmp_path):
    with pytest.raises(ConfigError, match="expected the YAML file of a robot"):
        collect(workspace(tmp_path, kind="robot"), 1, ignore)


def test_a_reality_that_there_is_not(tmp_path):
    with pytest.raises(ConfigError) as caught:
        collect(workspace(tmp_path, kind="dream"), 1, ignore)
    assert str(caught.value) == (
        "test: reality.kind: got 'dream'; expected 'stand_in', 'inbox' or 'robot'. Correct this value."
    )
    assert LoopConfig().reality.kind == "stand_in"
