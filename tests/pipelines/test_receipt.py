"""Running a step leaves a receipt; running it where it cannot run says why."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
import toy

from rsr.common.errors import ConfigError, WorkspaceError
from rsr.common.files import read_json, sha256
from rsr.common.progress import ignore
from rsr.config import LoopConfig, dump_config
from rsr.pipelines import leave_receipt, run_step
from rsr.workspace import Workspace


@pytest.fixture
def workspace(tmp_path):
    """Iteration 1 planned, recorded, and not yet tuned."""
    (tmp_path / "iterations.json").write_text('{"chain": {}}')
    dump_config(LoopConfig(seed=5), tmp_path / "params.yaml")
    workspace = Workspace(tmp_path)
    workspace.plan(0)
    workspace.plan(1)
    run_step(workspace, "start", 0, ignore, toy.TABLE)
    run_step(workspace, "collect", 1, ignore, toy.TABLE)
    return workspace


def test_a_receipt_leads_back_to_data_settings_code_and_versions(workspace):
    run_step(workspace, "tune", 1, ignore, toy.TABLE)
    receipt = read_json(workspace.receipts_dir(1) / "tune.json")
    assert receipt["inputs"] == {
        "data/push_cube/session-001": sha256(workspace.session_dir(1)),
        "iterations/000/calibration": sha256(workspace.calibration_dir(0)),
    }
    assert receipt["outputs"] == {"iterations/001/calibration": sha256(workspace.calibration_dir(1))}
    assert receipt["settings"]["tune"] == LoopConfig().tune.model_dump()
    assert (receipt["step"], receipt["iteration"], receipt["seed"]) == ("tune", 1, 5)
    assert receipt["verdict"] == "converged"
    assert receipt["duration_s"] >= 0
    assert receipt["started_at"].endswith("+00:00")
    assert {"python", "numpy", "dvc"} <= receipt["versions"].keys()
    assert receipt["code"]


def test_a_changed_byte_of_data_changes_the_receipt(workspace):
    session = workspace.session_dir(1)
    before = sha256(session)
    (session / "card.json").write_text("{}")
    run_step(workspace, "tune", 1, ignore, toy.TABLE)
    after = read_json(workspace.receipts_dir(1) / "tune.json")["inputs"]["data/push_cube/session-001"]
    assert after == sha256(session) != before
    assert len(after) == len(hashlib.sha256().hexdigest())


def test_results_that_were_there_already_get_a_receipt_without_times(workspace):
    leave_receipt(workspace, toy.TABLE.collect, 1)
    receipt = read_json(workspace.receipts_dir(1) / "collect.json")
    assert (receipt["started_at"], receipt["duration_s"], receipt["verdict"]) == (None, None, "finished")
    assert receipt["outputs"] == {"data/push_cube/session-001": sha256(workspace.session_dir(1))}


def test_a_step_before_its_inputs(workspace):
    with pytest.raises(WorkspaceError) as caught:
        run_step(workspace, "retrain", 1, ignore, toy.TABLE)
    assert str(caught.value) == (
        f"step 'retrain' in {workspace.root}: got no iterations/001/calibration; "
        "expected a file or folder that the table of steps names. "
        "Run the steps before it first: `dvc repro` does, in their order."
    )


def test_an_iteration_that_was_never_planned(workspace):
    with pytest.raises(WorkspaceError) as caught:
        run_step(workspace, "tune", 3, ignore, toy.TABLE)
    assert str(caught.value) == (
        f"{workspace.chain_path}: got iteration 3 for step 'tune'; expected one of 1. "
        "Let the loop plan it: `rsr-loop --iterations 3`."
    )


def test_a_step_that_does_not_write_what_it_should(workspace):
    silent = replace(toy.TABLE.step("tune"), function="toy:idle")
    table = replace(toy.TABLE, stages=(silent,))
    with pytest.raises(WorkspaceError, match="got no iterations/001/calibration.*this is a bug of the step"):
        run_step(workspace, "tune", 1, ignore, table)


def test_unknown_step(workspace):
    with pytest.raises(ConfigError, match="got step 'fly'; expected one of start, tune"):
        run_step(workspace, "fly", 1, ignore, toy.TABLE)
