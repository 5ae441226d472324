"""The table of the Real-Sim-Real loop, and which table a campaign has.

A step says what it reads, writes and is configured by; it is loaded when it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rsr.common import WorkspaceError
from rsr.pipelines.clash import CLASH
from rsr.pipelines.core import Curve, Plot, Step, StepTable, collecting
from rsr.pipelines.gnn import GNN
from rsr.workspace import Workspace

EACH = "_*"
"""Ends a key that stands for one of each of the task's figures."""

# The table of the Real-Sim-Real loop: what each step reads, writes and is configured by.


TABLE = StepTable(
    name="rsr-loop",
    stages=(
        Step(
            name="start",
            summary="Policy 0, trained in the nominal simulator, and the prior of the parameters",
            function="rsr.pipelines.loop.stages:start",
            deps=(),
            outs=("{dir}/policy", "{dir}/calibration"),
            settings=("scenario", "seed", "start"),
            foreach=False,
        ),
        Step(
            name="tune",
            summary="Fit the simulator's parameters to the session",
            function="rsr.pipelines.loop.stages:tune",
            deps=("{session}", "{prev}/calibration"),
            outs=("{dir}/calibration",),
            settings=("scenario", "seed", "tune"),
            reads_task=False,
            verdict="{dir}/calibration/calibration.json#status",
        ),
        Step(
            name="infogap",
            summary="KL between reality and simulation, and the reward for closing it",
            function="rsr.pipelines.loop.infogap:infogap",
            deps=("{session}", "{prev}/calibration", "{dir}/calibration"),
            outs=("{dir}/infogap",),
            settings=("scenario", "seed", "infogap"),
        ),
        Step(
            name="retrain",
            summary="Train the policy on in the tuned simulator, task reward and InfoGap",
            function="rsr.pipelines.loop.stages:retrain",
            deps=("{dir}/calibration", "{dir}/infogap", "{prev}/policy"),
            outs=("{dir}/policy",),
            settings=("scenario", "seed", "retrain"),
        ),
        Step(
            name="evaluate",
            summary="Gap, divergence and success of the deployed policy, and of the retrained one in simulation",
            function="rsr.pipelines.loop.evaluate:evaluate",
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
            function="rsr.pipelines.loop.stages:report",
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
    collect=collecting(
        "Record a session with the previous policy", "rsr.pipelines.loop.collect:collect", ("{prev}/policy",)
    ),
    plots=(
        Plot("Success while learning", "{dir}/policy/curve.json", x="steps", y="success"),
        Plot("Return while learning", "{dir}/policy/curve.json", x="steps", y="mean_return"),
    ),
    curves=(
        Curve("Gap between reality and simulation", ("gap_before", "gap_after")),
        Curve("Divergence of reality from simulation", ("kl_*",)),
        Curve("Success of the deployed policy", ("success_sim", "success_reality")),
    ),
    models={"policy": "{dir}/policy", "calibration": "{dir}/calibration"},
)


WITHOUT_POLICY = StepTable(
    name="rsr-loop",
    stages=(
        Step(
            name="prior",
            summary="Parameters before any recording",
            function="rsr.pipelines.loop.stages:prior",
            deps=(),
            outs=("{dir}/calibration",),
            foreach=False,
            reads_task=False,
        ),
        TABLE.step("tune"),
        Step(
            name="evaluate",
            summary="Gap on held-out episodes, before tuning and after",
            function="rsr.pipelines.loop.evaluate:evaluate_gap",
            deps=("{session}", "{dir}/calibration"),
            outs=(),
            metrics=("{dir}/evaluation/metrics.json",),
            reads_task=False,
        ),
        Step(
            name="report",
            summary=TABLE.step("report").summary,
            function=TABLE.step("report").function,
            deps=("{session}", "{prev}/calibration", "{dir}/calibration", "{dir}/evaluation/metrics.json"),
            outs=("{dir}/report.html",),
            reads_task=False,
        ),
    ),
    collect=collecting(
        "Take the session that the lab recorded",
        "rsr.pipelines.loop.collect:collect_without_policy",
        reads_task=False,
    ),
    curves=(Curve("Gap between reality and simulation", ("gap_before", "gap_after")),),
    models={"calibration": "{dir}/calibration"},
)
"""The loop of a scenario without a task: what a lab records is taken, tuned to, judged and reported."""


# Which pipeline a campaign runs, its settings say; which figures its task has, its metrics.


def with_curves(table: StepTable, rows: Sequence[Mapping[str, Any]]) -> StepTable:
    """The table with its curves spelt out for the figures that metrics have; one that has none is left out."""
    known = list(dict.fromkeys(key for row in rows for key in row))
    curves = tuple(Curve(curve.title, tuple(_spelt_out(curve.y, known))) for curve in table.curves)
    return replace(table, curves=tuple(curve for curve in curves if curve.y))


def _spelt_out(keys: Iterable[str], known: Sequence[str]) -> Iterator[str]:
    for key in keys:
        if key.endswith(EACH):
            yield from (each for each in known if each.startswith(key.removesuffix(EACH) + "_"))
        else:
            yield key


def table_of(workspace: Workspace) -> StepTable:
    """The table that a campaign has: of the method whose section its settings have, or the loop's own.

    Without a task there is no policy, and so no step that trains or runs one. Which of the two a campaign is, its first
    iteration settles.
    """
    config = workspace.settings()
    if config.clash is not None:
        return CLASH
    if config.gnn is not None:
        return GNN
    has_policy = workspace.has_task if not workspace.chain() else not began_without_policy(workspace)
    return TABLE if has_policy else WITHOUT_POLICY


def own_table(workspace: Workspace, table: StepTable) -> StepTable:
    """The loop's own table as this campaign has it, with a policy's steps or without; any other as it is."""
    return WITHOUT_POLICY if table is TABLE and table_of(workspace) is WITHOUT_POLICY else table


def began_without_policy(workspace: Workspace) -> bool:
    """Whether the loop began with the prior alone; git keeps the receipt that says so."""
    return (workspace.receipts_dir(0) / f"{WITHOUT_POLICY.stages[0].name}.json").exists()


def check_same_task(workspace: Workspace) -> None:
    """Refuse to go on with a loop whose scenario got or lost its task after the first iteration.

    Raises:
        WorkspaceError: it did.
    """
    if not workspace.chain() or table_of(workspace) not in (TABLE, WITHOUT_POLICY):
        return
    began_without = began_without_policy(workspace)
    if began_without is not workspace.has_task:
        return
    if began_without:
        got, expected = "a task", "none: the sessions of this campaign were recorded without a policy"
        next_step = "Give the task a campaign of its own: `rsr init NEW --scenario {}`; or remove it."
    else:
        got, expected = "no task", "the one with which this campaign began"
        next_step = "Bring it back: `git checkout -- scenario`; or begin anew without: `rsr init NEW --scenario {}`."
    file = workspace.settings().scenario
    raise WorkspaceError(got=got, expected=expected, where=file, next_step=next_step.format(file))
