"""What the section on trajectories shows where the block is turned: the missing yaw, over time and iterations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from rsr.reports._drawing import AFTER, BEFORE, REAL, WIDE, band, draw, picture, whole_numbers
from rsr.reports._html import absent, join
from rsr.reports.data import ReportData
from rsr.reports.divergence import complete
from rsr.scenarios import task_of
from rsr.scenarios.pushing.pose import yaw_error


def orientation(data: ReportData) -> Markup:
    """Two pictures where orientation counts (the paper's Fig. 5), else nothing."""
    if not task_of(data.scenario).turns:
        return Markup()
    return join([_over_time(data), _over_iterations(data)])


def _over_time(data: ReportData) -> Markup:
    if data.rollouts is None:
        return absent("missing yaw over time", data.why("rollouts"))
    rollouts, k = data.rollouts, data.iteration
    lines = (
        ("real_block", REAL, f"recorded on the {data.reality}"),
        ("simulated_block", BEFORE, f"simulated, parameters {k - 1}"),
        ("tuned_block", AFTER, f"simulated, parameters {k}"),
    )
    missing = {name: np.abs(np.rad2deg(yaw_error(rollouts[name], rollouts["target"][:, None]))) for name, _, _ in lines}

    def paint(axes: Sequence[Axes]) -> None:
        time_s = np.arange(missing["real_block"].shape[1]) * data.scenario.control_dt_s
        for name, colour, label in lines:
            band(axes[0], time_s, missing[name], colour, label)
        axes[0].set(xlabel="time (s)", ylabel="missing yaw (degrees)", xlim=(0, time_s[-1]))
        axes[0].set_ylim(bottom=0)
        axes[0].legend()

    caption = (
        f"By how much the block's yaw misses that of its target under policy {k - 1}, closed loop, over "
        f"{len(missing['real_block'])} episodes: median, and the range of the middle 80 %. Colours as above."
    )
    return picture(draw(paint, (WIDE, 3.1)), "Missing yaw over time, recorded and simulated", caption)


def _over_iterations(data: ReportData) -> Markup:
    rows = complete(data.rows, "yaw_error_sim", "yaw_error_reality")
    if not rows:
        return absent("missing yaw per iteration", data.why(f"metrics {data.iteration}"))
    lines = (
        ("yaw_error_sim", BEFORE, "s", "in its own simulator"),
        ("yaw_error_reality", REAL, "o", f"on the {data.reality}"),
    )

    def paint(axes: Sequence[Axes]) -> None:
        numbers = [row["iteration"] for row in rows]
        for key, colour, marker, label in lines:
            axes[0].plot(numbers, np.rad2deg([row[key] for row in rows]), color=colour, marker=marker, label=label)
        whole_numbers(axes[0], numbers)
        axes[0].set(xlabel="iteration", ylabel="missing yaw at the end (degrees)")
        axes[0].set_ylim(bottom=0)
        axes[0].legend()

    caption = (
        "Mean yaw that is missing at the end of an episode. In iteration k policy k-1 is judged, on the "
        f"{data.reality} and in the simulator it was trained in, on the same starts and targets."
    )
    return picture(draw(paint, (WIDE, 2.9)), "Missing yaw at the end over the iterations", caption)
