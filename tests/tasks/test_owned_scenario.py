"""A campaign owns its scenario: copied when it begins, versioned, and what reads it stale after an edit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from own_arm import write_own_arm
from toy import TABLE_NAME
from toy.bare import find_faults, run_bare_loop

from rsr.common.errors import ConfigError, WorkspaceError
from rsr.config import LoopConfig
from rsr.pipelines import CLASH, GNN, TABLE
from rsr.scenarios import load_scenario, scenario_of
from rsr.workspace import Workspace
from rsr_tasks import bookkeeping, versions
from rsr_tasks.begin import begin
from rsr_tasks.campaign import opened
from rsr_tasks.own_scenario import is_same

ROBOTS = Path(__file__).resolve().parents[3] / "shared" / "robots"
MESH = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
AFTER_TASK = {"start", "infogap@1", "retrain@1", "evaluate@1", "report@1"}
AFTER_MODEL = AFTER_TASK | {"tune@1"}


@pytest.fixture
def lab(tmp_path) -> Path:
    """A lab's own scenario: a YAML file, an MJCF with a mesh, and a task."""
    folder = tmp_path / "lab"
    shutil.copytree(Path(load_scenario("push_cube").mjcf).parent, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "assets").mkdir()
    (folder / "assets/m.obj").write_text(MESH)
    scene = folder / "scene.xml"
    asset = '<asset><mesh name="m" file="assets/m.obj"/></asset>'
    scene.write_text(scene.read_text().replace("</mujoco>", f"{asset}</mujoco>"))
    return folder


def test_each_edit_makes_the_stages_stale_that_read_it(tmp_path, lab):
    root = tmp_path / "w"
    run_bare_loop(root, 1, TABLE_NAME, LoopConfig(scenario=str(lab / "scenario.yaml")))
    assert find_faults(root, 1) == []
    own = root / "scenario"
    edits = {
        own / "scenario.yaml": ("upper: ", "upper:  "),
        own / "assets/m.obj": ("v 1 0 0", "v 1.1 0 0"),
        own / "scene.xml": ("</mujoco>", "<!-- edited --></mujoco>"),
        own / "task.py": ("400_000", "500_000"),
    }
    stale = {}
    for file, (old, new) in edits.items():
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new, 1))
        stale[file.name] = bookkeeping.stale(root)
        file.write_text(text)
        assert bookkeeping.stale(root) == set(), "the edit taken back"
    assert stale == {
        "scenario.yaml": AFTER_MODEL,
        "m.obj": AFTER_MODEL,
        "scene.xml": AFTER_MODEL,
        "task.py": AFTER_TASK,
    }


def test_an_edited_effect_makes_everything_stale_that_simulates(tmp_path):
    """Said in the YAML file, or a law of one's own: `tune` depends on the file that the YAML names."""
    path = write_own_arm(tmp_path / "lab")
    law = "def spring(xp, joint, *, stiffness):\n    return rsr.JointForces(torque=-stiffness * joint.position)\n"
    (path.parent / "effects.py").write_text(f"import rsr\n\n\n{law}")
    effect = "effects: {cable: {law: effects.py:spring, joints: elbow, arguments: {stiffness: 0.5}}}\nchannels:"
    path.write_text(path.read_text().replace("channels:", effect, 1))
    root = tmp_path / "w"
    run_bare_loop(root, 1, TABLE_NAME, LoopConfig(scenario=str(path)))
    for name, old, new in (("scenario.yaml", "stiffness: 0.5", "stiffness: 0.6"), ("effects.py", "-stiff", "-2*stiff")):
        text = (own := root / "scenario" / name).read_text()
        own.write_text(text.replace(old, new, 1))
        assert bookkeeping.stale(root) == AFTER_MODEL
        own.write_text(text)
        assert bookkeeping.stale(root) == set()


def test_a_built_in_scenario_is_copied_under_its_name_and_read_from_the_campaign(tmp_path):
    root = tmp_path / "w"
    run_bare_loop(root, 1, TABLE_NAME, LoopConfig(scenario="push_cube"))
    assert find_faults(root, 1) == []
    own = root / "scenario"
    assert {"scenario.yaml", "scene.xml", "task.py"} <= {path.name for path in own.iterdir()}
    assert "scenario: push_cube\n" in (root / "params.yaml").read_text()
    workspace = Workspace(root)
    assert workspace.settings().scenario == workspace.config(1).scenario == str(own / "scenario.yaml")
    assert workspace.session_dir(1) == root / "data/push_cube/session-001"
    assert versions.git(root, "ls-files", "scenario").split()
    receipt = json.loads((root / "iterations/001/receipts/evaluate.json").read_text())
    assert "scenario" in receipt["inputs"]
    before = load_scenario(workspace.settings().scenario)
    assert scenario_of(workspace.policy_dir(1), "push_cube") is before, "not the built-in one of the same name"
    assert scenario_of(tmp_path, "push_t").mjcf.parent.name == "push_t"
    with pytest.raises(ConfigError, match="got scenario 'our_arm'; expected a copy of it"):
        scenario_of(workspace.policy_dir(1), "our_arm")
    assert before.space == load_scenario("push_cube").space
    text = (own / "scenario.yaml").read_text()
    (own / "scenario.yaml").write_text(text.replace("title: ", "title: Our own ", 1))
    assert load_scenario(workspace.settings().scenario).title.startswith("Our own")
    assert bookkeeping.stale(root) == AFTER_MODEL


def test_a_moved_and_a_cloned_workspace_go_on(tmp_path):
    run_bare_loop(tmp_path / "w", 1, TABLE_NAME, LoopConfig(scenario="push_cube"))
    (tmp_path / "w").rename(tmp_path / "moved")
    run_bare_loop(tmp_path / "moved", 2, TABLE_NAME)
    assert find_faults(tmp_path / "moved", 2) == []
    versions.git(tmp_path, "clone", "--quiet", "moved", "clone")
    clone = tmp_path / "clone"
    shutil.copytree(tmp_path / "moved/.dvc/cache", clone / ".dvc/cache")  # what `dvc pull` fetches
    shutil.copytree(tmp_path / "moved/data", clone / "data")
    run_bare_loop(clone, 3, TABLE_NAME)
    assert find_faults(clone, 3) == []
    assert Workspace(clone).config(1).scenario == str(clone / "scenario/scenario.yaml")


@pytest.mark.skipif(not ROBOTS.is_dir(), reason="no ../shared/robots")
@pytest.mark.parametrize("robot", ["trs_so_arm100", "trossen_wx250s", "skydio_x2"])
def test_a_robot_of_menagerie_is_copied_with_a_drafted_scenario(tmp_path, monkeypatch, robot):
    pytest.importorskip("mujoco_menagerie")
    monkeypatch.setenv("MENAGERIE_ROOT", str(ROBOTS))
    root = tmp_path / "w"
    with opened(root, config=LoopConfig(scenario=f"menagerie:{robot}")) as campaign:  # a draft, without a task yet
        assert is_same(f"menagerie:{robot}", campaign.workspace)
    monkeypatch.delenv("MENAGERIE_ROOT")  # from here on the campaign's own files are enough
    assert (root / "scenario" / robot / "LICENSE").is_file()
    assert f"mjcf: {robot}/" in (root / "scenario/scenario.yaml").read_text()
    scenario = load_scenario(Workspace(root).settings().scenario)
    assert scenario.name == robot
    assert len(scenario.space) >= 2
    assert Workspace(root).session_dir(1) == root / "data" / robot / "session-001"
    assert versions.git(root, "status", "--porcelain") == ""


def test_the_same_name_is_the_same_scenario_and_another_one_is_not(tmp_path):
    with opened(tmp_path / "w", TABLE_NAME, LoopConfig(scenario="push_cube")) as campaign:
        assert is_same("push_cube", campaign.workspace)
        assert is_same(str(campaign.workspace.scenario_dir), campaign.workspace)
        assert not is_same("push_t", campaign.workspace)


def test_a_scenario_whose_task_was_edited_is_no_longer_the_campaigns(tmp_path, lab):
    with opened(tmp_path / "w", TABLE_NAME, LoopConfig(scenario=str(lab))) as campaign:
        assert is_same(str(lab), campaign.workspace)
        (lab / "task.py").write_text((lab / "task.py").read_text() + "\n")
        assert not is_same(str(lab), campaign.workspace)


def test_a_folder_that_has_a_scenario_takes_no_built_in_one_beside_it(tmp_path, lab):
    lab.rename(tmp_path / "scenario")
    with pytest.raises(WorkspaceError, match="which would be copied there"):
        begin(tmp_path, LoopConfig(scenario="push_cube"))


def test_every_stage_that_reads_the_scenario_depends_on_it_and_only_tuning_is_without_its_python():
    for table in (TABLE, CLASH, GNN):
        assert [step.name for step in table.stages if not step.reads_task] == (["tune"] if table is TABLE else [])
