"""Section: InfoGap, the divergence of whole transitions and the reward that follows from it."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup
from matplotlib.axes import Axes

from rsr.reports._drawing import AFTER, PRIOR, WIDE, draw, picture, whole_numbers
from rsr.reports._html import Section, absent, join, table
from rsr.reports._text import number, percent
from rsr.reports.data import ReportData
from rsr.reports.divergence import complete


def _word(value: object) -> str:
    return number(None) if value is None else str(value)


_FIGURES = (
    ("form", "form", _word, "what is paid: `calibrated`, or Eq. 3 taken literally"),
    ("estimator", "estimator", _word, "of KL"),
    ("order", "order", _word, "beta of the Wasserstein distance"),
    ("paid", "paid", _word, "`away` from where the task is done, or `everywhere`"),
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


def infogap(data: ReportData) -> Section:
    return Section("infogap", "InfoGap", join([_figures(data), _history(data)]))


def _figures(data: ReportData) -> Markup:
    document = data.infogap
    if document is None:
        return absent("figures of the InfoGap term", data.why("infogap"))
    rows = [[name, meaning, text(document.get(key))] for name, key, text, meaning in _FIGURES]
    return table(["figure", "meaning", "value"], rows, text=(0, 1))


def _history(data: ReportData) -> Markup:
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
