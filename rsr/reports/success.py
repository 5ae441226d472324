"""Section: how the policy learnt, in this iteration and in those before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from rsr.policies import wilson_interval
from rsr.reports._drawing import (
    BEFORE,
    PRIOR,
    REAL,
    RETRAINED,
    WIDE,
    draw,
    draw_panels,
    picture,
    share_axis,
    whole_numbers,
)
from rsr.reports._html import ReportSection, absent, join, shown_in
from rsr.reports.data import ReportData, figure_of
from rsr.reports.divergence import complete
from rsr.reports.key_figures import Row
from rsr.reports.task_figures import TOLERANCE
from rsr.scenarios import ProgressFigure, Task


def learning(data: ReportData) -> ReportSection:
    title = "Learning curve"
    if data.iteration not in data.curves:
        return ReportSection("learning", title, absent("learning curve", data.why(f"curve {data.iteration}")))

    def paint(axes: Sequence[Axes]) -> None:
        _curves(data, axes)
        share_axis(axes[0])
        axes[0].set(xlabel="environment steps, all iterations (millions)", ylabel="success while exploring")
        axes[1].set(xlabel="environment steps, all iterations (millions)", ylabel="mean return")

    caption = (
        f"Training of policy {data.iteration} (green, simulated with parameters {data.iteration}; task reward and "
        "InfoGap) and of its predecessors (grey), each going on from the one before; a point is the mean of the last "
        "100 whole episodes. Everything here is simulated, with the policy's exploration noise on, without which it is "
        f"deployed.{_ended(data)}"
    )
    curves = picture(draw(paint, (WIDE, 2.8), (1, 2)), "Success and return during training", caption)
    return ReportSection("learning", title, curves)


def _ended(data: ReportData) -> str:
    """Say how the training ended, of policies that know it."""
    words = (data.card or {}).get("ended")
    return f" This training ended after {words}." if words else ""


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


# Section: how often the policy succeeds, in simulation and on what was recorded, and where its episodes end.


def success(data: ReportData) -> ReportSection:
    return ReportSection("success", "Success", join([_history(data), _ends(data)]))


def paint_success(axes: Axes, rows: Sequence[Row], reality: str) -> None:
    """Success over the iterations, with 95 % intervals."""
    lines = (
        ("success_sim", BEFORE, "s", "in its own simulator", -0.06),
        ("success_reality", REAL, "o", f"on the {reality}", 0.06),
    )
    for key, colour, marker, label, shift in lines:
        numbers = [row["iteration"] + shift for row in rows]
        shares = [row[key] for row in rows]
        axes.plot(numbers, shares, color=colour, marker=marker, label=label)
        for number, row in zip(numbers, rows, strict=True):
            if row.get("episodes"):
                axes.plot([number, number], wilson_interval(row[key], row["episodes"]), color=colour, linewidth=1.0)
    whole_numbers(axes, [row["iteration"] for row in rows])
    share_axis(axes)
    axes.set(xlabel="iteration", ylabel="success")
    axes.legend(loc="best")


def _history(data: ReportData) -> Markup:
    rows = complete(data.rows, "success_sim", "success_reality")
    if not rows:
        return absent("success per iteration", data.why(f"metrics {data.iteration}"))
    retrained = complete(rows, "success_sim_retrained")

    def paint(axes: Sequence[Axes]) -> None:
        paint_success(axes[0], rows, data.reality)
        if retrained:
            last = retrained[-1]
            axes[0].plot(
                last["iteration"] + 0.18,
                last["success_sim_retrained"],
                "D",
                color=RETRAINED,
                label="retrained, simulated",
            )
            axes[0].legend(loc="best")

    caption = (
        f"Share of episodes that succeed{_allowed(data.task)}; lines: 95 % intervals. In iteration k policy k-1 is "
        f"judged, on the {data.reality} (recorded) and in the simulator it was trained in (simulated), from the same "
        "starts. Diamond: the policy retrained in the last iteration, in the tuned simulator."
    )
    return picture(draw(paint, (WIDE, 2.9)), "Success over the iterations", caption)


def _allowed(task: Task | None) -> str:
    """Say what success is, in brackets: by default the figures that decide end within their tolerances."""
    deciding = [(each, each.tolerance) for each in (task.figures if task else ()) if each.tolerance is not None]
    within = [f"{figure.name} within {shown_in(figure.unit, most).stated(most)}" for figure, most in deciding]
    return f" ({', '.join(within)} at the end)" if within else ""


def _ends(data: ReportData) -> Markup:
    """How far from done episodes end: the share of them [0, 1] within each size of a figure."""
    if data.rollouts is None or not data.deciding:
        return absent("where episodes end", data.why("rollouts"))
    rollouts, k = data.rollouts, data.iteration
    lines = (
        ("real", REAL, f"recorded, policy {k - 1}"),
        ("simulated", BEFORE, f"simulated, policy {k - 1}"),
        ("retrained", RETRAINED, f"simulated, policy {k}"),
    )

    def paint(axes: Axes, figure: ProgressFigure) -> None:
        ends = {name: np.sort(np.abs(figure_of(rollouts, name, figure)[:, -1])) for name, _, _ in lines}
        shown = 1.1 * max(float(ends["real"][-1]), 2 * (figure.tolerance or 0.0))
        unit = shown_in(figure.unit, shown)
        for name, colour, label in lines:
            shares = np.arange(1, len(ends[name]) + 1) / len(ends[name])
            axes.step(unit.factor * ends[name], shares, where="post", color=colour, label=label)
        if figure.tolerance is not None:
            axes.axvline(unit.factor * figure.tolerance, **TOLERANCE)
        share_axis(axes)
        axes.set(xlabel=unit.axis(f"{figure.name} at the end"), xlim=(0, unit.factor * shown or 1.0))
        if figure is data.deciding[0]:
            axes.set_ylabel("episodes that end within")

    caption = (
        "Share of episodes that end within each distance from done; dashed: what success allows. Black: recorded on "
        f"the {data.reality}. Colours: simulated with parameters {k - 1} and {k}, in which each policy was trained. "
        "What is much farther off than anything recorded is not shown."
    )
    return picture(draw_panels(data.deciding, paint, 3.0, loc="lower right"), "Where episodes end", caption)
