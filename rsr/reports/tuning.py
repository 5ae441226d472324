"""The chain of an alternative tuning in the terminal and in Markdown: what was predicted before it, and what after."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table

from rsr.reports._text import ABSENT, millimetres, number, percent
from rsr.reports.chain import Figure, Row

FIGURES = (
    Figure("strikes_known", "strikes known", lambda value: number(value, 4), "strikes that the model was adapted to"),
    Figure("accuracy_before", "within 10 %, before", percent, "velocities after the impact, model k-1, unseen strikes"),
    Figure("accuracy_after", "after", percent, "the same strikes, model k"),
    Figure("gap_before", "gap before", millimetres, "RMS distance on held-out recordings, model k-1"),
    Figure("gap_teacher", "gap of the teacher", millimetres, "the same recordings, MuJoCo as identified"),
    Figure("gap_after", "gap after", millimetres, "the same recordings, model k"),
)


def tuning_table(rows: Sequence[Row]) -> Table:
    """One line an iteration k, with the figures that there are."""
    table = Table(title="By iteration k", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("k", justify="right")
    figures = _there(rows)
    for figure in figures:
        table.add_column(figure.title, justify="right")
    for row in rows:
        table.add_row(str(row.get("iteration")), *(figure.text(row.get(figure.key)) for figure in figures))
    return table


def tuning_markdown(rows: Sequence[Row], report: str) -> str:
    """The last iteration's figures beside its predecessor's, for whoever shows Markdown."""
    shown = rows[-2:]
    header = ["figure", *(f"iteration {row['iteration']}" for row in shown), "meaning (k: the iteration)"]
    lines = [header, ["---"] * len(header)]
    for figure in _there(shown):
        lines.append([figure.title, *(figure.text(row.get(figure.key)) for row in shown), figure.meaning])
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    judged = shown[-1].get("judged", ABSENT) if shown else ABSENT
    return f"# Iteration {shown[-1]['iteration'] if shown else ABSENT}\n\n{judged}\n\n{table}\n\nReport: `{report}`\n"


def _there(rows: Sequence[Row]) -> list[Figure]:
    return [figure for figure in FIGURES if any(figure.key in row for row in rows)]
