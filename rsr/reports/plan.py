"""Picture of a recording plan: where recordings are missing, and the value of each candidate."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rsr.planning import RecordingPlan, Scored, novelty_map
from rsr.reports._drawing import AFTER, ALONG_X, BEFORE, PRIOR, REAL, RETRAINED, render

SHOWN = 5
"""Candidates whose paths are drawn and numbered."""
COLOURS = {"repeat": PRIOR, "policy": RETRAINED, "sines": BEFORE, "throw": ALONG_X}
"""Kind of candidate -> colour; the task's own probes have another."""
_CELLS = 80
_DOTS = 3000
_SIZE_INCHES = (10.4, 4.6)


def plan_figure(plan: RecordingPlan, form: str = "png") -> bytes:
    """Draw a plan as "png" or "svg"."""

    def compose(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, width_ratios=(1.15, 1.0))
        _unknown(left, plan)
        _worth(right, plan)

    return render(compose, _SIZE_INCHES, form)


def _unknown(axes: Axes, plan: RecordingPlan) -> None:
    """Shade the plane of the gap channel by how far the recordings are, with the best candidates' paths on it."""
    recorded = plan.recorded[:, :2]
    paths = [each.path[:, :2] for each in plan.ranked[:SHOWN]]
    if recorded.shape[1] < 2:
        axes.set_axis_off()
        return
    everything = np.concatenate([recorded, *paths])
    lower, upper = everything.min(axis=0), everything.max(axis=0)
    margin = 0.05 * np.maximum(upper - lower, 1e-9)
    grid = [np.linspace(low, high, _CELLS) for low, high in zip(lower - margin, upper + margin, strict=True)]
    novelty = novelty_map(recorded, grid[0], grid[1])
    extent = (grid[0][0], grid[0][-1], grid[1][0], grid[1][-1])
    image = axes.imshow(novelty, origin="lower", extent=extent, cmap="Oranges", alpha=0.75, aspect="auto")
    dots = recorded[:: max(1, len(recorded) // _DOTS)]
    axes.plot(*dots.T, ".", color=REAL, markersize=1.2, alpha=0.5, label="recorded")
    for rank, path in enumerate(paths, start=1):
        axes.plot(*path.T, color=AFTER, linewidth=1.1, alpha=0.9, label="best candidates" if rank == 1 else None)
        axes.annotate(str(rank), path[0], color=AFTER, fontsize=9, fontweight="bold")
    bar = axes.figure.colorbar(image, ax=axes, label="unfamiliar, 0 to 1", shrink=0.85)
    bar.outline.set_visible(False)  # type: ignore[operator]
    channel = plan.scenario.observed_channel(plan.scenario.gap_channel).channel
    across, up = (f"{name} ({channel.unit})" for name in channel.columns[:2])
    axes.set(xlabel=across, ylabel=up, title=f"Where {channel.name} is unknown")
    axes.grid(visible=False)
    axes.legend(loc="upper right", frameon=True, framealpha=0.8)


def _worth(axes: Axes, plan: RecordingPlan) -> None:
    """Put every candidate where its two measures put it."""
    for kind in dict.fromkeys(each.candidate.kind for each in plan.ranked):
        mine = [each for each in plan.ranked if each.candidate.kind == kind]
        axes.plot(*_measures(mine), "o", color=COLOURS.get(kind, AFTER), markersize=5, label=kind)
    for rank, each in enumerate(plan.ranked[:SHOWN], start=1):
        place = (each.novelty, each.weak_nats)
        axes.annotate(str(rank), place, xytext=(4, 3), textcoords="offset points", fontweight="bold")
    few = len(plan.weak) < len(plan.scenario.space)
    axes.set(xlabel="new: distance from the recordings, 0 to 1", title="Value of each candidate")
    axes.set_ylabel(
        f"information gain: nats on {', '.join(plan.weak) if few and len(plan.weak) < 4 else 'the parameters'}"
    )
    axes.legend()


def _measures(scored: list[Scored]) -> tuple[list[float], list[float]]:
    return [each.novelty for each in scored], [each.weak_nats for each in scored]
