"""The one table of steps: what each reads, writes and is configured by. dvc.yaml and the Prefect tasks follow it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rsr.common import Advance, check_choice, load
from rsr.workspace import Link, Workspace

StepFunction = Callable[[Workspace, int, Advance], None]

START = Link(dir="iterations/000", prev="", session="")


@dataclass(frozen=True)
class Plot:
    """A figure that `dvc plots` draws: one line an iteration, from a JSON list of rows. `path` is a template."""

    title: str
    path: str
    x: str
    y: str


@dataclass(frozen=True)
class Curve:
    """A figure that `dvc plots` draws over the iterations; `y` are keys of their metrics.

    A key `NAME_*` stands for one of each of the task's figures.
    """

    title: str
    y: tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """One step. Paths are templates of `{dir}` (the iteration's folder), `{prev}` (its predecessor's), `{session}`.

    Args:
        function: "module:name" of a StepFunction; loaded when the step runs, so that looking is cheap.
        outs: files or folders that DVC versions. The same inputs give the same bytes, unless the step says otherwise.
        metrics: small JSON files that git versions.
        settings: keys of the iteration's params.yaml on which the result depends.
        foreach: once an iteration; otherwise once a campaign.
        reads_task: the result depends on the Python beside the scenario, too: on its task.
        verdict: "path#key" of the word in a JSON output that the receipt quotes.
    """

    name: str
    summary: str
    function: str
    deps: tuple[str, ...]
    outs: tuple[str, ...]
    metrics: tuple[str, ...] = ()
    settings: tuple[str, ...] = ("scenario", "seed")
    foreach: bool = True
    verdict: str | None = None
    reads_task: bool = True

    def load(self) -> StepFunction:
        return load(self.function)

    def inputs(self, workspace: Workspace, iteration: int) -> list[Path]:
        return [*_resolve(self.deps, workspace, iteration), *self.scenario_files(workspace)]

    def scenario_files(self, workspace: Workspace) -> list[Path]:
        """What of the campaign's scenario the result depends on."""
        if not self.reads_scenario or not workspace.scenario_dir.is_dir():
            return []
        return [workspace.scenario_dir] if self.reads_task else workspace.model_files

    @property
    def reads_scenario(self) -> bool:
        """Whether the result depends on the scenario, and so on its files where they are the campaign's own."""
        return "scenario" in self.settings

    def outputs(self, workspace: Workspace, iteration: int) -> list[Path]:
        return _resolve(self.outs + self.metrics, workspace, iteration)

    def metric_files(self, workspace: Workspace, iteration: int) -> list[Path]:
        return _resolve(self.metrics, workspace, iteration)


def collecting(summary: str, function: str, deps: tuple[str, ...] = (), reads_task: bool = True) -> Step:
    """The step `collect`, which makes the recording of an iteration."""
    settings = ("scenario", "seed", "reality")
    return Step("collect", summary, function, deps, ("{session}",), settings=settings, reads_task=reads_task)


@dataclass(frozen=True)
class StepTable:
    """The steps of a loop.

    Args:
        name: of the pipeline, as people and Prefect's pages call it.
        stages: what DVC may run again at will, in the order of one iteration.
        collect: what makes a recording. No stage of DVC, which would delete the recording before making it anew.
        plots: what `dvc plots show` draws, a line an iteration.
        curves: what it draws over the iterations.
        models: name -> template of the folder that `dvc artifacts get` fetches; each iteration is a version of it.
        module: what `python -m MODULE step NAME --iteration K` runs; the command of every stage.
    """

    name: str
    stages: tuple[Step, ...]
    collect: Step
    plots: tuple[Plot, ...] = ()
    curves: tuple[Curve, ...] = ()
    models: Mapping[str, str] = field(default_factory=dict)
    module: str = "rsr"

    def step(self, name: str) -> Step:
        steps = {step.name: step for step in (*self.stages, self.collect)}
        check_choice(
            name, steps, got=f"step '{name}'", where="the table of steps", next_step="Choose one of these names."
        )
        return steps[name]

    def address(self, name: str, iteration: int) -> str:
        """The name by which DVC knows a stage of an iteration."""
        return f"{name}@{iteration}" if self.step(name).foreach else name

    def addresses(self, iterations: int) -> list[str]:
        """Every stage of the campaign up to this iteration, in the order of the loop."""
        once = [step.name for step in self.stages if not step.foreach]
        repeated = [step.name for step in self.stages if step.foreach]
        return once + [f"{name}@{iteration}" for iteration in range(1, iterations + 1) for name in repeated]


def _resolve(templates: tuple[str, ...], workspace: Workspace, iteration: int) -> list[Path]:
    link = START if iteration == 0 else workspace.chain()[iteration]
    return [
        workspace.root / template.format(dir=link.dir, prev=link.prev, session=link.session) for template in templates
    ]
