"""Hostile and broken recordings in a campaign: refused with a clear word, set aside whole, and the loop goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import toy
from toy.bare import find_faults

from rsr.common.errors import Refused
from rsr.common.files import sha256, write_arrays, write_json
from rsr.common.progress import Advance, ignore
from rsr.config import LoopConfig, RealityConfig
from rsr.pipelines.lab.arrivals import answer
from rsr.policies import Normaliser, Policy
from rsr.realities import CollectionPlan, StandIn
from rsr.scenarios import load_scenario, task_of
from rsr.sessions import read_session, write_session
from rsr.workspace import Workspace
from rsr_tasks.campaign import opened
from tests.sessions import hostile_files
from tests.sessions.hostile_files import ALLOWED_MB, ARCHIVES, LIES, UNSAFE

PROJECT = Path(__file__).resolve().parents[2]


def start(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """A policy that stands still: what the real step of collecting needs."""
    size = task_of(load_scenario("push_cube")).observation_size
    layers = ((np.zeros((2, size), np.float32), np.zeros(2, np.float32)),)
    normaliser = Normaliser(np.zeros(size), np.ones(size), 10.0)
    Policy(task_of(load_scenario("push_cube")), normaliser, layers).save(workspace.policy_dir(0))
    write_json(workspace.calibration_dir(0) / "calibration.json", {"status": "prior", "friction": 0.2})


def tune(workspace: Workspace, iteration: int, advance: Advance) -> None:
    episodes = read_session(workspace.session_dir(iteration)).episodes
    friction = float(np.mean([episode["block_position"].mean() for episode in episodes]))
    folder = workspace.calibration_dir(iteration)
    write_json(folder / "calibration.json", {"status": "converged", "friction": friction})
    write_arrays(folder / "trajectories.npz", {"simulated": np.array([friction])})


def retrain(workspace: Workspace, iteration: int, advance: Advance) -> None:
    shutil.copytree(workspace.policy_dir(iteration - 1), workspace.policy_dir(iteration))
    write_json(workspace.policy_dir(iteration) / "curve.json", [{"steps": 0, "mean_return": 0.0, "success": 0.0}])


_OURS = {name: f"tests.flows.test_unsafe_drops:{name}" for name in ("start", "tune", "retrain")}
TABLE = replace(
    toy.TABLE,
    stages=tuple(replace(step, function=_OURS.get(step.name, step.function)) for step in toy.TABLE.stages),
    collect=replace(toy.TABLE.collect, function="rsr.pipelines.loop.collect:collect"),
)
TABLE_NAME = "tests.flows.test_unsafe_drops:TABLE"
LAB = LoopConfig(reality=RealityConfig(kind="inbox", episodes=2, largest_mb=ALLOWED_MB))

FOLDERS = {**{f"unsafe: {name}": UNSAFE[name] for name in UNSAFE}, **{f"lie: {name}": LIES[name] for name in LIES}}


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Path:
    """A lab's recording when all is well."""
    folder = tmp_path_factory.mktemp("lab")
    workspace = Workspace(folder / "policy")
    start(workspace, 0, ignore)
    plan = CollectionPlan("session-001", 2, 5)
    return write_session(
        folder, StandIn(load_scenario("push_cube"), 1).collect(Policy.load(workspace.policy_dir(0)), plan, ignore)
    )


def spoilt(good: Path, folder: Path, name: str) -> Path:
    """A copy of the good session with something wrong, in a folder of its own."""
    copy = shutil.copytree(good, folder / "session-001")
    change: Callable = FOLDERS[name][0]
    if name.startswith("lie"):
        change(copy)
    else:
        change(copy, folder / "sprung")
    for path in (copy, *copy.rglob("*")):  # copied long ago: nothing of it is still arriving
        if not path.is_symlink():
            os.utime(path, (0, 0))
    return copy


@pytest.mark.slow
def test_the_loop_refuses_every_bad_drop_and_goes_on_with_the_good_one(tmp_path, good, prefect_server):
    from rsr_flows.rsr_loop import rsr_loop

    root = tmp_path / "campaign"
    with opened(root, TABLE_NAME, LAB) as made:
        workspace = made.workspace
    inbox, aside = root / "inbox", root / "inbox" / "rejected"
    chosen = ["unsafe: pickle", "unsafe: sparse 2 GB", "lie: flipped bit", "lie: robot"]
    for number, name in enumerate(chosen, 1):
        inbox.mkdir(exist_ok=True)
        dropped = shutil.move(spoilt(good, tmp_path / f"drop-{number}", name), inbox / "session-001")
        files = {path.relative_to(dropped) for path in Path(dropped).rglob("*")}
        assert rsr_loop(str(root), 1, TABLE_NAME) == []
        moved = aside / f"session-001-{number}"
        assert FOLDERS[name][1] in (aside / f"{moved.name}.txt").read_text()
        assert FOLDERS[name][1] in workspace.waiting_path.read_text()
        assert {path.relative_to(moved) for path in moved.rglob("*")} == files
        assert not (tmp_path / f"drop-{number}" / "sprung").exists()
    archive = hostile_files.zip_with(inbox / "session-001.zip", "../../params.yaml", b"seed: 666")
    before = (root / "params.yaml").read_bytes()
    rsr_loop(str(root), 1, TABLE_NAME)
    assert (root / "params.yaml").read_bytes() == before
    assert not archive.exists()
    number = len(chosen) + 1
    assert (aside / f"session-001-{number}.zip").is_file()
    assert "which leads out of the archive" in (aside / f"session-001-{number}.txt").read_text()

    hostile_files.packed(good, inbox / "session-001.tar.gz")
    assert [row["iteration"] for row in rsr_loop(str(root), 1, TABLE_NAME)] == [1]
    assert read_session(workspace.session_dir(1)).card == read_session(good).card
    assert find_faults(root, 1, TABLE_NAME) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", FOLDERS)
def test_the_form_of_a_visit_takes_none_of_them(tmp_path, good, name):
    with opened(tmp_path / "campaign", TABLE_NAME, LAB) as made:
        made.workspace.plan(0)
    source = spoilt(good, tmp_path / "lab", name)
    with pytest.raises(Refused) as caught:
        answer(made.workspace, [source])
    assert FOLDERS[name][1] in str(caught.value)
    assert [path.name for path in (made.workspace.root / "inbox").glob("*")] == []


def ingest(source: Path, where: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rsr", "ingest", str(source), "--scenario", "push_cube", *options]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    return subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("name", ["unsafe: pickle", "lie: flipped bit"])
def test_the_command_sets_a_folder_aside_with_the_reason(tmp_path, good, name):
    source = spoilt(good, tmp_path / "lab", name)
    done = ingest(source, tmp_path, "--largest-mb", str(ALLOWED_MB), "--quarantine", "aside")
    moved = Path("aside/session-001-1")
    assert done.returncode == 2
    assert FOLDERS[name][1] in done.stderr
    assert f"Nothing was stored, the source is now {moved}" in done.stderr
    assert (tmp_path / moved).is_dir()
    assert FOLDERS[name][1] in (tmp_path / "aside" / "session-001-1.txt").read_text()
    assert not (tmp_path / "data").exists()


def test_the_command_sets_an_archive_aside_where_it_is_told(tmp_path):
    make, words = ARCHIVES["tar link"]
    done = ingest(make(tmp_path), tmp_path, "--quarantine", "aside")
    assert words in done.stderr
    assert (tmp_path / "aside" / "a-1.tar.gz").is_file()


def test_a_good_visit_is_stored_from_an_archive(tmp_path, good):
    archive = hostile_files.packed(good, tmp_path / "visit.zip")
    done = ingest(archive, tmp_path)
    assert done.returncode == 0, done.stderr
    stored = read_session(tmp_path / done.stdout.strip())
    assert len(stored.episodes) == 2
    assert sha256(tmp_path / done.stdout.strip() / "raw/files/session-001/meta/rsr_card.json") == sha256(
        good / "meta/rsr_card.json"
    )
