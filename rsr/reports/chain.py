"""The chain of iterations in words and in the terminal: the figures that say whether the gap closes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.table import Table

from rsr.errors import WorkspaceError
from rsr.files import DAMAGED, read_json
from rsr.reports._text import ABSENT, counted, millimetres, number, percent
from rsr.workspace import Workspace

Row = Mapping[str, Any]
"""What `metrics.json` holds."""

CLOSE_POINTS = 10
"""Success in reality this close to success in simulation counts as transferred ..."""
LEARNT = 0.5
"""... if the policy succeeds this often in simulation; below that there is nothing to transfer."""


_CARD = "meta/rsr_card.json"
"""Read here as plain JSON, because `rsr.sessions` takes a second to load and `rsr status` shall not."""


@dataclass(frozen=True)
class Figure:
    """One key figure of an iteration.

    Args:
        key: its name in metrics.json.
        meaning: for the legend, k being the iteration.
    """

    key: str
    title: str
    text: Callable[[Any], str]
    meaning: str


FIGURES = (
    Figure("kl_x", "KL x", number, "divergence KL(recorded || simulated) of the block's x, policy and simulator k-1"),
    Figure("kl_y", "KL y", number, "the same along y"),
    Figure(
        "gap_before",
        "gap before",
        millimetres,
        "RMS position error on held-out episodes replayed open loop, simulator k-1",
    ),
    Figure("gap_after", "gap after", millimetres, "the same episodes, simulator k"),
    Figure("success_sim", "success simulated", percent, "policy k-1 in the simulator k-1 that it was trained in"),
    Figure("success_reality", "success recorded", percent, "policy k-1 on the same starts and targets, as recorded"),
    Figure("success_sim_retrained", "success retrained", percent, "policy k in the tuned simulator k"),
)


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
    """What to call the source of the recordings: whatever was simulated is called so."""
    return "stand-in for reality" if simulated else "reality"


def is_simulated(workspace: Workspace, iteration: int | None = None) -> bool:
    """Whether recordings come from a stand-in: what the card of the iteration's session says, or that of the last one.

    Where no card is at hand, the settings tell as much as they can.
    """
    chain = workspace.chain()
    for each in reversed(chain) if iteration is None else (iteration,):
        try:
            return bool(read_json(workspace.session_dir(each) / _CARD)["card"]["simulated"])
        except DAMAGED:
            continue
    return workspace.settings().reality.kind == "twin"


def chain_table(rows: Sequence[Row], simulated: bool = True) -> Table:
    """One line an iteration k, for the terminal; fits 80 columns."""
    source = "recorded on a simulated stand-in for reality" if simulated else "recorded in reality"
    title = f"Real-Sim-Real by iteration k, {source}"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    table.add_column("\nk", justify="right")
    for figure in FIGURES:
        table.add_column(figure.title.replace(" ", "\n"), justify="right")
    table.add_column("parameters\nidentified", justify="right")
    for row in rows:
        verdicts = list(row.get("verdicts", {}).values())
        identified = f"{verdicts.count('identified')} of {len(verdicts)}" if verdicts else ABSENT
        table.add_row(str(row.get("iteration")), *(f.text(row.get(f.key)) for f in FIGURES), identified)
    return table


def verdict_counts(row: Row) -> str:
    return counted(row.get("verdicts", {}).values())


def verdict_sentence(rows: Sequence[Row], simulated: bool = True) -> str:
    """Say in two sentences what the last of these iterations showed."""
    if not rows:
        return "Nothing has been evaluated yet."
    return f"{_gap_sentence(rows[-1])} {_transfer_sentence(rows[-1], reality_name(simulated))}".strip()


def _gap_sentence(row: Row) -> str:
    before_m, after_m = row.get("gap_before"), row.get("gap_after")
    if before_m is None or after_m is None:
        return "The gap on held-out episodes was not measured."
    ratio = before_m / after_m if after_m > 0 else float("inf")
    if ratio < 1.0:
        return f"Tuning did not help: {millimetres(before_m)} off before, {millimetres(after_m)} after, held out."
    if ratio < 1.02:
        return f"The simulator predicts held-out episodes to {millimetres(after_m)}, as well as before tuning."
    times = f", {ratio:.1f} times as much" if after_m > 0 else ""
    was = f"{millimetres(before_m)} before tuning{times}"
    return f"The tuned simulator predicts held-out episodes to {millimetres(after_m)} ({was})."


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
