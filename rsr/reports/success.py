"""Section: how often the policy succeeds, in simulation and on what was recorded, and where the block ends."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from rsr.reports._drawing import BEFORE, REAL, RETRAINED, WIDE, draw, picture, share_axis, whole_numbers
from rsr.reports._html import Section, absent, join
from rsr.reports.chain import Row
from rsr.reports.data import ReportData
from rsr.reports.divergence import complete
from rsr.scenarios import task_of
from rsr.scenarios.pushing import Task

CM = 100.0
_CIRCLE = {"color": "#8b939c", "linewidth": 1}


def success(data: ReportData) -> Section:
    return Section("success", "Success", join([_history(data), _ends(data)]))


def wilson(share: float, count: int) -> tuple[float, float]:
    """95 % interval of a share observed in `count` trials (Wilson's score)."""
    z2 = 1.96**2
    centre = (share + z2 / (2 * count)) / (1 + z2 / count)
    reach = np.sqrt(z2) / (1 + z2 / count) * np.sqrt(share * (1 - share) / count + z2 / (4 * count**2))
    return max(0.0, float(centre - reach)), min(1.0, float(centre + reach))


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
                axes.plot([number, number], wilson(row[key], row["episodes"]), color=colour, linewidth=1.0)
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
        f"Share of episodes in which the block ends within {_allowed(task_of(data.scenario))} of its target; lines: "
        f"95 % intervals. In iteration k policy k-1 is judged, on the {data.reality} (recorded) and in the simulator "
        "it was trained in (simulated), on the same starts and targets. Diamond: the policy retrained in the last "
        "iteration, in the tuned simulator."
    )
    return picture(draw(paint, (WIDE, 2.9)), "Success over the iterations", caption)


def _allowed(task: Task) -> str:
    turn = "" if task.success_rad is None else f" and {np.rad2deg(task.success_rad):.0f} degrees"
    return f"{CM * task.success_m:.0f} cm{turn}"


def _ends(data: ReportData) -> Markup:
    if data.rollouts is None:
        return absent("where the block ends", data.why("rollouts"))
    rollouts, k, task = data.rollouts, data.iteration, task_of(data.scenario)
    panels = (
        ("real_block", REAL, f"recorded, policy {k - 1}"),
        ("simulated_block", BEFORE, f"simulated, policy {k - 1}"),
        ("retrained_block", RETRAINED, f"simulated, policy {k}"),
    )
    ends = {name: CM * (rollouts[name][:, -1] - rollouts["target"])[:, :2] for name, _, _ in panels}
    reach = min(20.0, 1.1 * max(CM * task.success_m, *(float(np.abs(end).max()) for end in ends.values())))

    def paint(axes: Sequence[Axes]) -> None:
        turn = np.linspace(0, 2 * np.pi, 100)
        for place, (name, colour, title) in zip(axes, panels, strict=True):
            place.plot(CM * task.success_m * np.cos(turn), CM * task.success_m * np.sin(turn), **_CIRCLE)
            place.plot(*ends[name].T, "o", color=colour, markersize=3.5, alpha=0.7, markeredgewidth=0)
            place.set(title=title, xlabel="x (cm)", xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
        axes[0].set_ylabel("y (cm)")

    caption = (
        "Where the block ends relative to its target, one dot an episode; circle: what success "
        f"allows{' in position alone' if task.turns else ''}. Left: recorded on the "
        f"{data.reality}; middle and right: simulated with parameters {k - 1} and {k}, in which each was trained. "
        f"Dots farther than {reach:.0f} cm are not shown."
    )
    return picture(draw(paint, (WIDE, 3.0), (1, 3)), "Final offsets of the block from its target", caption)
