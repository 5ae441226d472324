"""An iteration in a screenful of Markdown, from its small JSON files alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rsr.files import DAMAGED, read_json
from rsr.reports._text import ABSENT, number, seconds
from rsr.reports.chain import FIGURES, Row, is_simulated, read_rows, verdict_sentence
from rsr.workspace import Workspace


def summary_markdown(workspace: Workspace, iteration: int) -> str:
    """Summarise an iteration: verdict, figures beside the predecessor's, parameters, receipts, where the report is."""
    rows = [row for row in read_rows(workspace) if row["iteration"] <= iteration]
    simulated = is_simulated(workspace, iteration)
    blocks = [
        f"# Iteration {iteration}",
        verdict_sentence(rows[-1:], simulated),
        _figures(rows[-2:]),
        _parameters(workspace, iteration, rows[-1] if rows else {}),
        _receipts(workspace, iteration),
        f"Report: `{workspace.report_path(iteration)}`",
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _figures(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    header = ("figure", *(f"iteration {row['iteration']}" for row in rows), "meaning")
    body = [(f.title, *(f.text(row.get(f.key)) for row in rows), f.meaning) for f in FIGURES]
    return _table(header, body)


def _parameters(workspace: Workspace, iteration: int, row: Row) -> str:
    verdicts, intervals = row.get("verdicts", {}), _intervals(workspace, iteration)
    body = [
        (name, number(value), intervals.get(name, ABSENT), verdicts.get(name, ABSENT))
        for name, value in row.get("params", {}).items()
    ]
    return _table(("parameter", "value", "95 % interval", "verdict"), body) if body else ""


def _intervals(workspace: Workspace, iteration: int) -> dict[str, str]:
    """Read the intervals, where calibration.json is there and has them; they are worth a column, not an error."""
    try:
        estimates = read_json(workspace.calibration_dir(iteration) / "calibration.json")["parameters"]
        return {
            each["name"]: f"{number(each['lower'])} to {number(each['upper'])} {_unit(each['unit'])}".rstrip()
            for each in estimates
        }
    except DAMAGED:
        return {}


def _unit(unit: str) -> str:
    return "" if unit == "1" else unit


def _receipts(workspace: Workspace, iteration: int) -> str:
    receipts = [read_json(path) for path in sorted(workspace.receipts_dir(iteration).glob("*.json"))]
    body = [(receipt["step"], seconds(receipt["duration_s"]), str(receipt["verdict"])) for receipt in receipts]
    return _table(("step", "duration", "verdict"), body) if body else ""


def _table(header: Iterable[str], body: Iterable[Iterable[str]]) -> str:
    def lines() -> Iterator[str]:
        names = list(header)
        yield _line(names)
        yield _line(["---"] * len(names))
        for cells in body:
            yield _line(cells)

    return "\n".join(lines())


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
