"""The chain of iterations in the terminal and in Markdown: the figures that say whether the gap closes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.table import Table

from rsr.errors import WorkspaceError
from rsr.files import DAMAGED, read_json
from rsr.reports._html import ABSENT, counted, millimetres, number, percent, seconds
from rsr.reports.key_figures import Figure, Row, figures_of, gap_unit, narrowed
from rsr.workspace import Workspace

CLOSE_POINTS = 10
"""Success in reality this close to success in simulation counts as transferred ..."""
LEARNT = 0.5
"""... if the policy succeeds this often in simulation; below that there is nothing to transfer."""


_CARD = "meta/rsr_card.json"
"""Read here as plain JSON, because `rsr.sessions` takes a second to load and `rsr status` must not."""


def read_rows(workspace: Workspace) -> list[Row]:
    """The metrics of every iteration evaluated so far, in order.

    Raises:
        WorkspaceError: one of the files is damaged.
    """
    try:
        return list(workspace.rows())
    except DAMAGED as error:
        raise WorkspaceError(
            got=f"{type(error).__name__}: {error}",
            expected="readable metrics.json of every iteration",
            where=str(workspace.root),
            next_step="Restore them with `git checkout -- iterations`, or make them again: `dvc repro`.",
        ) from error


def reality_name(simulated: bool) -> str:
    """Name the source of the recordings: whatever was simulated is called so."""
    return "stand-in for reality" if simulated else "reality"


def is_simulated(workspace: Workspace, iteration: int | None = None) -> bool:
    """Whether recordings come from a stand-in: what the card of the iteration's session says, or that of the last one.

    Where no card is at hand, the settings decide as far as they can.
    """
    chain = workspace.chain()
    for each in reversed(chain) if iteration is None else (iteration,):
        try:
            return bool(read_json(workspace.session_dir(each) / _CARD)["card"]["simulated"])
        except DAMAGED:
            continue
    return workspace.settings().reality.kind == "stand_in"


def chain_table(rows: Sequence[Row], simulated: bool = True) -> Table:
    """One line an iteration k, for the terminal; fits 80 columns."""
    source = "recorded on a simulated stand-in" if simulated else "recorded in reality"
    title = f"Real-Sim-Real by iteration k, {source}"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=0, pad_edge=False)
    table.min_width = len(title)  # rich would break the title where the table ends
    table.add_column("\nk", justify="right")
    figures, shown = narrowed(rows)
    for figure in figures:
        table.add_column(figure.title.replace(" ", "\n"), justify="right")
    table.add_column("parameters\nidentified", justify="right")
    for row in shown:
        verdicts = list(row.get("verdicts", {}).values())
        identified = f"{verdicts.count('identified')} of {len(verdicts)}" if verdicts else ABSENT
        table.add_row(str(row.get("iteration")), *(f.text(row.get(f.key)) for f in figures), identified)
    return table


def verdict_counts(row: Row) -> str:
    return counted(row.get("verdicts", {}).values())


def verdict_sentence(rows: Sequence[Row], simulated: bool = True) -> str:
    """Say in two sentences what the last of these iterations showed."""
    if not rows:
        return "Nothing has been evaluated yet."
    return f"{_gap_sentence(rows[-1])} {_transfer_sentence(rows[-1], reality_name(simulated))}".strip()


def _gap_sentence(row: Row) -> str:
    before, after = row.get("gap_before"), row.get("gap_after")
    if before is None or after is None:
        return "The gap on held-out episodes was not measured."
    text = gap_unit([row]).measured
    ratio = before / after if after > 0 else float("inf")
    if ratio < 1.0:
        return f"Tuning did not help: {text(before)} off before, {text(after)} after, held out."
    if ratio < 1.02:
        return f"The simulator predicts held-out episodes to {text(after)}, as well as before tuning."
    times = f", {ratio:.1f} times as much" if after > 0 else ""
    was = f"{text(before)} before tuning{times}"
    return f"The tuned simulator predicts held-out episodes to {text(after)} ({was})."


def _transfer_sentence(row: Row, reality: str) -> str:
    simulated, real = row.get("success_sim"), row.get("success_reality")
    if simulated is None or real is None:
        return ""
    points = 100 * (simulated - real)
    if simulated < LEARNT:
        verdict = "it has not learnt the task yet"
    elif abs(points) <= CLOSE_POINTS:
        verdict = f"within {CLOSE_POINTS} points, so what was learnt in simulation transfers"
    elif points > 0:
        verdict = f"{points:.0f} points short, so the simulator it was trained in still promises too much"
    else:
        verdict = f"{-points:.0f} points better, so the simulator it was trained in is harder than need be"
    deployed = int(row["iteration"]) - 1
    return (
        f"Policy {deployed}, deployed for this recording, succeeds in {percent(real)} of the episodes on the "
        f"{reality} and in {percent(simulated)} in its own simulator: {verdict}."
    )


# The chain of an alternative tuning in the terminal and in Markdown: what was predicted before it, and what after.

TUNING_FIGURES = (
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
    return [figure for figure in TUNING_FIGURES if any(figure.key in row for row in rows)]


# An iteration in a screenful of Markdown, from its small JSON files alone.


def iteration_markdown(workspace: Workspace, iteration: int) -> str:
    """Summarise an iteration of whichever pipeline the campaign has."""
    settings = workspace.settings()
    if settings.clash is None and settings.gnn is None:
        return summary_markdown(workspace, iteration)
    rows = [row for row in read_rows(workspace) if row["iteration"] <= iteration]
    return tuning_markdown(rows, str(workspace.report_path(iteration)))


def summary_markdown(workspace: Workspace, iteration: int) -> str:
    """Summarise an iteration of the loop: verdict, figures, parameters, receipts, where the report is."""
    rows = [row for row in read_rows(workspace) if row["iteration"] <= iteration]
    simulated = is_simulated(workspace, iteration)
    parts = [
        f"# Iteration {iteration}",
        verdict_sentence(rows[-1:], simulated),
        _figures(rows[-2:]),
        _parameters(workspace, iteration, rows[-1] if rows else {}),
        _receipts(workspace, iteration),
        f"Report: `{workspace.report_path(iteration)}`",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _figures(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    header = ("figure", *(f"iteration {row['iteration']}" for row in rows), "meaning")
    body = [(f.title, *(f.text(row.get(f.key)) for row in rows), f.meaning) for f in figures_of(rows)]
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
