"""The table of the Real-Sim-Real loop, and which table a campaign has.

A step says what it reads, writes and is configured by; it is loaded when it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rsr.config import LoopConfig
from rsr.pipelines.clash.table import CLASH
from rsr.pipelines.core import Curve, Plot, Step, StepTable
from rsr.pipelines.gnn.table import GNN

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
    collect=Step(
        name="collect",
        summary="Record a session with the previous policy",
        function="rsr.pipelines.loop.collect:collect",
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
        Curve("Divergence of reality from simulation", ("kl_*",)),
        Curve("Success of the deployed policy", ("success_sim", "success_reality")),
    ),
    models={"policy": "{dir}/policy", "calibration": "{dir}/calibration"},
)


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


def table_of(config: LoopConfig) -> StepTable:
    """The loop's own table, or that of the method whose section the settings have."""
    if config.clash is not None:
        return CLASH
    return GNN if config.gnn is not None else TABLE
