"""A lab's work with DVC on a finished campaign: plots, models, what-if experiments, another machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from toy import TABLE, TABLE_NAME
from toy.bare import find_faults, fingerprint, run_bare_loop

from rsr.pipelines import render_pipeline, with_curves
from rsr.workspace import Workspace
from rsr_tasks import bookkeeping, versions
from rsr_tasks.campaign import finished, opened

_ENVIRONMENT = {
    **os.environ,
    "GIT_AUTHOR_NAME": "test",
    "GIT_AUTHOR_EMAIL": "test@localhost",
    "GIT_COMMITTER_NAME": "test",
    "GIT_COMMITTER_EMAIL": "test@localhost",
}


def run(root: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=root, env=_ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def dvc(root: Path, *arguments: str) -> str:
    return run(root, sys.executable, "-m", "dvc", *arguments)


@pytest.fixture(scope="module")
def with_remote(tmp_path_factory):
    """A finished campaign of two iterations, everything of it in a DVC remote in another folder."""
    folder = tmp_path_factory.mktemp("lab")
    root = folder / "workspace"
    run_bare_loop(root, 2)
    dvc(root, "remote", "add", "--default", "shared", str(folder / "remote"))
    assert bookkeeping.push(root)
    run(root, "git", "commit", "--quiet", "-m", "remote", "--", ".dvc/config")
    return root


@pytest.mark.slow
def test_plots_show_each_iterations_learning(with_remote):
    shown = json.loads(dvc(with_remote, "plots", "show", "--json"))
    curve = shown["data"]["Return while learning"][0]["content"]["data"]["values"]
    assert {row["filename"] for row in curve} == {"001/policy/curve.json", "002/policy/curve.json"}


def test_plots_show_how_the_gap_closes_from_iteration_to_iteration(with_remote):
    shown = json.loads(dvc(with_remote, "plots", "show", "--json"))
    (gap,) = shown["data"]["Gap between reality and simulation"]
    drawn = [
        (each["field"], each["iteration"], each["dvc_inferred_y_value"]) for each in gap["content"]["data"]["values"]
    ]
    rows = Workspace(with_remote).rows()
    assert drawn == [(name, row["iteration"], row[name]) for name in ("gap_before", "gap_after") for row in rows]
    assert {"Divergence of reality from simulation", "Success of the deployed policy"} <= set(shown["data"])


def test_the_pipeline_names_plots_and_models_of_the_chain(with_remote):
    text = (with_remote / "dvc.yaml").read_text()
    workspace = Workspace(with_remote)
    assert text == render_pipeline(with_curves(TABLE, workspace.rows()), workspace)
    assert "kl_x" in text
    assert "plots:" not in render_pipeline(TABLE)


def test_a_model_of_any_iteration_is_fetched_by_its_version(with_remote, tmp_path):
    for version in (1, 2):
        target = tmp_path / f"policy-{version}"
        dvc(tmp_path, "artifacts", "get", str(with_remote), "policy", "--rev", f"v{version}.0.0", "-o", str(target))
        kept = Workspace(with_remote).policy_dir(version) / "policy.npz"
        assert (target / "policy.npz").read_bytes() == kept.read_bytes()


def test_another_machine_pulls_every_byte_and_has_nothing_to_do(with_remote, tmp_path):
    clone = tmp_path / "clone"
    run(tmp_path, "git", "clone", "--quiet", str(with_remote), str(clone))
    dvc(clone, "pull")
    assert json.loads(dvc(clone, "status", "--json")) == {}
    with opened(clone, TABLE_NAME) as campaign:
        assert finished(campaign, 2)
    assert "Running stage" not in dvc(clone, "repro")
    assert fingerprint(clone) == fingerprint(with_remote)
    assert find_faults(clone, 2) == []


def test_one_iteration_alone_is_restored_from_the_remote(with_remote, tmp_path):
    clone = tmp_path / "clone"
    run(tmp_path, "git", "clone", "--quiet", str(with_remote), str(clone))
    dvc(clone, "pull", "retrain@1")
    name = "iterations/001/policy/policy.npz"
    assert (clone / name).read_bytes() == (with_remote / name).read_bytes()
    assert not (clone / "iterations/002/policy").exists()


def test_a_remote_that_is_away_is_an_error_that_says_so_and_harms_nothing(with_remote, tmp_path):
    from rsr.common.errors import WorkspaceError

    clone = tmp_path / "clone"
    run(tmp_path, "git", "clone", "--quiet", str(with_remote), str(clone))
    dvc(clone, "pull")
    dvc(clone, "remote", "modify", "shared", "url", "/proc/nowhere")
    with pytest.raises((WorkspaceError, OSError)):
        bookkeeping.push(clone)
    dvc(clone, "remote", "modify", "shared", "url", str(with_remote.parent / "remote"))
    assert bookkeeping.push(clone)


@pytest.mark.slow
def test_a_what_if_run_of_one_iteration_leaves_the_campaign_as_it_was(with_remote, tmp_path):
    clone = tmp_path / "clone"
    run(tmp_path, "git", "clone", "--quiet", str(with_remote), str(clone))
    dvc(clone, "pull")
    with opened(clone, TABLE_NAME):
        pass  # writes .rsr/python, by which the pipeline finds this Python
    before = fingerprint(clone)
    what_if = ("--set-param", "iterations/002/params.yaml:retrain.train_steps=7", "--name", "less", "retrain@2")
    dvc(clone, "exp", "run", "--temp", *what_if)
    assert fingerprint(clone) == before
    shown = json.loads(dvc(clone, "exp", "show", "--json"))
    assert "less" in json.dumps(shown)
    assert versions.git(clone, "status", "--porcelain") == ""


@pytest.mark.slow
def test_a_campaign_goes_through_an_s3_store(with_remote, tmp_path, monkeypatch):
    server = pytest.importorskip("moto.server", reason="needs moto, which speaks S3 here: pip install 'moto[server]'")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
        monkeypatch.setitem(_ENVIRONMENT, name, "test")
    store = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    store.start()
    try:
        host, port = store.get_host_and_port()
        address = f"http://{host}:{port}"
        urlopen(Request(f"{address}/campaigns", method="PUT")).close()
        there, here = tmp_path / "there", tmp_path / "here"
        run(tmp_path, "git", "clone", "--quiet", str(with_remote), str(there))
        dvc(there, "pull")
        dvc(there, "remote", "add", "--default", "--force", "shared", "s3://campaigns/rsr")
        dvc(there, "remote", "modify", "shared", "endpointurl", address)
        assert bookkeeping.push(there)
        run(there, "git", "commit", "--quiet", "-m", "remote", "--", ".dvc/config")
        run(tmp_path, "git", "clone", "--quiet", str(there), str(here))
        dvc(here, "pull")
        assert fingerprint(here) == fingerprint(with_remote)
        assert "Running stage" not in dvc(here, "repro")
    finally:
        store.stop()
