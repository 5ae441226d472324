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


def infogap(data: ReportData) -> Section:
    return Section("infogap", "InfoGap", join([_figures(data), _history(data)]))


def _figures(data: ReportData) -> Markup:
    document = data.infogap
    if document is None:
        return absent("figures of the InfoGap term", data.why("infogap"))
    k = data.iteration
    lines = (
        ("KL", number, "kl", f"KL of recorded transitions from the same ones simulated with parameters {k - 1} (nats)"),
        ("floor", number, "kl_floor", "what sensor noise alone would leave of it behind a perfect simulator"),
        ("first", number, "kl_first", "the same for the nominal simulator, with which the loop began"),
        ("open", percent, "open_share", "share of the first gap that is still open"),
        ("weight", number, "weight", "of the bonus, in units of the task reward per step; 0 once the gap is closed"),
        (
            "Eq. 3",
            number,
            "eq3_mean",
            "the paper's reward taken literally, KL times W1, mean over the tuned simulator's transitions",
        ),
        (
            "conditional",
            number,
            "kl_conditional",
            "Eq. 2's error in nats, the cross-check that needs no density estimate",
        ),
    )
    rows = [[name, text(document.get(key)), meaning] for name, text, key, meaning in lines]
    return table(["figure", "value", "meaning"], [[name, meaning, value] for name, value, meaning in rows], left=2)


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
