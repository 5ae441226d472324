"""The table of steps, and what is rendered from it."""

from __future__ import annotations

import inspect
import subprocess
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import yaml

from rsr.common.errors import ConfigError
from rsr.common.files import write_json
from rsr.config import LoopConfig, dump_config, load_config
from rsr.pipelines import TABLE, render_launcher, render_pipeline, with_curves
from rsr.workspace import Link, Workspace

_PROJECT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("name", "render"), [("dvc.yaml", render_pipeline), ("bin/rsr", render_launcher)])
def test_what_the_project_ships_is_what_the_table_says(name, render):
    assert (_PROJECT / name).read_text() == render(TABLE), f"{name}: `rsr-loop` here would rewrite it"


def test_the_shipped_settings_are_the_defaults_written_out(tmp_path):
    dump_config(LoopConfig(), tmp_path / "params.yaml")
    written = (tmp_path / "params.yaml").read_text()
    assert (_PROJECT / "params.yaml").read_text() == written, 'dump_config(LoopConfig(), Path("params.yaml")) writes it'
    assert load_config(_PROJECT / "params.yaml") == LoopConfig()


@pytest.mark.parametrize("step", [*TABLE.stages, TABLE.collect], ids=lambda step: step.name)
def test_every_step_is_a_function_of_workspace_iteration_and_progress(step):
    assert list(inspect.signature(step.load()).parameters) == ["workspace", "iteration", "advance"]


@pytest.mark.parametrize("step", [*TABLE.stages, TABLE.collect], ids=lambda step: step.name)
def test_every_setting_named_by_a_step_exists(step):
    assert set(step.settings) <= set(LoopConfig.model_fields)


def test_a_stage_never_owns_a_recording():
    assert not [out for step in TABLE.stages for out in step.outs if "session" in out]
    assert "collect" not in yaml.safe_load(render_pipeline(TABLE))["stages"]


def test_every_input_is_made_by_an_earlier_step_or_the_previous_iteration():
    made = {"{session}"}
    for step in TABLE.stages:
        earlier = made | {out.replace("{dir}", "{prev}") for stage in TABLE.stages for out in stage.outs}
        assert set(step.deps) <= earlier, step.name
        made |= {*step.outs, *step.metrics}


def test_dvc_yaml_calls_each_step_by_its_name():
    stages = yaml.safe_load(render_pipeline(TABLE))["stages"]
    assert list(stages) == [step.name for step in TABLE.stages]
    commands = {name: stage.get("do", stage)["cmd"] for name, stage in stages.items()}
    assert commands["start"] == "bin/rsr step start --iteration 0"
    assert commands["retrain"] == "bin/rsr step retrain --iteration ${key}"


def test_curves_are_of_the_figures_that_metrics_have(tmp_path):
    link = Link("iterations/001", "iterations/000", "data/push_t/session-001")
    write_json(tmp_path / "iterations.json", {"chain": {"1": asdict(link)}})

    def drawn(*rows: dict[str, float]) -> dict[str, list[str]]:
        plots = yaml.safe_load(render_pipeline(with_curves(TABLE, rows), Workspace(tmp_path)))["plots"]
        return {
            title: plot["y"]["curves.json"]
            for each in plots
            for title, plot in each.items()
            if "curves.json" in plot["y"]
        }

    title = "Divergence of reality from simulation"
    assert drawn({"kl_x": 1.0, "kl_y": 2.0, "gap_after": 0.1})[title] == ["kl_x", "kl_y"]
    assert drawn({"kl_x": 1.0}, {"kl_x": 1.0, "kl_yaw": 2.0})[title] == ["kl_x", "kl_yaw"]
    assert title not in drawn({"gap_after": 0.1})


def test_addresses_follow_the_order_of_the_loop():
    repeated = ["tune", "infogap", "retrain", "evaluate", "report"]
    assert TABLE.addresses(2) == ["start", *(f"{name}@{k}" for k in (1, 2) for name in repeated)]
    assert TABLE.address("start", 0) == "start"


def test_unknown_step():
    with pytest.raises(ConfigError) as caught:
        TABLE.step("tuen")
    assert str(caught.value) == (
        "the table of steps: got step 'tuen'; "
        "expected one of start, tune, infogap, retrain, evaluate, report, collect. Choose one of these names."
    )


def test_paths_of_a_step_in_an_iteration(tmp_path):
    workspace = Workspace(tmp_path)
    (tmp_path / "iterations.json").write_text('{"chain": {}}')
    dump_config(LoopConfig(), tmp_path / "params.yaml")
    workspace.plan(0)
    for iteration in range(1, 11):
        workspace.plan(iteration)
    tune = TABLE.step("tune")
    relative = [workspace.relative(path) for path in tune.inputs(workspace, 10)]
    assert relative == ["data/push_cube/session-010", "iterations/009/calibration"]
    assert tune.outputs(workspace, 10) == [tmp_path / "iterations/010/calibration"]


class TestLauncher:
    """bin/rsr finds rsr from any shell."""

    @pytest.fixture
    def launcher(self, tmp_path):
        path = tmp_path / "bin" / "rsr"
        path.parent.mkdir()
        path.write_text(render_launcher(replace(TABLE, module="rsr_of_test")))
        path.chmod(0o755)
        return path

    def run(self, launcher, path="/usr/bin:/bin"):
        command = [launcher, "step", "tune", "--iteration", "2"]
        return subprocess.run(command, env={"PATH": path}, capture_output=True, text=True, check=False)

    def script(self, path):
        path.parent.mkdir(exist_ok=True)
        path.write_text('#!/bin/sh\necho "$0 $*"\n')
        path.chmod(0o755)

    def test_of_the_active_environment_first(self, launcher, tmp_path):
        self.script(tmp_path / "active" / "rsr_of_test")
        done = self.run(launcher, path=f"{tmp_path}/active:/usr/bin:/bin")
        assert done.stdout == f"{tmp_path}/active/rsr_of_test step tune --iteration 2\n"

    def test_else_of_the_python_that_last_ran_the_loop(self, launcher, tmp_path):
        self.script(tmp_path / "some where" / "python")
        (tmp_path / ".rsr").mkdir()
        (tmp_path / ".rsr" / "python").write_text(f"{tmp_path}/some where/python\n")
        done = self.run(launcher)
        assert done.stdout == f"{tmp_path}/some where/python -m rsr_of_test step tune --iteration 2\n"

    def test_else_says_what_to_do(self, launcher):
        done = self.run(launcher)
        assert done.returncode == 127
        assert done.stderr == (
            "bin/rsr: got no rsr_of_test on PATH; expected an active environment. Try: . PATH/TO/.venv/bin/activate\n"
        )
