"""An adaptation to recorded strikes in a picture and a table: models, predictions against measurements, learning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon
from rich.table import Table

from rsr.common import rotated
from rsr.learned.clash import SEGMENT_M, Comparison, PushCheck, Pushed, Route, SegmentTask
from rsr.reports._drawing import AFTER, ALONG_X, ALONG_Y, BEFORE, PRIOR, REAL, RETRAINED, render, share_axis
from rsr.scenarios.built_in.strike import Shape

_WORDS = {
    "before": "before: nominal parameters",
    "law": "law of rigid impact alone",
    "adapted": "adapted",
    "scene": "fitted scene",
}


def method_name(name: str) -> str:
    """Name a model in words."""
    return _WORDS.get(name, name)


def strike_picture(shape: Shape, comparison: Comparison, curve: Mapping[int, float]) -> bytes:
    """Draw a PNG."""

    def compose(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3, width_ratios=(1.2, 1, 0.8))
        _bars(left, comparison)
        _scatter(middle, shape, comparison)
        _curve(right, curve)
        figure.suptitle(f"Strikes on '{shape.name}': {comparison.how}", fontsize=10)

    return render(compose, (12.5, 4.0), "png")


def comparison_table(comparison: Comparison) -> Table:
    """List the models, best first, for the terminal."""
    table = Table("model", "within 10 %", "raw metric", "median error", "in 90 % intervals", title=comparison.how)
    for judged in sorted(comparison.methods, key=lambda judged: -judged.accuracy):
        inside = "" if judged.inside is None else f"{judged.inside:.0%}"
        figures = f"{judged.accuracy:.0%}", f"{judged.raw_accuracy:.0%}", f"{np.median(judged.errors):.1%}", inside
        table.add_row(method_name(judged.name), *figures)
    return table


def _bars(axes: Axes, comparison: Comparison) -> None:
    ordered = sorted(comparison.methods, key=lambda judged: judged.accuracy)
    colours = [AFTER if judged.name == "adapted" else PRIOR for judged in ordered]
    axes.barh([method_name(judged.name) for judged in ordered], [judged.accuracy for judged in ordered], color=colours)
    for place, judged in enumerate(ordered):
        axes.annotate(
            f"{judged.accuracy:.2f}", (judged.accuracy, place), xytext=(3, -3), textcoords="offset points", fontsize=8
        )
    axes.set(xlim=(0, 1.1), xlabel="share predicted within 10 %")
    axes.grid(visible=False, axis="y")


def _scatter(axes: Axes, shape: Shape, comparison: Comparison) -> None:
    measured, predicted = comparison.judged_on.after, comparison["adapted"].predicted
    weights = np.array([1.0, 1.0, shape.gyration_m])
    names = ("x", "y", "turning x radius of gyration")
    for column, colour, name in zip(range(3), (ALONG_X, ALONG_Y, RETRAINED), names, strict=True):
        values = [(motion * weights)[:, column] for motion in (measured, predicted)]
        axes.scatter(*values, s=9, color=colour, alpha=0.7, linewidths=0, label=name)
    axes.axline((0, 0), slope=1, color=REAL, linewidth=0.8)
    axes.set(xlabel="measured velocity after (m/s)", ylabel="predicted by the adapted surrogate (m/s)")
    axes.legend()


def _curve(axes: Axes, curve: Mapping[int, float]) -> None:
    share_axis(axes)
    axes.set(xlabel="strikes adapted to", ylabel="share predicted within 10 %")
    if curve:
        axes.plot(list(curve), list(curve.values()), marker="o", color=AFTER)
        axes.set_xticks(list(curve))
    else:
        axes.text(0.5, 0.5, "too few strikes", ha="center", transform=axes.transAxes)


# A policy of strikes in a picture: routes with their zones, where blocks came to rest, and how it was learnt.

_SHOWN = 12
"""Paths drawn for each route; more would hide one another."""


def push_picture(task: SegmentTask, pushed: Sequence[Pushed], checkpoints: Mapping[str, Sequence[PushCheck]]) -> bytes:
    """Draw a PNG: a panel for each route, and a learning curve for each training."""

    def compose(figure: Figure) -> None:
        *routes, curve = figure.subplots(1, len(pushed) + 1)
        for axes, run in zip(routes, pushed, strict=True):
            _route(axes, task, run)
        _push_curve(curve, checkpoints)
        first = pushed[0].paths
        figure.suptitle(
            f"'{task.shape.name}' struck along routes, {len(first)} trials each, "
            f"at most {task.most_strikes} strikes a segment",
            fontsize=10,
        )

    return render(compose, (3.2 * (len(pushed) + 1), 3.4), "png")


def push_table(pushed: Sequence[Pushed], title: str) -> Table:
    """List the routes for the terminal."""
    table = Table("route", "segments", "success", "sub-goals completed", "strikes a trial", title=title)
    for run in pushed:
        strikes = np.mean([len(path) - 1 for path in run.paths])
        shares = f"{run.success:.0%}", f"{run.segments_completed:.0%}"
        table.add_row(run.route.name, str(len(run.route)), *shares, f"{strikes:.1f}")
    return table


def _route(axes: Axes, task: SegmentTask, run: Pushed) -> None:
    _zones(axes, task, run.route)
    for path, good in list(zip(run.paths, run.succeeded, strict=True))[:_SHOWN]:
        axes.plot(*path[:, :2].T, color=AFTER if good else BEFORE, linewidth=0.9, marker="o", markersize=2.5)
    _block(axes, task, run.paths[0])
    axes.set_title(f"{run.route.name}: {run.success:.0%}, sub-goals {run.segments_completed:.0%}")
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xlabel="x (m)", ylabel="y (m)")


def _zones(axes: Axes, task: SegmentTask, route: Route) -> None:
    back, wide = task.reached_m, task.half_width_m
    corners = np.array([[-back, -wide], [SEGMENT_M + back, -wide], [SEGMENT_M + back, wide], [-back, wide]])
    for segment in range(len(route)):
        placed = route.to_world(segment, np.column_stack([corners, np.zeros(4)]))[:, :2]
        axes.add_patch(Polygon(placed, facecolor=PRIOR, alpha=0.3, linewidth=0))
        axes.add_patch(
            Circle(tuple(route.corners_m[segment + 1]), task.reached_m, fill=False, color=REAL, linewidth=0.8)
        )


def _block(axes: Axes, task: SegmentTask, path: np.ndarray) -> None:
    """Draw the block at every rest of one trial."""
    for pose in path:
        turned = rotated(task.shape.outline, np.full(len(task.shape.outline), pose[2] - task.ahead_rad))
        axes.add_patch(Polygon(turned + pose[:2], fill=False, color=REAL, linewidth=0.5, alpha=0.6))


def _push_curve(axes: Axes, checkpoints: Mapping[str, Sequence[PushCheck]]) -> None:
    share_axis(axes)
    for colour, (name, points) in zip((AFTER, BEFORE), checkpoints.items(), strict=False):
        axes.plot([at.steps for at in points], [at.success for at in points], marker="o", color=colour, label=name)
    axes.set(xlabel="strikes in training", ylabel="segments that succeed in its simulator")
    axes.legend()
