"""The report of an iteration, and its sections on the summary, the data and the receipts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

from rsr.common import Advance, ignore
from rsr.reports._html import (
    ABSENT,
    ReportSection,
    absent,
    bullets,
    folded,
    join,
    link,
    number,
    paragraph,
    percent,
    seconds,
    table,
    template,
    unbroken,
)
from rsr.reports.calibration import calibration, parameters
from rsr.reports.chain import verdict_counts, verdict_sentence
from rsr.reports.data import ReportData, read_report_data
from rsr.reports.divergence import divergence, infogap
from rsr.reports.key_figures import figures_of, gap_unit, kl_keys, kl_name
from rsr.reports.success import learning, success
from rsr.reports.trajectories import coverage, trajectories
from rsr.workspace import Workspace


def summary(data: ReportData) -> ReportSection:
    verdict = unbroken(verdict_sentence([data.row] if data.row else [], data.simulated))
    parts = [Markup('<p class="verdict">{}</p>').format(verdict)]
    if data.row:
        parts += [_tiles(data), _chain(data), _legend(data)]
    else:
        parts.append(absent("key figures", data.why(f"metrics {data.iteration}")))
    return ReportSection("summary", "Summary", join(parts))


def _tiles(data: ReportData) -> Markup:
    tile = Markup('<div class="tile"><div class="name">{}</div><div class="value">{}</div><div>{}</div></div>')
    return Markup('<div class="tiles">{}</div>').format(join(tile.format(*texts) for texts in _tile_texts(data)))


def _tile_texts(data: ReportData) -> Iterator[tuple[str, str, str]]:
    row = data.row
    before = next((earlier for earlier in data.rows if earlier.get("iteration") == data.iteration - 1), {})

    def was(text: str) -> str:
        return f"{text} in iteration {data.iteration - 1}" if before else "first iteration"

    gap = gap_unit([row]).measured
    nominal = f", {gap(row['gap_nominal'])} nominal" if "gap_nominal" in row else ""
    yield "Held-out gap", gap(row.get("gap_after")), f"{gap(row.get('gap_before'))} before tuning{nominal}"
    for key in kl_keys([row]):
        yield f"KL of {kl_name(key)}", number(row[key]), was(number(before.get(key)))
    if "success_reality" in row:
        yield "Success, recorded", percent(row["success_reality"]), was(percent(before.get("success_reality")))
        yield "Success, simulated", percent(row.get("success_sim")), was(percent(before.get("success_sim")))


def _chain(data: ReportData) -> Markup:
    covered = any("coverage" in row for row in data.rows)
    figures = figures_of(data.rows)
    titles = [*(figure.title for figure in figures), *(["coverage"] if covered else [])]
    header = ["iteration", *titles, "verdicts on the parameters"]
    rows = [
        [
            str(row.get("iteration", ABSENT)),
            *(figure.text(row.get(figure.key)) for figure in figures),
            *([percent(row.get("coverage"))] if covered else []),
            verdict_counts(row),
        ]
        for row in data.rows
    ]
    return table(header, rows, text=(0, len(header) - 1), strong=data.rows.index(data.row))


def _legend(data: ReportData) -> Markup:
    k = data.iteration
    origin = "was simulated too: it is a MuJoCo stand-in with hidden parameters" if data.simulated else "is real"
    tuned = f"the simulator was then tuned to the recording (parameters {k - 1} became parameters {k})"
    if data.task is None:
        order = paragraph(f"In iteration {k} the lab recorded; {tuned}. The recording {origin}.")
    else:
        order = paragraph(
            f"In iteration {k} policy {k - 1} ran on the {data.reality}; {tuned}, and policy {k} was trained in it. "
            f"The recording {origin}."
        )
    meanings = bullets(f"{figure.title}: {figure.meaning}" for figure in figures_of(data.rows))
    return join([order, folded("What the columns mean (k: the iteration)", meanings)])


# Section: where the data lie from which this page was made.


def links(data: ReportData) -> ReportSection:
    workspace, k = data.workspace, data.iteration
    places: list[tuple[str, Path]] = [
        ("recorded session", workspace.session_dir(k)),
        ("settings frozen for the iteration", workspace.frozen_path(k)),
        ("calibration, with replayed trajectories", workspace.calibration_dir(k)),
        ("metrics", workspace.metrics_path(k)),
        ("receipts", workspace.receipts_dir(k)),
    ]
    if data.task is not None:
        places[3:3] = [
            ("InfoGap model", workspace.infogap_dir(k)),
            ("policy trained in this iteration", workspace.policy_dir(k)),
            ("policy that was deployed", workspace.policy_dir(k - 1)),
            ("closed-loop rollouts", workspace.evaluation_dir(k) / "rollouts.npz"),
        ]
    if k > 1:
        places.append((f"report of iteration {k - 1}", workspace.report_path(k - 1)))
    page = workspace.report_path(k).parent
    rows = [
        [what, link(Path(os.path.relpath(path, page)).as_posix(), workspace.relative(path))] for what, path in places
    ]
    note = paragraph("Files that are not on this machine come back with `dvc pull` or `dvc checkout` in the workspace.")
    return ReportSection("links", "Data", join([table(["what", "where, in the workspace"], rows, text=(0, 1)), note]))


# Section: from what each result was made, by which code, with which seed, in what time.

Receipt = Mapping[str, Any]


def receipts(data: ReportData) -> ReportSection:
    title = "Receipts"
    if not data.receipts:
        return ReportSection("receipts", title, absent("receipts", "None lie in receipts/ of this iteration."))
    header = ["step", "verdict", "code", "seed", "started", "duration", "inputs"]
    overview = table(header, [_row(receipt) for receipt in data.receipts], text=(0, 1, 2, 3, 4))
    note = paragraph("The receipt of the report itself is written after it and lies beside the others.")
    versions, hashes = (folded(name, body) for name, body in (("Versions", _versions(data)), ("Hashes", _hashes(data))))
    return ReportSection("receipts", title, join([overview, versions, hashes, note]))


def _row(receipt: Receipt) -> list[str | Markup]:
    return [
        str(receipt.get("step", ABSENT)),
        str(receipt.get("verdict", ABSENT)),
        Markup("<code>{}</code>").format(receipt.get("code", ABSENT)),
        str(receipt.get("seed", ABSENT)),
        str(receipt.get("started_at") or ABSENT).replace("T", " ").removesuffix("+00:00"),
        seconds(receipt.get("duration_s")),
        str(len(receipt.get("inputs", {}))),
    ]


def _versions(data: ReportData) -> Markup:
    """One column for each different set of versions, headed by the steps that ran with it."""
    sets: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for receipt in data.receipts:
        sets.setdefault(tuple(sorted(receipt.get("versions", {}).items())), []).append(str(receipt.get("step")))
    names = sorted({name for versions in sets for name, _ in versions})
    rows = [[name, *(dict(versions).get(name, ABSENT) for versions in sets)] for name in names]
    return table(["package", *(", ".join(steps) for steps in sets.values())], rows)


def _hashes(data: ReportData) -> Markup:
    rows = [
        [str(receipt.get("step")), kind, path, Markup("<code>{}</code>").format(sha256)]
        for receipt in data.receipts
        for kind, key in (("read", "inputs"), ("wrote", "outputs"))
        for path, sha256 in receipt.get(key, {}).items()
    ]
    return table(["step", "", "path", "SHA-256 (of a folder: of its files' names and hashes)"], rows, text=(0, 1, 2, 3))


# The report of an iteration: one HTML page that needs nothing else, no script and no network.

SECTIONS: tuple[Callable[[ReportData], ReportSection], ...] = (
    summary,
    trajectories,
    parameters,
    divergence,
    success,
    learning,
    coverage,
    infogap,
    calibration,
    receipts,
    links,
)


_OF_POLICY = (divergence, success, learning, coverage, infogap)
"""Left out where the scenario has no task."""


def render_report(workspace: Workspace, iteration: int, advance: Advance = ignore) -> str:
    """Render the page of one iteration from the files of its workspace; equal files give an equal page."""
    data = read_report_data(workspace, iteration)
    sections = []
    for index, section in enumerate(SECTIONS):
        if data.task is not None or section not in _OF_POLICY:
            sections.append(section(data))
        advance((index + 1) / len(SECTIONS), sections[-1].title)
    title = f"Iteration {iteration} · {data.scenario.name}"
    return template("page.html").render(data=data, sections=sections, title=title)
