"""Sections: recorded and simulated trajectories, open loop and closed loop; where the recording has been."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm

from rsr.calibration import Replays
from rsr.policies import visited
from rsr.reports._drawing import AFTER, BEFORE, REAL, draw, draw_panels, picture
from rsr.reports._html import DisplayUnit, ReportSection, absent, join, percent, shown_in
from rsr.reports.data import ReportData
from rsr.reports.task_figures import closed_loop, errors_at_the_end
from rsr.scenarios import Observed, difference

SHOWN = 6
_WIDEST = 4.0
"""Largest panel, in units of the recorded paths: a simulation that flew off does not shrink all others to a dot."""


@dataclass(frozen=True)
class Panel:
    """One held-out episode, replayed open loop.

    Args:
        real, before, after: drawn paths [T + 1, 2]: in a plane, or time in s and a value; in the channel's unit.
        restarts: rows after which a simulated path goes on from the recording.
        errors: RMS before and after tuning.
        goal: where a path was to end [2], if the recording says it.
        column: what is drawn over time.
    """

    episode: int
    real: np.ndarray
    before: np.ndarray
    after: np.ndarray
    restarts: np.ndarray
    errors: tuple[float, float]
    goal: np.ndarray | None = None
    column: str = ""

    @property
    def middle(self) -> np.ndarray:
        return (self.real.min(axis=0) + self.real.max(axis=0)) / 2

    def half_width(self, *paths: np.ndarray) -> float:
        """Half the side of the square around the recorded path that holds all of these."""
        return 1.1 * float(np.abs(np.concatenate(paths) - self.middle).max())


def trajectories(data: ReportData) -> ReportSection:
    parts = [_open_loop(data)]
    if data.task is not None:
        parts += [closed_loop(data), errors_at_the_end(data)]
    return ReportSection("trajectories", "Recorded and simulated trajectories", join(parts))


def _open_loop(data: ReportData) -> Markup:
    """Paths in the plane where the gap channel is a position in space, else its column that is farthest off."""
    if data.replays is None or not len(data.replays.episode):
        return absent("held-out episodes replayed open loop", data.why("replays"))
    gap, k = data.scenario.observed_channel(data.scenario.gap_channel), data.iteration
    planar = gap.kind == "linear" and gap.channel.unit == "m" and gap.channel.width > 1
    if planar:
        panels, paint, labels = _paths(data, gap, data.replays)
    else:
        panels, paint, labels = _over_time(data, gap, data.replays)
    caption = (
        f"{labels} in {len(panels)} held-out episodes, in the order of their error before tuning. Black: recorded on "
        f"the {data.reality}. Colours: simulated, replaying the recorded commands open loop, with parameters {k - 1} "
        f"and {k}; at regular intervals, where its line is broken, the simulation is put back on the recorded state. "
        "Above each: RMS error before and after tuning."
    )
    drawn = draw_panels(panels, paint, 2.95 if planar else 2.4, loc="best", fontsize=7.5)
    return picture(drawn, f"{gap.channel.name} of held-out episodes, recorded and simulated", caption)


_Panels = tuple[list[Panel], Callable[[Axes, Panel], None], str]
"""What is drawn, how, and what it is, for the caption."""


def _paths(data: ReportData, gap: Observed, replays: Replays) -> _Panels:
    """The two columns that move most, against each other."""
    first, second = np.sort(np.argsort(np.ptp(replays.real, axis=(0, 1)), kind="stable")[-2:])
    goals = _goals(data, gap)
    panels = [
        Panel(
            int(replays.episode[index]),
            *(each[index][:, [first, second]] for each in (replays.real, replays.before, replays.after)),
            restarts=replays.restarts,
            errors=errors,
            goal=None if goals is None else goals[int(replays.episode[index])][[first, second]],
        )
        for index, errors in _chosen(gap, replays)
    ]
    recorded = max(panel.half_width(panel.real) for panel in panels)
    needed = max(panel.half_width(panel.real, panel.before, panel.after) for panel in panels)
    half = max(min(_WIDEST * recorded, needed), 1e-6)
    unit, error_unit = shown_in("m", half), shown_in("m", *(each.errors[0] for each in panels))
    names = gap.channel.columns

    def paint(axes: Axes, panel: Panel) -> None:
        for path, colour, width, label in _lines(panel, data.iteration):
            axes.plot(*(unit.factor * path).T, color=colour, linewidth=width, label=label)
        axes.plot(*(unit.factor * panel.real[0]), marker="o", color=REAL, markersize=5)
        if panel.goal is not None:
            axes.plot(*(unit.factor * panel.goal), marker="x", color=REAL, markersize=7, markeredgewidth=1.8)
        axes.set(title=_title(panel, error_unit), xlabel=unit.axis(names[first]), ylabel=unit.axis(names[second]))
        (x, y), reach = unit.factor * panel.middle, unit.factor * half
        axes.set(xlim=(x - reach, x + reach), ylim=(y - reach, y + reach), aspect="equal")

    where = f"Path of {gap.channel.name} (dot: start{'; cross: goal, where in view' if goals is not None else ''})"
    return panels, paint, where


def _over_time(data: ReportData, gap: Observed, replays: Replays) -> _Panels:
    """The column that is farthest off before tuning; of orientations, the turn since the start."""
    panels, time_s = [], np.arange(replays.real.shape[1]) * data.scenario.control_dt_s
    for index, errors in _chosen(gap, replays):
        real, before, after = replays.real[index], replays.before[index], replays.after[index]
        if gap.kind == "quaternion":
            drawn, column = [_turned(real[0], each) for each in (real, before, after)], "turn since the start"
        else:
            worst = int(np.argmax(np.mean(np.square(difference(gap.kind, real, before)), axis=0)))
            drawn, column = [each[:, worst] for each in (real, before, after)], gap.channel.columns[worst]
        paths = (np.column_stack([time_s, values]) for values in drawn)
        panels.append(
            Panel(int(replays.episode[index]), *paths, restarts=replays.restarts, errors=errors, column=column)
        )
    stored = "rad" if gap.kind == "quaternion" else gap.channel.unit
    unit = shown_in(stored, *(each.real[:, 1] for each in panels))
    error_unit = shown_in(stored, *(each.errors[0] for each in panels))

    def paint(axes: Axes, panel: Panel) -> None:
        for path, colour, width, label in _lines(panel, data.iteration):
            axes.plot(path[:, 0], unit.factor * path[:, 1], color=colour, linewidth=width, label=label)
        axes.set(title=_title(panel, error_unit), xlabel="time (s)", ylabel=unit.axis(panel.column))

    return panels, paint, f"The column of {gap.channel.name} that is farthest off before tuning"


def _turned(start: np.ndarray, path: np.ndarray) -> np.ndarray:
    """Angle [T] by which orientations [T, 4] differ from the first one."""
    return np.linalg.norm(difference("quaternion", np.broadcast_to(start, path.shape), path), axis=-1)


def _lines(panel: Panel, k: int) -> tuple[tuple[np.ndarray, str, float, str], ...]:
    # No line where the simulation was put back on the recording: it did not move there.
    before, after = (np.insert(path, panel.restarts + 1, np.nan, axis=0) for path in (panel.before, panel.after))
    return (
        (panel.real, REAL, 2.2, "recorded"),
        (before, BEFORE, 1.3, f"parameters {k - 1}"),
        (after, AFTER, 1.3, f"parameters {k}"),
    )


def _title(panel: Panel, unit: DisplayUnit) -> str:
    before, after = (f"{unit.factor * error:.3g}" for error in panel.errors)
    return f"episode {panel.episode}:  {before} → {after} {unit.name}"


def _chosen(gap: Observed, replays: Replays) -> list[tuple[int, tuple[float, float]]]:
    """Places in the replays of the episodes shown, from the best to the worst before tuning, and their errors."""
    before, after = (rms_errors(gap, replays.real, each) for each in (replays.before, replays.after))
    return [(index, (float(before[index]), float(after[index]))) for index in spread(before, SHOWN)]


def rms_errors(gap: Observed, real: np.ndarray, paths: np.ndarray) -> np.ndarray:
    """RMS error [...] of paths [..., T, C] of a channel."""
    return np.sqrt(np.mean(np.sum(np.square(difference(gap.kind, real, paths)), axis=-1), axis=-1))


def spread(values: np.ndarray, count: int) -> list[int]:
    """Choose `count` indices from the smallest value to the largest, evenly in rank."""
    places = np.linspace(0, len(values) - 1, min(count, len(values))).round().astype(int)
    return np.argsort(values, kind="stable")[places].tolist()


def _goals(data: ReportData, gap: Observed) -> list[np.ndarray] | None:
    """Where the gap channel was to be at the end of each episode: the goal that has its columns, unit and frame."""
    if data.session is None or data.task is None:
        return None
    alike = (gap.channel.columns, gap.channel.unit, gap.channel.frame)
    for channel in data.session.channels:
        if channel.name in data.task.goal and (channel.columns, channel.unit, channel.frame) == alike:
            return [episode[channel.name][0] for episode in data.session.episodes]
    return None


# Section: where in the workspace the recording has been, and so where it can say anything.


def coverage(data: ReportData) -> ReportSection:
    title = "Coverage of the workspace"
    plane = None if data.task is None else data.task.plane
    if plane is None and data.rollouts is not None:
        return ReportSection("coverage", title, absent("coverage", "The task names no plane."))
    if data.rollouts is None or plane is None:
        return ReportSection("coverage", title, absent("coverage", data.why("rollouts")))
    counts, edges = visited(plane, data.rollouts["real.plane"])
    unit = shown_in(plane.unit, *edges)

    def paint(axes: Sequence[Axes]) -> None:
        extent = [unit.factor * edge for edge in (edges[0][0], edges[0][-1], edges[1][0], edges[1][-1])]
        shown = np.ma.masked_equal(counts.T, 0)
        image = axes[0].imshow(
            shown, origin="lower", extent=tuple(extent), cmap="YlGnBu", norm=LogNorm(1, max(2.0, counts.max()))
        )
        axes[0].set(xlabel=unit.axis(plane.names[0]), ylabel=unit.axis(plane.names[1]))
        axes[0].grid(visible=False)
        bar = axes[0].figure.colorbar(image, ax=axes[0], label="rows recorded in the cell", shrink=0.85)
        bar.outline.set_visible(False)  # type: ignore[operator]

    cell, side = (shown_in(plane.unit, size).stated(size) for size in (2 * plane.half / len(counts), 2 * plane.half))
    caption = (
        f"Cells of {cell} that were visited under policy {data.iteration - 1}, recorded on the {data.reality}: "
        f"{percent(data.row.get('coverage'))} of the square of {side}. White: never visited."
    )
    drawn = draw(paint, (5.4, 4.2))
    return ReportSection("coverage", title, picture(drawn, f"Heat map of {' and '.join(plane.names)}", caption))
