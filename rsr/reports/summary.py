"""Section: the verdict in a sentence, the key figures, and the chain they stand in."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from rsr.reports._html import Section, absent, bullets, folded, join, paragraph, table, unbroken
from rsr.reports._text import ABSENT, millimetres, number, percent
from rsr.reports.chain import FIGURES, verdict_counts, verdict_sentence
from rsr.reports.data import ReportData


def summary(data: ReportData) -> Section:
    verdict = unbroken(verdict_sentence([data.row] if data.row else [], data.simulated))
    parts = [Markup('<p class="verdict">{}</p>').format(verdict)]
    if data.row:
        parts += [_tiles(data), _chain(data), _legend(data)]
    else:
        parts.append(absent("key figures", data.why(f"metrics {data.iteration}")))
    return Section("summary", "Summary", join(parts))


def _tiles(data: ReportData) -> Markup:
    tile = Markup('<div class="tile"><div class="name">{}</div><div class="value">{}</div><div>{}</div></div>')
    return Markup('<div class="tiles">{}</div>').format(join(tile.format(*texts) for texts in _tile_texts(data)))


def _tile_texts(data: ReportData) -> Iterator[tuple[str, str, str]]:
    row = data.row
    before = next((earlier for earlier in data.rows if earlier.get("iteration") == data.iteration - 1), {})

    def was(text: str) -> str:
        return f"{text} in iteration {data.iteration - 1}" if before else "first iteration"

    yield "Held-out gap", millimetres(row.get("gap_after")), f"{millimetres(row.get('gap_before'))} before tuning"
    yield "KL along x", number(row.get("kl_x")), was(number(before.get("kl_x")))
    yield "KL along y", number(row.get("kl_y")), was(number(before.get("kl_y")))
    yield "Success, recorded", percent(row.get("success_reality")), was(percent(before.get("success_reality")))
    yield "Success, simulated", percent(row.get("success_sim")), was(percent(before.get("success_sim")))


def _chain(data: ReportData) -> Markup:
    header = ["iteration", *(figure.title for figure in FIGURES), "coverage", "verdicts on the parameters"]
    rows = [
        [
            str(row.get("iteration", ABSENT)),
            *(figure.text(row.get(figure.key)) for figure in FIGURES),
            percent(row.get("coverage")),
            verdict_counts(row),
        ]
        for row in data.rows
    ]
    return table(header, rows, text=(0, len(header) - 1), strong=data.rows.index(data.row))


def _legend(data: ReportData) -> Markup:
    k = data.iteration
    origin = "was simulated too: it is a MuJoCo stand-in with hidden parameters" if data.simulated else "is real"
    order = paragraph(
        f"In iteration {k} policy {k - 1} ran on the {data.reality}; the simulator was then tuned to the recording "
        f"(parameters {k - 1} became parameters {k}), and policy {k} was trained in it. The recording {origin}."
    )
    meanings = bullets(f"{figure.title}: {figure.meaning}" for figure in FIGURES)
    return join([order, folded("What the columns mean (k: the iteration)", meanings)])
