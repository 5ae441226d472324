"""Section: how the policy learnt, in this iteration and in those before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from rsr.reports._drawing import PRIOR, RETRAINED, WIDE, draw, picture, share_axis
from rsr.reports._html import Section, absent
from rsr.reports.data import ReportData


def learning(data: ReportData) -> Section:
    title = "Learning curve"
    if data.iteration not in data.curves:
        return Section("learning", title, absent("learning curve", data.why(f"curve {data.iteration}")))

    def paint(axes: Sequence[Axes]) -> None:
        _curves(data, axes)
        share_axis(axes[0])
        axes[0].set(xlabel="environment steps, all iterations (millions)", ylabel="success while exploring")
        axes[1].set(xlabel="environment steps, all iterations (millions)", ylabel="mean return")

    caption = (
        f"Training of policy {data.iteration} (green, simulated with parameters {data.iteration}; task reward and "
        "InfoGap) and of its predecessors (grey), each going on from the one before; a point is the mean of the last "
        "100 whole episodes. Everything here is simulated, with the policy's exploration noise on, without which it is "
        "deployed."
    )
    curves = picture(draw(paint, (WIDE, 2.8), (1, 2)), "Success and return during training", caption)
    return Section("learning", title, curves)


def _curves(data: ReportData, axes: Sequence[Axes]) -> None:
    done = 0.0
    for number, curve in sorted(data.curves.items()):
        steps = (done + np.array([point["steps"] for point in curve])) / 1e6
        colour = RETRAINED if number == data.iteration else PRIOR
        for place, key in zip(axes, ("success", "mean_return"), strict=True):
            place.plot(steps, [point[key] for point in curve], color=colour)
            if number:
                place.axvline(done / 1e6, color="#d5dade", linewidth=0.8, linestyle=":")
        axes[0].annotate(f"{number}", (float(steps.mean()), 1.0), ha="center", va="top", fontsize=8, color="#5b636c")
        done += curve[-1]["steps"]
