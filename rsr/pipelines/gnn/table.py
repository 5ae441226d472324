"""The table of a campaign that learns a simulator of contact; DVC's stages and Prefect's tasks follow it."""

from __future__ import annotations

from rsr.pipelines import Curve, Step, StepTable, collecting

_GNN = ("scenario", "seed", "gnn")

GNN = StepTable(
    name="gnn",
    stages=(
        Step(
            name="prior",
            summary="Parameters before any recording",
            function="rsr.pipelines.loop.stages:prior",
            deps=(),
            outs=("{dir}/calibration",),
            foreach=False,
        ),
        Step(
            name="identify",
            summary="The teacher, MuJoCo with the parameters that explain the recordings best",
            function="rsr.pipelines.gnn.stages:identify",
            deps=("{session}", "{prev}/calibration"),
            outs=("{dir}/identified",),
            settings=(*_GNN, "tune"),
            verdict="{dir}/identified/calibration.json#status",
        ),
        Step(
            name="scale",
            summary="Trajectories that the teacher simulates from varied starts",
            function="rsr.pipelines.gnn.stages:scale",
            deps=("{session}", "{dir}/identified"),
            outs=("{dir}/trajectories",),
            settings=_GNN,
        ),
        Step(
            name="train",
            summary="A network that learns the teacher",
            function="rsr.pipelines.gnn.stages:train",
            deps=("{dir}/trajectories",),
            outs=("{dir}/taught",),
            settings=_GNN,
        ),
        Step(
            name="finetune",
            summary="The network on the few recordings, kept where it predicts others better",
            function="rsr.pipelines.gnn.stages:finetune",
            deps=("{session}", "{dir}/identified", "{dir}/taught"),
            outs=("{dir}/calibration",),
            settings=_GNN,
            verdict="{dir}/calibration/calibration.json#status",
        ),
        Step(
            name="evaluate",
            summary="The model before, the teacher and the network on held-out recordings",
            function="rsr.pipelines.gnn.stages:evaluate",
            deps=("{session}", "{prev}/calibration", "{dir}/identified", "{dir}/calibration"),
            outs=(),
            metrics=("{dir}/evaluation/metrics.json",),
        ),
        Step(
            name="report",
            summary="Predicted trajectories beside the recorded ones, as one HTML page",
            function="rsr.pipelines.gnn.stages:report",
            deps=("{session}", "{dir}/calibration", "{dir}/evaluation/metrics.json"),
            outs=("{dir}/report.html",),
        ),
    ),
    collect=collecting("Record bodies in contact", "rsr.pipelines.loop.collect:collect_contacts"),
    curves=(Curve("Gap on held-out recordings", ("gap_before", "gap_teacher", "gap_after")),),
    models={"contact": "{dir}/calibration"},
)
