"""One iteration on a lab's own scenario, every step small: plots, page and plan speak of its figures and joints."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from own_arm import write_own_arm
from rich.console import Console
from small_steps import STEPS

from rsr.calibration import load_calibration
from rsr.common.files import read_arrays, read_json, write_json
from rsr.common.progress import ignore
from rsr.config import InfoGapConfig, LoopConfig, RealityConfig, RetrainConfig, StartConfig, TuneConfig, dump_config
from rsr.pipelines import render_pipeline, run_step, with_curves
from rsr.planning import make_plan
from rsr.policies import Policy
from rsr.reports import chain_table, summary_markdown
from rsr.reports.loop_picture import loop_figure
from rsr.scenarios import load_scenario
from rsr.sessions import read_session
from rsr.workspace import Workspace

pytestmark = pytest.mark.slow
FIGURES = ("base", "shoulder", "elbow", "way_of_all_joints")


@pytest.fixture(scope="module")
def iterated(tmp_path_factory) -> Workspace:
    root: Path = tmp_path_factory.mktemp("own")
    settings = LoopConfig(
        scenario=str(write_own_arm(root / "scenario")),
        reality=RealityConfig(episodes=6),
        start=StartConfig(train_steps=64 * 128),
        tune=TuneConfig(method="sysid", fit_episodes=2),
        infogap=InfoGapConfig(transitions=200),
        retrain=RetrainConfig(train_steps=64 * 128),
    )
    write_json(root / "iterations.json", {"chain": {}})
    dump_config(settings, root / "params.yaml")
    workspace = Workspace(root)
    workspace.plan(0)
    run_step(workspace, "start", 0, ignore, STEPS)
    workspace.plan(1)
    for name in ("collect", *(step.name for step in STEPS.stages if step.foreach)):
        run_step(workspace, name, 1, ignore, STEPS)
    return workspace


def test_metrics_have_every_figure_of_the_task(iterated):
    metrics = read_json(iterated.metrics_path(1))
    assert {key for key in metrics if key.startswith("kl_")} == {f"kl_{name}" for name in FIGURES}
    assert all(metrics[f"{name}_error_reality"] > 0 for name in FIGURES[:3])
    assert "way_of_all_joints_error_reality" not in metrics, "without a tolerance it does not decide"
    assert "coverage" not in metrics
    assert metrics["units"]["gap"] == "rad"
    assert set(metrics["channel_gaps"]) == {"q"}
    assert metrics["gap_nominal"] == pytest.approx(metrics["gap_before"]), "the first iteration begins with it"


def test_infogap_compares_the_measured_joints_where_the_task_states_no_columns(iterated):
    reference = read_arrays(iterated.infogap_dir(1) / "reference.npz")
    # The base turns all around, so its channel's angles are given by cosine and sine: six columns of state.
    assert 6 + 3 + 6 in {array.shape[-1] for array in reference.values() if array.ndim}


def test_the_page_speaks_of_its_figures_in_degrees(iterated):
    page = iterated.report_path(1).read_text().replace("\N{NO-BREAK SPACE}", " ")
    text = re.sub(r"<[^>]+>", " ", page[page.index("</style>") :])
    for words in (
        "KL of way of all joints",
        "base within 5.73 degrees, shoulder within 5.73 degrees",
        "Nothing on this",
    ):
        assert words in text
    assert re.search(r"predicts held-out episodes to [0-9.]+ degrees|off before, [0-9.]+ degrees after", text)
    assert "Not shown: coverage. The task names no plane." in text
    assert text.count("Not shown") == 1
    assert not re.search(r"\bblock|fingertip|\byaw|\d (mm|cm)\b", text)


def test_the_terminal_shows_the_largest_divergence_where_all_are_too_many(iterated):
    with (console := Console(width=80)).capture() as captured:
        console.print(chain_table(iterated.rows()))
    lines = captured.get().splitlines()
    assert lines[3].split()[:2] == ["k", "largest"] or "largest" in captured.get()
    largest = max(value for key, value in iterated.rows()[0].items() if key.startswith("kl_"))
    assert f"{largest:.3g}" in captured.get()
    assert "degrees" in captured.get()
    for name in FIGURES:
        assert f"| KL {name.replace('_', ' ')} |" in summary_markdown(iterated, 1)


def test_the_picture_of_the_loop_is_drawn(iterated):
    svg = loop_figure(iterated, "svg").decode()
    for words in ("way of all joints", "RMS error (degrees)", "damping"):
        assert words in svg


def test_plots_are_of_its_figures(iterated):
    table = with_curves(STEPS, iterated.rows())
    plots = yaml.safe_load(render_pipeline(table, iterated))["plots"]
    (drawn,) = [each for each in plots if "Divergence of reality from simulation" in each]
    axes = drawn["Divergence of reality from simulation"]["y"]
    assert axes["curves.json"] == sorted(f"kl_{name}" for name in FIGURES)


def test_a_plan_moves_it_about_its_rest_position_within_its_limits(iterated):
    scenario = load_scenario(iterated.settings().scenario)
    policy = Policy.load(iterated.policy_dir(1), scenario)
    session, calibration = read_session(iterated.session_dir(1)), load_calibration(iterated.calibration_dir(1))
    plan = make_plan(scenario, (session,), calibration, candidates=8, seed=1, policy=policy)
    kinds = [each.candidate.kind for each in plan.ranked]
    assert (kinds.count("repeat"), kinds.count("excitation"), kinds.count("policy")) == (2, 3, 3)
    for each in plan.ranked:
        if each.candidate.kind == "excitation":
            commands = each.candidate.commands
            np.testing.assert_allclose(commands[0], each.candidate.start[:3])
            assert (np.abs(commands) <= 2.0).all()
            assert np.abs(np.diff(commands, axis=0)).max() <= 2.0 * scenario.control_dt_s + 1e-9, "2 rad/s at most"
            assert (np.ptp(commands, axis=0) > 0.1).all(), "every joint is moved"
            assert each.nats > 0
