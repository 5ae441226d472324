"""The report of an iteration of CLASH: the evidence of the adaptation, and the strikes that were planned."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from rsr.calibration import Calibration, load_calibration
from rsr.common import read_json
from rsr.reports._html import (
    ABSENT,
    ReportSection,
    badge,
    bullets,
    join,
    millimetres,
    number,
    paragraph,
    percent,
    seconds,
    table,
    template,
)
from rsr.reports.chain import Row, is_simulated, read_rows
from rsr.reports.strikes import method_name
from rsr.scenarios import load_scenario
from rsr.workspace import Workspace


def render_collision_report(workspace: Workspace, iteration: int) -> str:
    """Render the page from the files of the workspace; equal files give an equal page."""
    config, folder = workspace.config(iteration), workspace.evaluation_dir(iteration)
    scenario = load_scenario(config.scenario)
    sections = [
        _summary([row for row in read_rows(workspace) if row["iteration"] <= iteration]),
        _methods(read_json(folder / "comparison.json"), (folder / "adaptation.png").read_bytes()),
        _parameters(load_calibration(workspace.calibration_dir(iteration))),
        _plans(read_json(workspace.iteration_dir(iteration) / "plan.json")["plans"]),
        _receipts([read_json(path) for path in sorted(workspace.receipts_dir(iteration).glob("*.json"))]),
    ]
    data = {"scenario": scenario, "iteration": iteration, "config": config}
    data["simulated"] = is_simulated(workspace, iteration)
    title = f"Iteration {iteration} · {scenario.name}"
    return template("page.html").render(data=data, sections=sections, title=title)


def _summary(chain: Sequence[Row]) -> ReportSection:
    row = chain[-1]
    verdict = (
        f"Adapted to {row['strikes_known']} strikes, the surrogate predicts {percent(row['accuracy_after'])} of unseen "
        f"ones within 10 %; before, it predicted {percent(row['accuracy_before'])}."
    )
    header = ["iteration", "strikes known", "rejected", "within 10 %, before", "after", "in 90 % intervals"]
    header += ["place of rest, before", "after"]
    rows = [
        [
            str(each["iteration"]),
            str(each["strikes_known"]),
            str(each["rejected"]),
            percent(each["accuracy_before"]),
            percent(each["accuracy_after"]),
            percent(each["inside_90"]),
            millimetres(each["gap_before"]),
            millimetres(each["gap_after"]),
        ]
        for each in chain
    ]
    words = Markup('<p class="verdict">{}</p>').format(verdict)
    note = paragraph("Before: the model of the iteration before. Place of rest: RMS distance, held-out strikes.")
    return ReportSection("summary", "Summary", join([words, table(header, rows), note]))


def _methods(comparison: Mapping[str, Any], picture: bytes) -> ReportSection:
    image = base64.b64encode(picture).decode()
    figure = Markup('<figure><img alt="{}" src="data:image/png;base64,{}"></figure>').format("models compared", image)
    rows = [
        [
            method_name(each["method"]),
            percent(each["accuracy"]),
            percent(each["accuracy_raw"]),
            percent(each["median_error"]),
            percent(each["inside_90"]),
        ]
        for each in comparison["methods"]
    ]
    header = ["model", "within 10 %", "raw metric", "median error", "in 90 % intervals"]
    lead = paragraph(f"Three models of the same strikes: {comparison['how']}. If the law alone does as well, use that.")
    return ReportSection("methods", "Models side by side", join([lead, figure, table(header, rows)]))


def _parameters(calibration: Calibration) -> ReportSection:
    rows = [
        [name, number(each.value), f"{number(each.lower)} to {number(each.upper)}", badge(each.verdict)]
        for name, each in calibration.estimates.items()
    ]
    lead = paragraph(
        "Which parameters explain the strikes through the surrogate. Intervals are the spread of the searches that "
        "ended equally well; other values may predict the same."
    )
    parts = [lead, table(["parameter", "value", "interval", "verdict"], rows, text=(0, 3))]
    if calibration.warnings:
        parts.append(bullets(calibration.warnings))
    return ReportSection("parameters", "Parameters", join(parts))


def _plans(plans: Sequence[Mapping[str, Any]]) -> ReportSection:
    header = ["target x", "y", "turn", "speed", "angle", "expected off by"]
    rows = [_plan_row(each) for each in plans]
    lead = paragraph("Single strikes to target poses, CMA-ES in the adapted model; nobody has carried them out here.")
    return ReportSection("plans", "Planned strikes", join([lead, table(header, rows)]))


def _plan_row(plan: Mapping[str, Any]) -> list[str]:
    (x, y, turn), (at_x, at_y, _) = plan["target"], plan["expected"]
    off_m = ((x - at_x) ** 2 + (y - at_y) ** 2) ** 0.5
    return [
        millimetres(x),
        millimetres(y),
        f"{turn:.2f} rad",
        f"{plan['speed_m_s']:.2f} m/s",
        f"{plan['angle_rad']:.2f} rad",
        millimetres(off_m),
    ]


def _receipts(receipts: Sequence[Mapping[str, Any]]) -> ReportSection:
    rows = [
        [str(each["step"]), seconds(each["duration_s"]), str(each["verdict"]), str(each.get("code", ABSENT))]
        for each in receipts
    ]
    return ReportSection("receipts", "Receipts", table(["step", "duration", "verdict", "code"], rows, text=(0, 2, 3)))
