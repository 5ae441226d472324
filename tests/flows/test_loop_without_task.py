"""A campaign whose scenario has no task: the loop takes what the lab records, tunes, judges and reports."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from small_steps import SMALL, SMALL_WITHOUT_POLICY
from toy.bare import find_faults

from rsr.cli import main
from rsr.common.errors import ConfigError, Waiting, WorkspaceError
from rsr.common.files import read_json
from rsr.config import LoopConfig, RealityConfig, TuneConfig, dump_config, load_config
from rsr.pipelines.lab.arrivals import answer
from rsr.sessions import write_session
from rsr.workspace import Workspace
from rsr_tasks import bookkeeping, versions
from rsr_tasks.begin import begin
from rsr_tasks.campaign import opened
from rsr_tasks.loop import run_bare_loop
from tests.examples.test_own_scenario import FRICTION, slides

PUCK = Path(__file__).resolve().parents[2] / "examples" / "own_scenario"
FEW = TuneConfig(method="cmaes", fit_episodes=2)
INBOX = RealityConfig(kind="inbox", episodes=4)
TASK = """
import rsr
from rsr.scenarios.tasks.task import AbsoluteAction

TASK = rsr.Task(terms=(), goal=(), action=AbsoluteAction((), ()), reset=None, reward=None, figures=())
"""


def visit(workspace: Workspace, number: int) -> None:
    """The lab records slides of another length each time, and drops them."""
    session = slides(4, rows=61 - 10 * number)
    answer(workspace, [write_session(workspace.root.parent / f"lab-{number}", session)])


@pytest.fixture(scope="module")
def one_iteration(tmp_path_factory) -> Path:
    """A campaign that waited for its first recordings, and took them."""
    root = tmp_path_factory.mktemp("lab") / "puck"
    workspace = begin(root, SMALL.model_copy(update={"scenario": str(PUCK), "reality": INBOX, "tune": FEW}))
    with pytest.raises(Waiting, match="expected a session of 4 episodes\\. Record what session-001.request.json asks"):
        run_bare_loop(root, 1, SMALL_WITHOUT_POLICY)
    visit(workspace, 1)
    run_bare_loop(root, 1, SMALL_WITHOUT_POLICY)
    return root


@pytest.fixture
def tuned(one_iteration, tmp_path) -> Workspace:
    shutil.copytree(one_iteration, tmp_path / "puck")
    return Workspace(tmp_path / "puck")


def test_it_collects_tunes_judges_and_reports_and_nothing_speaks_of_a_policy(tuned, capsys):
    assert find_faults(tuned.root, 1, SMALL_WITHOUT_POLICY) == []
    metrics = read_json(tuned.metrics_path(1))
    assert metrics["gap_after"] < 0.5 * metrics["gap_before"]
    assert metrics["params"]["friction"] == pytest.approx(FRICTION, rel=0.1)
    assert {"iter/001", "calibration@v1.0.0"} == set(versions.git(tuned.root, "tag").split())
    page = tuned.report_path(1).read_text()
    words = re.sub(r"<[^>]+>", " ", re.sub(r"(?s)<svg.*?</svg>", "", page[page.index("</style>") :]))
    assert not re.search(r"Not shown|polic|success|InfoGap", words), words
    assert not list(tuned.iteration_dir(1).glob("policy")) + list(tuned.iteration_dir(0).glob("policy"))
    assert main(["status", "--workspace", str(tuned.root)]) == 0
    assert "One iteration more: rsr-loop --workspace" in " ".join(capsys.readouterr().out.split())


def test_drift_judges_what_was_recorded_since(tuned, capsys):
    visit(tuned, 2)
    assert main(["drift", "--workspace", str(tuned.root)]) == 0, capsys.readouterr().out
    assert "4 episodes" in capsys.readouterr().out


def test_a_task_that_comes_before_the_first_iteration_brings_a_policy(tmp_path):
    settings = LoopConfig(scenario=str(PUCK), reality=INBOX)
    workspace = begin(tmp_path / "puck", settings)
    assert bookkeeping.stale(workspace.root) == {"prior"}
    (workspace.scenario_dir / "task.py").write_text(TASK)
    with opened(workspace.root) as opened_again:
        assert [step.name for step in opened_again.table.stages][:2] == ["start", "tune"]
    assert bookkeeping.stale(workspace.root) == {"start"}


def test_a_task_that_comes_later_is_an_error_that_says_where_it_belongs(tuned, capsys):
    task = tuned.scenario_dir / "task.py"
    task.write_text(TASK)
    words = "got a task; expected none: the sessions of this campaign were recorded without a policy"
    with pytest.raises(WorkspaceError, match=words):
        run_bare_loop(tuned.root, 2, SMALL_WITHOUT_POLICY)
    assert bookkeeping.stale(tuned.root) == set()
    assert main(["status", "--workspace", str(tuned.root)]) == 0
    assert "lacks" not in capsys.readouterr().out
    task.unlink()
    with pytest.raises(Waiting):
        run_bare_loop(tuned.root, 2, SMALL_WITHOUT_POLICY)


def test_a_task_that_goes_is_missed(tmp_path):
    shutil.copytree(PUCK, tmp_path / "puck")
    (tmp_path / "puck" / "task.py").write_text(TASK)
    with opened(tmp_path / "w", config=LoopConfig(scenario=str(tmp_path / "puck"), reality=INBOX)) as made:
        made.workspace.plan(0)
        made.workspace.plan(1)
    (made.workspace.scenario_dir / "task.py").unlink()
    words = "got no task; expected the one with which this campaign began"
    with pytest.raises(WorkspaceError, match=words), opened(tmp_path / "w"):
        pass


def test_another_reality_set_later_is_refused(tmp_path):
    """params.yaml may be edited at any time: the step looks, too."""
    workspace = begin(tmp_path / "puck", LoopConfig(scenario=str(PUCK), reality=INBOX))
    settings = load_config(workspace.settings_path)
    dump_config(settings.model_copy(update={"reality": RealityConfig(kind="robot")}), workspace.settings_path)
    with pytest.raises(ConfigError, match="got reality.kind: robot, which only a policy moves"):
        run_bare_loop(workspace.root, 1)


@pytest.mark.slow
def test_the_walk_with_prefect_and_with_dvc_repro(tmp_path, prefect_server):
    """`rsr-loop` twice over what two visits dropped, then everything anew by `dvc repro`, to the same bytes."""
    from rsr_flows.rsr_loop import rsr_loop

    settings = LoopConfig(scenario=str(PUCK), reality=INBOX, tune=FEW)
    workspace = begin(tmp_path / "puck", settings)
    for number in (1, 2):
        assert len(rsr_loop(str(workspace.root), number)) == number - 1, "it waits"
        visit(workspace, number)
        assert len(rsr_loop(str(workspace.root), number)) == number
    rows = workspace.rows()
    assert rows[0]["gap_after"] < 0.5 * rows[0]["gap_before"]
    assert rows[1]["gap_before"] < 0.5 * rows[0]["gap_before"], "it begins with what the first iteration found"
    before = workspace.metrics_path(2).read_bytes()
    command = [sys.executable, "-m", "dvc", "repro", "--force"]
    done = subprocess.run(command, cwd=workspace.root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert workspace.metrics_path(2).read_bytes() == before
