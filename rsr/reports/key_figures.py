"""The key figures of an iteration: how they are called, written and explained. Which there are, metrics.json says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rsr.reports._html import DisplayUnit, number, percent, shown_in

Row = Mapping[str, Any]
"""Content of `metrics.json`."""


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


_SUCCESS = (
    Figure("success_sim", "success simulated", percent, "policy k-1 in the simulator k-1 that it was trained in"),
    Figure("success_reality", "success recorded", percent, "policy k-1 from the same starts, as recorded"),
    Figure("success_sim_retrained", "success retrained", percent, "policy k in the tuned simulator k"),
)
_LARGEST = "kl_largest"
_KL_COLUMNS = 3
"""Of divergences in the terminal, which is narrow; where a task has more figures, it shows the largest alone."""


def kl_keys(rows: Iterable[Row]) -> list[str]:
    """The divergences that there are, one for each figure of the task."""
    return list(dict.fromkeys(key for row in rows for key in sorted(row) if key.startswith("kl_")))


def kl_name(key: str) -> str:
    """The task's figure that a divergence is of."""
    return key.removeprefix("kl_").replace("_", " ")


def figures_of(rows: Sequence[Row]) -> list[Figure]:
    """The key figures that these iterations have; those of success and divergence only where there is a policy."""
    text = gap_unit(rows).measured
    divergences = [
        Figure(key, f"KL {kl_name(key)}", number, f"divergence KL(recorded || simulated) of the task's {kl_name(key)}")
        for key in kl_keys(rows)
    ]
    gaps = [
        Figure("gap_before", "gap before", text, "RMS error on held-out episodes replayed open loop, simulator k-1"),
        Figure("gap_after", "gap after", text, "the same episodes, simulator k"),
    ]
    return [*divergences, *gaps, *(figure for figure in _SUCCESS if any(figure.key in row for row in rows))]


def gap_unit(rows: Sequence[Row]) -> DisplayUnit:
    """How the gaps of these iterations are shown beside each other."""
    unit = next((row["units"]["gap"] for row in reversed(rows) if row.get("units")), "m")
    return shown_in(unit, *(row.get(key) for row in rows for key in ("gap_before", "gap_after")))


def narrowed(rows: Sequence[Row]) -> tuple[list[Figure], Sequence[Row]]:
    """Figures that fit a terminal, and the rows that have them."""
    figures, keys = figures_of(rows), kl_keys(rows)
    if len(keys) <= _KL_COLUMNS:
        return figures, rows
    largest = Figure(_LARGEST, "KL largest", number, "")
    kept = [largest, *(figure for figure in figures if figure.key not in keys)]
    return kept, [{**row, _LARGEST: max((row[key] for key in keys if key in row), default=None)} for row in rows]
