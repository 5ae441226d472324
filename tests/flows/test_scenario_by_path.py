"""Campaigns whose scenario is a file of the lab's own: copied into the campaign, and used from there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from small_steps import SMALL, SMALL_TABLE
from toy import TABLE_NAME
from toy.bare import find_faults

from rsr import scenarios
from rsr.common.errors import ConfigError, ScenarioError
from rsr.config import LoopConfig
from rsr.realities.cubes import CubesStandIn
from rsr.sessions import write_session
from rsr_tasks import bookkeeping, versions
from rsr_tasks.campaign import CLASH_TABLE, GNN_TABLE, opened, settings_of

_BUILT_IN = Path(scenarios.__file__).parent / "built_in"
_PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def lab(tmp_path) -> Path:
    """A lab's folder with scenarios of its own; nothing of it is at hand under a name."""
    shutil.copytree(_BUILT_IN, tmp_path / "lab", ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    return tmp_path / "lab"


def check_owned(root: Path, scenario: str, lab: Path) -> None:
    """The campaign has its scenario with itself, and is in order without the lab's file."""
    shutil.rmtree(lab)
    assert bookkeeping.stale(root) == set()
    assert versions.git(root, "status", "--porcelain") == ""
    assert (root / f"data/{scenario}/session-001").is_dir()
    assert str(lab) not in (root / "params.yaml").read_text() + (root / "iterations/001/params.yaml").read_text()
    receipt = json.loads(next((root / "iterations/001/receipts").glob("evaluate.json")).read_text())
    assert "scenario" in receipt["inputs"]


@pytest.mark.slow
def test_clash(tmp_path, lab, prefect_server):
    from rsr_flows.clash import clash

    tiny = {"pairs": 600, "train_steps": 120, "targets": 1}
    settings = {"reality": {"episodes": 12}, "tune": {"fit_episodes": 6}, "clash": tiny}
    (row,) = clash(str(tmp_path / "w"), 1, settings | {"scenario": str(lab / "strike_square/scenario.yaml")})
    assert row["judged"].endswith("judged on the other 6")
    check_owned(tmp_path / "w", "strike_square", lab)
    with opened(tmp_path / "w", CLASH_TABLE, settings_of("clash")):
        pass


@pytest.mark.slow
def test_gnn(tmp_path, lab, prefect_server):
    from rsr_flows.gnn import gnn

    settings = {
        "scenario": str(lab / "two_cubes"),
        "reality": {"kind": "inbox", "episodes": 6},
        "tune": {"fit_episodes": 3},
        "gnn": {"teacher_budget": 24, "trajectories": 12, "steps": 6, "finetune_steps": 2},
    }
    with opened(tmp_path / "w", GNN_TABLE, settings_of("gnn", settings)):
        pass
    write_session(tmp_path / "made", CubesStandIn(1).record("session-001", 6))
    shutil.copytree(tmp_path / "made/two_cubes/session-001", tmp_path / "w/inbox/session-001")
    (row,) = gnn(str(tmp_path / "w"), 1, settings)
    assert row["iteration"] == 1
    check_owned(tmp_path / "w", "two_cubes", lab)


def test_the_loop_and_an_edit_makes_what_read_it_stale(tmp_path, lab, prefect_server):
    from rsr_flows.rsr_loop import rsr_loop

    config = SMALL.model_copy(update={"scenario": str(lab / "push_cube/scenario.yaml")})
    with opened(tmp_path / "w", SMALL_TABLE, config):
        pass
    (row,) = rsr_loop(str(tmp_path / "w"), 1, SMALL_TABLE)
    assert row["iteration"] == 1
    check_owned(tmp_path / "w", "push_cube", lab)
    own = next((tmp_path / "w/scenario").rglob("scenario.yaml"))
    own.write_text(own.read_text() + "# a bound was looked at\n")
    assert {"start", "tune@1", "evaluate@1"} <= bookkeeping.stale(tmp_path / "w")


@pytest.mark.slow
def test_the_command_line_takes_the_same_file_again_and_no_other(tmp_path, lab):
    def loop(*options: str) -> subprocess.CompletedProcess[str]:
        command = [
            sys.executable,
            "-m",
            "loop_of",
            TABLE_NAME,
            "--workspace",
            str(tmp_path / "w"),
            "--iterations",
            "1",
            *options,
        ]
        return subprocess.run(command, env=dict(os.environ), capture_output=True, text=True, check=False)

    file = str(lab / "push_cube/scenario.yaml")
    assert loop("--scenario", file).returncode == 0
    assert "Nothing to do" in loop("--scenario", file).stdout
    Path(file).write_text(Path(file).read_text() + "# edited\n")
    refused = loop("--scenario", file)
    assert refused.returncode == 1
    assert f"got --scenario {file}; expected {tmp_path}/w/scenario/" in refused.stderr
    assert find_faults(tmp_path / "w", 1) == []


def test_another_scenario_in_params_yaml_is_an_error_from_the_first_run_on(tmp_path, prefect_server):
    from rsr_flows.rsr_loop import rsr_loop

    rsr_loop(str(tmp_path / "w"), 1, TABLE_NAME, "push_cube")
    settings = tmp_path / "w/params.yaml"
    settings.write_text(settings.read_text().replace("push_cube", "push_t"))
    with pytest.raises(ConfigError, match="got scenario: push_t; expected scenario: push_cube, with which this"):
        rsr_loop(str(tmp_path / "w"), 1, TABLE_NAME)


class TestWhatIsCopied:
    def begin(self, root: Path, scenario: Path) -> Path:
        with opened(root, TABLE_NAME, LoopConfig(scenario=str(scenario))) as campaign:
            return campaign.workspace.scenario_dir

    def test_meshes_come_along_and_recordings_beside_do_not(self, tmp_path, lab):
        folder = lab / "push_cube"
        (folder / "meshes").mkdir()
        (folder / "meshes/m.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
        (folder / "run.csv").write_text("t,x\n")
        mjcf = next(folder.glob("*.xml"))
        asset = '<asset><mesh name="m" file="meshes/m.obj"/></asset>'
        mjcf.write_text(mjcf.read_text().replace("</mujoco>", f"{asset}</mujoco>"))
        own = self.begin(tmp_path / "w", folder / "scenario.yaml")
        assert (own / "meshes/m.obj").exists()
        assert (own / "scenario.yaml").exists()
        assert not list(own.rglob("run.csv"))
        shutil.rmtree(lab)
        with opened(tmp_path / "w", TABLE_NAME) as campaign:
            assert campaign.workspace.settings().scenario == str(own / "scenario.yaml")

    def test_a_path_that_leads_elsewhere_is_refused_and_nothing_is_begun(self, tmp_path, lab):
        mesh = tmp_path / "m.obj"
        mesh.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
        mjcf = next((lab / "push_cube").glob("*.xml"))
        asset = f'<asset><mesh name="m" file="{mesh}"/></asset>'
        mjcf.write_text(mjcf.read_text().replace("</mujoco>", f"{asset}</mujoco>"))
        with pytest.raises(ScenarioError, match="m.obj' leads out of its folder"):
            self.begin(tmp_path / "w", lab / "push_cube/scenario.yaml")
        assert not (tmp_path / "w/params.yaml").exists()

    def test_no_such_file(self, tmp_path):
        with pytest.raises(ConfigError, match="or the path of a scenario's YAML file"):
            self.begin(tmp_path / "w", tmp_path / "none.yaml")
