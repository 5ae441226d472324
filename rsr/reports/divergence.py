"""Section: how far recorded and simulated episodes diverge in each of the task's figures, as in the paper's Table I."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from rsr.reports._drawing import (
    AFTER,
    BEFORE,
    PRIOR,
    REAL,
    SERIES,
    WIDE,
    band,
    draw,
    draw_panels,
    picture,
    whole_numbers,
)
from rsr.reports._html import ReportSection, absent, join, number, percent, shown_in, table
from rsr.reports.data import ReportData, figure_of
from rsr.reports.key_figures import Row, kl_keys, kl_name
from rsr.scenarios import ProgressFigure

LINEAR_BELOW = 0.01


def divergence(data: ReportData) -> ReportSection:
    return ReportSection("divergence", "Divergence per figure", join([_history(data), _offsets(data)]))


def paint_divergence(axes: Axes, rows: Sequence[Row]) -> None:
    """KL per figure over the iterations, on an axis that is logarithmic down to `LINEAR_BELOW`."""
    numbers, keys = [row["iteration"] for row in rows], kl_keys(rows)
    for place, key in enumerate(keys):
        colour, marker = SERIES[place % len(SERIES)], "osD^vP"[place % 6]
        axes.plot(numbers, [row.get(key, np.nan) for row in rows], color=colour, marker=marker, label=kl_name(key))
    if min(row[key] for row in rows for key in keys if row.get(key) is not None) > LINEAR_BELOW:
        axes.set_yscale("log")
    else:  # a closed gap reads 0, which has no place on a logarithmic axis
        axes.set_yscale("symlog", linthresh=LINEAR_BELOW, linscale=0.5)
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    whole_numbers(axes, numbers)
    axes.set(xlabel="iteration", ylabel="KL(recorded || simulated)")
    axes.legend()


def complete(rows: Sequence[Row], *keys: str) -> list[Row]:
    """Keep the rows that have all of these figures."""
    return [row for row in rows if all(row.get(key) is not None for key in ("iteration", *keys))]


def _history(data: ReportData) -> Markup:
    rows = [row for row in complete(data.rows) if kl_keys([row])]
    if not rows:
        return absent("divergence per iteration", data.why(f"metrics {data.iteration}"))
    keys = kl_keys(rows)
    figures = table(
        ["iteration", *(f"KL {kl_name(key)}" for key in keys)],
        [[str(row["iteration"]), *(number(row.get(key)) for key in keys)] for row in rows],
    )
    caption = (
        "Mean over the episode of the divergence between the distributions of each figure of the task, recorded on the "
        f"{data.reality} and simulated with the parameters under which the policy had been trained."
    )
    drawn = draw(lambda axes: paint_divergence(axes[0], rows), (5.2, 2.7))
    history = picture(drawn, "KL per figure over the iterations", caption)
    return Markup('<div class="pair">{}{}</div>').format(history, figures)


def _offsets(data: ReportData) -> Markup:
    if data.rollouts is None:
        return absent("what these numbers compare", data.why("rollouts"))
    rollouts, k = data.rollouts, data.iteration
    figures = [figure for figure in (data.task.figures if data.task else ()) if figure.axis]
    if not figures:
        return Markup()

    def paint(axes: Axes, figure: ProgressFigure) -> None:
        recorded = figure_of(rollouts, "real", figure)
        unit = shown_in(figure.unit, recorded)
        time_s = np.arange(recorded.shape[1]) * data.scenario.control_dt_s
        for name, colour, label in (
            ("real", REAL, f"recorded on the {data.reality}"),
            ("simulated", BEFORE, f"simulated, parameters {k - 1}"),
        ):
            band(axes, time_s, unit.factor * figure_of(rollouts, name, figure), colour, label)
        axes.set(xlabel="time (s)", ylabel=unit.axis(figure.name), xlim=(0, time_s[-1]))

    caption = (
        f"What the divergence of iteration {k} compares: figures of the task over "
        f"{len(figure_of(rollouts, 'real', figures[0]))} episodes, median and middle 80 %. Where the bands part, the "
        "simulator misjudges the policy."
    )
    return picture(draw_panels(figures, paint, 2.8, 2), "Figures of the task over time", caption)


# Section: InfoGap, the divergence of whole transitions and the reward that follows from it.


def _word(value: object) -> str:
    return number(None) if value is None else str(value)


_FIGURES = (
    ("form", "form", _word, "what is paid: `calibrated`, or Eq. 3 taken literally"),
    ("estimator", "estimator", _word, "of KL"),
    ("order", "order", _word, "beta of the Wasserstein distance"),
    ("bonus_region", "bonus region", _word, "`off_target`: where the task is not done yet, or `everywhere`"),
    (
        "KL",
        "kl",
        number,
        "recorded transitions against the same ones simulated with the parameters before tuning, nats",
    ),
    ("floor", "kl_floor", number, "what sensor noise alone would leave of it behind a perfect simulator"),
    ("first", "kl_first", number, "the same KL for the nominal simulator, with which the loop began"),
    ("open", "open_share", percent, "share of the first gap that is still open"),
    ("weight", "weight", number, "of the bonus, in units of the task reward per step; 0 once the gap is closed"),
    ("Eq. 3", "eq3_mean", number, "the paper's reward taken literally, KL times W, averaged over the tuned simulator"),
    ("conditional", "kl_conditional", number, "Eq. 2's error in nats: a cross-check that needs no density estimate"),
)
"""Name, key in infogap.json, how it is written, what it means."""


def infogap(data: ReportData) -> ReportSection:
    return ReportSection("infogap", "InfoGap", join([_figures(data), _infogap_history(data)]))


def _figures(data: ReportData) -> Markup:
    document = data.infogap
    if document is None:
        return absent("figures of the InfoGap term", data.why("infogap"))
    rows = [[name, meaning, text(document.get(key))] for name, key, text, meaning in _FIGURES]
    return table(["figure", "meaning", "value"], rows, text=(0, 1))


def _infogap_history(data: ReportData) -> Markup:
    rows = complete(data.rows, "infogap_kl", "infogap_floor")
    if not rows:
        return absent("the history of the term", data.why(f"metrics {data.iteration}"))

    def paint(axes: Sequence[Axes]) -> None:
        numbers = [row["iteration"] for row in rows]
        axes[0].plot(numbers, [row["infogap_kl"] for row in rows], color=AFTER, marker="o", label="KL")
        axes[0].plot(numbers, [row["infogap_floor"] for row in rows], color=PRIOR, marker="_", label="floor")
        axes[0].set_ylabel("KL (nats)")
        axes[0].set_ylim(bottom=min(0.0, *(row["infogap_kl"] for row in rows)))
        axes[0].legend()
        axes[1].bar(numbers, [row.get("infogap_weight") or 0.0 for row in rows], color=AFTER, width=0.5)
        axes[1].set_ylabel("weight of the bonus")
        for place in axes:
            whole_numbers(place, numbers)
            place.set_xlabel("iteration")

    caption = (
        f"Left: divergence between transitions recorded on the {data.reality} and the same states and actions "
        "simulated one step ahead. Right: the weight that the reward for unfamiliar transitions got from it in "
        "training."
    )
    return picture(draw(paint, (WIDE, 2.5), (1, 2)), "InfoGap over the iterations", caption)
