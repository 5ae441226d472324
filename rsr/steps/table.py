"""The one table of steps: what each reads, writes and is configured by. dvc.yaml and the Prefect tasks follow it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rsr.errors import ConfigError
from rsr.progress import Advance
from rsr.spreading import load
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
    """A figure that `dvc plots` draws over the iterations; `y` are keys of their metrics."""

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

    def load(self) -> StepFunction:
        return load(self.function)

    def inputs(self, workspace: Workspace, iteration: int) -> list[Path]:
        return _resolve(self.deps, workspace, iteration)

    def outputs(self, workspace: Workspace, iteration: int) -> list[Path]:
        return _resolve(self.outs + self.metrics, workspace, iteration)

    def metric_files(self, workspace: Workspace, iteration: int) -> list[Path]:
        return _resolve(self.metrics, workspace, iteration)


@dataclass(frozen=True)
class StepTable:
    """The steps of a loop.

    Args:
        stages: what DVC may run again at will, in the order of one iteration.
        collect: what makes a recording. No stage of DVC, which would delete the recording before making it anew.
        plots: what `dvc plots show` draws, a line an iteration.
        curves: what it draws over the iterations.
        models: name -> template of the folder that `dvc artifacts get` fetches; each iteration is a version of it.
        module: what `python -m MODULE step NAME --iteration K` runs; the command of every stage.
    """

    stages: tuple[Step, ...]
    collect: Step
    plots: tuple[Plot, ...] = ()
    curves: tuple[Curve, ...] = ()
    models: Mapping[str, str] = field(default_factory=dict)
    module: str = "rsr"

    def step(self, name: str) -> Step:
        steps = {step.name: step for step in (*self.stages, self.collect)}
        if name not in steps:
            raise ConfigError(
                got=f"step '{name}'",
                expected=f"one of {', '.join(steps)}",
                where="the table of steps",
                next_step="Choose one of these names.",
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


TABLE = StepTable(
    stages=(
        Step(
            name="start",
            summary="Policy 0, trained in the nominal simulator, and the prior of the parameters",
            function="rsr.steps.start:start",
            deps=(),
            outs=("{dir}/policy", "{dir}/calibration"),
            settings=("scenario", "seed", "start"),
            foreach=False,
        ),
        Step(
            name="tune",
            summary="Fit the simulator's parameters to the session",
            function="rsr.steps.tune:tune",
            deps=("{session}", "{prev}/calibration"),
            outs=("{dir}/calibration",),
            settings=("scenario", "seed", "tune"),
            verdict="{dir}/calibration/calibration.json#status",
        ),
        Step(
            name="infogap",
            summary="KL between reality and simulation, and the reward for closing it",
            function="rsr.steps.infogap:infogap",
            deps=("{session}", "{prev}/calibration", "{dir}/calibration"),
            outs=("{dir}/infogap",),
            settings=("scenario", "seed", "infogap"),
        ),
        Step(
            name="retrain",
            summary="Train the policy on in the tuned simulator, task reward and InfoGap",
            function="rsr.steps.retrain:retrain",
            deps=("{dir}/calibration", "{dir}/infogap", "{prev}/policy"),
            outs=("{dir}/policy",),
            settings=("scenario", "seed", "retrain"),
        ),
        Step(
            name="evaluate",
            summary="Gap, divergence and success of the deployed policy, and of the retrained one in simulation",
            function="rsr.steps.evaluate:evaluate",
            deps=(
                "{session}",
                "{prev}/policy",
                "{prev}/calibration",
                "{dir}/calibration",
                "{dir}/infogap",
                "{dir}/policy",
            ),
            outs=("{dir}/evaluation/rollouts.npz",),
            metrics=("{dir}/evaluation/metrics.json",),
            settings=("scenario", "seed", "evaluate"),
        ),
        Step(
            name="report",
            summary="The iteration as one HTML page (it quotes durations, so its bytes may differ)",
            function="rsr.steps.report:report",
            deps=(
                "{session}",
                "{prev}/calibration",
                "{dir}/calibration",
                "{dir}/infogap",
                "{dir}/policy",
                "{dir}/evaluation/rollouts.npz",
                "{dir}/evaluation/metrics.json",
            ),
            outs=("{dir}/report.html",),
        ),
    ),
    collect=Step(
        name="collect",
        summary="Record a session with the previous policy",
        function="rsr.steps.collect:collect",
        deps=("{prev}/policy",),
        outs=("{session}",),
        settings=("scenario", "seed", "reality"),
    ),
    plots=(
        Plot("Success while learning", "{dir}/policy/curve.json", x="steps", y="success"),
        Plot("Return while learning", "{dir}/policy/curve.json", x="steps", y="mean_return"),
    ),
    curves=(
        Curve("Gap between reality and simulation", ("gap_before", "gap_after")),
        Curve("Divergence of reality from simulation", ("kl_x", "kl_y")),
        Curve("Success of the deployed policy", ("success_sim", "success_reality")),
    ),
    models={"policy": "{dir}/policy", "calibration": "{dir}/calibration"},
)
