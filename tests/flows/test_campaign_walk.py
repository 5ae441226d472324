"""docs/campaign.md, walked as somebody new would: to the second iteration of a campaign that a lab feeds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from small_steps import SMALL
from test_lab import still
from toy.bare import find_faults

from rsr.common.progress import ignore
from rsr.config import dump_config, load_config
from rsr.realities import CollectionPlan, StandIn
from rsr.scenarios import load_scenario
from rsr.sessions import write_session
from rsr.workspace import Workspace
from rsr_tasks import bookkeeping, versions
from rsr_tasks.campaign import DEFAULT_TABLE

PAGE = Path(__file__).resolve().parents[2] / "docs" / "campaign.md"


def commands(heading: str) -> list[str]:
    """The indented lines below a heading of the page."""
    below = PAGE.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^    (\S.*)$", below, re.MULTILINE)


def visit(folder: Path, number: int) -> Path:
    """Recordings as a lab makes them."""
    session = StandIn(load_scenario("push_cube"), 1).collect(
        still(), CollectionPlan(f"visit-{number}", 8, number), ignore
    )
    return write_session(folder, session)


def small(path: Path) -> None:
    """Budgets of seconds, as a person might write them into params.yaml before the first run."""
    kept = load_config(path)
    sections = {name: getattr(SMALL, name) for name in ("start", "infogap", "retrain")}
    tune = SMALL.tune.model_copy(update={"method": "sysid"})
    reality = kept.reality.model_copy(update={"episodes": 8})
    dump_config(kept.model_copy(update={**sections, "tune": tune, "reality": reality}), path)


class Newcomer:
    """Types the page's commands in a folder where `rsr` and `python` are those of the tests."""

    def __init__(self, folder: Path, server: str) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        for name, words in (("rsr", "-m rsr"), ("rsr-loop", "-m rsr_flows.rsr_loop"), ("python", "")):
            (folder / "bin" / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
            (folder / "bin" / name).chmod(0o755)
        path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "PREFECT_API_URL": server}

    def types(self, command: str, **said: str) -> str:
        for word, value in said.items():
            command = command.replace(word, value)
        done = subprocess.run(
            command.split(), cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr


@pytest.mark.slow
def test_in_a_terminal_from_nothing_to_the_second_iteration_and_into_one_file_and_back(tmp_path, prefect_server):
    person, root = Newcomer(tmp_path, prefect_server), tmp_path / "block_on_table"
    init, loop, approve, again, answer, once_more = commands("In a terminal")
    assert loop == again == once_more
    said = person.types(init)
    assert "Now: rsr-loop --workspace" in said
    small(root / "params.yaml")
    for iteration in (1, 2):
        assert f"expected a person's approval of policy {iteration - 1}" in person.types(loop)
        person.types(approve, NAME="somebody").count("may be deployed")
        approve = approve.replace(f"--iteration {iteration - 1}", f"--iteration {iteration}")
        assert "Waiting" in person.types(loop)
        assert (root / f"inbox/session-00{iteration}.request.json").exists()
        person.types(answer, RECORDINGS=str(visit(tmp_path / "lab", iteration)))
    assert "Waiting" not in person.types(loop)
    check_finished(root)

    backup, restore = commands("Keep it, move it")
    person.types(backup)
    shutil.rmtree(root)
    person.types(restore)
    check_finished(tmp_path / "elsewhere")
    assert "Nothing to do" in person.types(loop, block_on_table="elsewhere")


def check_finished(root: Path) -> None:
    assert list(Workspace(root).chain()) == [1, 2]
    assert bookkeeping.stale(root) == set()
    assert all((root / f"iterations/00{k}/report.html").exists() for k in (1, 2))
    assert {"iter/001", "iter/002"} <= set(versions.git(root, "tag").split())
    approvals = (f"iterations/00{k}/approval.json" for k in (0, 1))
    assert all(versions.committed_version(root, name) for name in approvals)
    assert "params.yaml" in versions.git(root, "status", "--porcelain"), "edited by a person, who commits it"
    assert len(find_faults(root, 2, DEFAULT_TABLE)) == 1


def test_the_page_names_every_form_as_it_is_deployed():
    deployed = yaml.safe_load((PAGE.parents[1] / "deployments/prefect.yaml").read_text())["deployments"]
    names = [entry["name"] for entry in deployed]
    assert len(names) == len(set(names))
    named = re.findall(r"`[\w-]+/([\w-]+)`", PAGE.read_text())
    assert len(named) >= 4
    assert set(named) <= set(names)


@pytest.mark.slow
def test_on_the_page_from_a_form_to_the_second_iteration(tmp_path, monkeypatch):
    """Each step is a run of a deployment, made as the page makes it; the toy steps, a real server and worker."""
    for name in ("PREFECT_API_URL", "PREFECT_HOME", "PYTHONPATH"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    from benchmarks._served import await_, served

    root, table = tmp_path / "block_on_table", "tests.flows.test_lab:WITH_LAB"
    workspace = Workspace(root)

    def waits(words: str) -> bool:
        return workspace.waiting_path.exists() and words in workspace.waiting_path.read_text()

    with served(tmp_path) as lab:
        for deployment in ("rsr-loop/on-arrival", "after-lab-session/lab-visit", "begin-campaign/new-campaign"):
            lab.prefer(deployment, table=table)
        form = {"workspace": str(root), "scenario": "push_cube", "reality": "inbox", "approval": True, "iterations": 2}
        lab.due("begin-campaign/new-campaign", campaign=form)
        for iteration in (1, 2):
            await_(lambda k=iteration: waits(f"a person's approval of policy {k - 1}"), "question about the policy")
            decision = {"workspace": str(root), "iteration": iteration - 1, "by": "somebody"}
            lab.due("approve/policy-approval", decision=decision)
            await_(lambda: waits("a drop"), "question about recordings")
            sources = [str(visit(tmp_path / "lab", iteration))]
            run = lab.due("after-lab-session/lab-visit", visit={"workspace": str(root), "sources": sources})
            await_(lambda run=run: lab.has_ended(run), "end of the visit")
        assert set(lab.runs("begin-campaign") + lab.runs("after-lab-session")) == {"Completed"}
        again = lab.due("begin-campaign/new-campaign", campaign=form)
        await_(lambda: lab.has_ended(again), "refusal")
        assert lab.runs("begin-campaign")[-1] == "Failed", "a campaign is never begun over another"
    assert list(workspace.chain()) == [1, 2, 3], "two are done, the third is asked for"
    assert workspace.metrics_path(2).exists()
    assert waits("a person's approval of policy 2")
