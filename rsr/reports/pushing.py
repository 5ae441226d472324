"""A policy of strikes in a picture: routes with their zones, where blocks came to rest, and how it was learnt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon
from rich.table import Table

from rsr.clash.routes import SEGMENT_M, Route
from rsr.clash.segment import SegmentTask
from rsr.clash.sequence import Pushed
from rsr.clash.sequence_training import Checked
from rsr.reports._drawing import AFTER, BEFORE, PRIOR, REAL, render, share_axis
from rsr.scenarios.plane import rotated

_SHOWN = 12
"""Paths drawn for each route; more would hide one another."""


def push_picture(task: SegmentTask, pushed: Sequence[Pushed], checkpoints: Mapping[str, Sequence[Checked]]) -> bytes:
    """Draw a PNG: a panel for each route, and a learning curve for each training."""

    def compose(figure: Figure) -> None:
        *routes, curve = figure.subplots(1, len(pushed) + 1)
        for axes, run in zip(routes, pushed, strict=True):
            _route(axes, task, run)
        _curve(curve, checkpoints)
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


def _curve(axes: Axes, checkpoints: Mapping[str, Sequence[Checked]]) -> None:
    share_axis(axes)
    for colour, (name, points) in zip((AFTER, BEFORE), checkpoints.items(), strict=False):
        axes.plot([at.steps for at in points], [at.success for at in points], marker="o", color=colour, label=name)
    axes.set(xlabel="strikes in training", ylabel="segments that succeed in its simulator")
    axes.legend()
