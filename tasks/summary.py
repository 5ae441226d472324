"""The loop's results as a table, for the terminal and for Prefect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from rsr.files import read_json
from tasks.campaign import Campaign

Row = Mapping[str, Any]

_COLUMNS = ("iteration", "kl_x", "kl_y", "gap_before", "gap_after", "success_sim", "success_reality")


def as_table(rows: Sequence[Row]) -> Table:
    """One line an iteration, the figures that say whether the gap closes."""
    table = Table()
    for column in _COLUMNS:
        table.add_column(column.replace("_", "\n"), justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(_text(row.get(column)) for column in _COLUMNS))
    return table


def as_records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [{column: row.get(column) for column in _COLUMNS} for row in rows]


def as_markdown(campaign: Campaign, iteration: int) -> str:
    """One iteration as a page for Prefect's UI: figures, parameters with verdicts, receipts, where the report is."""
    row = read_json(campaign.workspace.metrics_path(iteration))
    verdicts = row.get("verdicts", {})
    lines = [f"# Iteration {iteration}", "", "| figure | value |", "|---|---|"]
    lines += [f"| {column} | {_text(row.get(column))} |" for column in _COLUMNS[1:]]
    lines += ["", "| parameter | value | verdict |", "|---|---|---|"]
    lines += [
        f"| {name} | {_text(value)} | {verdicts.get(name, '')} |" for name, value in row.get("params", {}).items()
    ]
    lines += ["", "| step | seconds | verdict |", "|---|---|---|"]
    for path in sorted(campaign.workspace.receipts_dir(iteration).glob("*.json")):
        receipt = read_json(path)
        lines.append(f"| {receipt['step']} | {_text(receipt['duration_s'])} | {receipt['verdict']} |")
    return "\n".join([*lines, "", f"Report: `{campaign.workspace.report_path(iteration)}`"])


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
