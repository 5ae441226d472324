"""The chain of iterations in the terminal and in Markdown: the figures that say whether the gap closes."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table

from rsr.common import DAMAGED, WorkspaceError, read_json, titled_table
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
    figures, shown = narrowed(rows)
    lines = []
    for row in shown:
        verdicts = list(row.get("verdicts", {}).values())
        identified = f"{verdicts.count('identified')} of {len(verdicts)}" if verdicts else ABSENT
        lines.append((str(row.get("iteration")), *(f.text(row.get(f.key)) for f in figures), identified))
    header = ("\nk", *(figure.title.replace(" ", "\n") for figure in figures), "parameters\nidentified")
    table = titled_table(title, header, lines, text=(), box=box.SIMPLE_HEAD, padding=0, pad_edge=False)
    table.min_width = len(title)  # rich would break the title where the table ends
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
    figures = _there(rows)
    lines = [(str(row.get("iteration")), *(figure.text(row.get(figure.key)) for figure in figures)) for row in rows]
    header = ("k", *(figure.title for figure in figures))
    return titled_table("By iteration k", header, lines, text=(), box=box.SIMPLE_HEAD, pad_edge=False)


def tuning_markdown(rows: Sequence[Row], report: str) -> str:
    """The last iteration's figures beside its predecessor's, for whoever shows Markdown."""
    shown = rows[-2:]
    table = _figures(shown, _there(shown), "meaning (k: the iteration)")
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
        _figures(rows[-2:], figures_of(rows[-2:]), "meaning") if rows else "",
        _parameters(workspace, iteration, rows[-1] if rows else {}),
        _receipts(workspace, iteration),
        f"Report: `{workspace.report_path(iteration)}`",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _figures(rows: Sequence[Row], figures: Sequence[Figure], meaning: str) -> str:
    header = ("figure", *(f"iteration {row['iteration']}" for row in rows), meaning)
    return _table(header, [(f.title, *(f.text(row.get(f.key)) for row in rows), f.meaning) for f in figures])


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


def _table(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [[cell.replace("|", "\\|") for cell in cells] for cells in (header, ["---"] * len(header), *body)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
