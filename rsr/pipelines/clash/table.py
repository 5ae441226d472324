"""The table of a campaign of CLASH: its stages are DVC's and Prefect's, as those of the loop are."""

from __future__ import annotations

from rsr.pipelines import Curve, Plot, Step, StepTable, collecting

_BASE = "iterations/000/surrogate"

CLASH = StepTable(
    name="clash",
    stages=(
        Step(
            name="strikes",
            summary="Strikes on the scenario's block, simulated in MuJoCo over the ranges of Table I",
            function="rsr.pipelines.clash.stages:strikes",
            deps=(),
            outs=("{dir}/strikes",),
            settings=("scenario", "seed", "clash"),
            foreach=False,
        ),
        Step(
            name="surrogate",
            summary="The base model, distilled from the simulated strikes, and the prior of the parameters",
            function="rsr.pipelines.clash.stages:surrogate",
            deps=("{dir}/strikes",),
            outs=("{dir}/surrogate", "{dir}/calibration"),
            settings=("scenario", "seed", "clash"),
            foreach=False,
        ),
        Step(
            name="adapt",
            summary="Adapt the surrogate to recorded strikes",
            function="rsr.pipelines.clash.stages:adapt",
            deps=("{session}", _BASE, "{prev}/calibration"),
            outs=("{dir}/calibration",),
            settings=("scenario", "seed", "tune"),
            verdict="{dir}/calibration/calibration.json#status",
        ),
        Step(
            name="evaluate",
            summary="The model before and after, and the law of rigid impact, on strikes that nothing was fitted to",
            function="rsr.pipelines.clash.stages:evaluate",
            deps=("{session}", _BASE, "{prev}/calibration", "{dir}/calibration"),
            outs=(
                "{dir}/evaluation/comparison.json",
                "{dir}/evaluation/curve.json",
                "{dir}/evaluation/adaptation.png",
            ),
            metrics=("{dir}/evaluation/metrics.json",),
            settings=("scenario", "seed"),
        ),
        Step(
            name="aim",
            summary="Single strikes to target poses, planned in the adapted model",
            function="rsr.pipelines.clash.stages:aim",
            deps=("{dir}/calibration",),
            outs=("{dir}/plan.json",),
            settings=("scenario", "seed", "clash"),
        ),
        Step(
            name="report",
            summary="The iteration as one HTML page (it quotes durations, so its bytes may differ)",
            function="rsr.pipelines.clash.stages:report",
            deps=(
                "{dir}/calibration",
                "{dir}/evaluation/comparison.json",
                "{dir}/evaluation/adaptation.png",
                "{dir}/evaluation/metrics.json",
                "{dir}/plan.json",
            ),
            outs=("{dir}/report.html",),
        ),
    ),
    collect=collecting("Record strikes", "rsr.pipelines.loop.collect:collect_strikes"),
    plots=(Plot("Accuracy while adapting", "{dir}/evaluation/curve.json", x="strikes", y="accuracy"),),
    curves=(
        Curve("Unseen strikes predicted within 10 %", ("accuracy_before", "accuracy_after")),
        Curve("Place of rest, distance from the recorded one", ("gap_before", "gap_after")),
    ),
    models={"collisions": "{dir}/calibration"},
)
