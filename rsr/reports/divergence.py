"""Section: how far recorded and simulated block trajectories diverge along each axis, as in the paper's Table I."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from rsr.reports._drawing import ALONG_X, ALONG_Y, BEFORE, REAL, WIDE, band, draw, picture, whole_numbers
from rsr.reports._html import Section, absent, join, table
from rsr.reports._text import number
from rsr.reports.chain import Row
from rsr.reports.data import ReportData

CM = 100.0
LINEAR_BELOW = 0.01


def divergence(data: ReportData) -> Section:
    return Section("divergence", "Divergence per axis", join([_history(data), _offsets(data)]))


def paint_divergence(axes: Axes, rows: Sequence[Row]) -> None:
    """KL per axis over the iterations, on an axis that is logarithmic down to `LINEAR_BELOW`."""
    numbers = [row["iteration"] for row in rows]
    for key, colour, marker in (("kl_x", ALONG_X, "o"), ("kl_y", ALONG_Y, "s")):
        axes.plot(numbers, [row[key] for row in rows], color=colour, marker=marker, label=f"along {key[-1]}")
    if min(row[key] for row in rows for key in ("kl_x", "kl_y")) > LINEAR_BELOW:
        axes.set_yscale("log")
    else:  # a closed gap reads 0, which has no place on a logarithmic axis
        axes.set_yscale("symlog", linthresh=LINEAR_BELOW, linscale=0.5)
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    whole_numbers(axes, numbers)
    axes.set(xlabel="iteration", ylabel="KL(recorded || simulated)")
    axes.legend()


def complete(rows: Sequence[Row], *keys: str) -> list[Row]:
    """Keep the rows that have all of these figures."""
    return [row for row in rows if all(row.get(key) is not None for key in ("iteration", *keys))]


def _history(data: ReportData) -> Markup:
    rows = complete(data.rows, "kl_x", "kl_y")
    if not rows:
        return absent("divergence per iteration", data.why(f"metrics {data.iteration}"))
    figures = table(
        ["iteration", "KL x", "KL y"], [[str(r["iteration"]), number(r["kl_x"]), number(r["kl_y"])] for r in rows]
    )
    caption = (
        "Mean over the episode of the divergence between the distributions of the block's position relative to its "
        f"target, recorded on the {data.reality} and simulated with the parameters under which the policy had been "
        "trained."
    )
    drawn = draw(lambda axes: paint_divergence(axes[0], rows), (5.2, 2.7))
    history = picture(drawn, "KL per axis over the iterations", caption)
    return Markup('<div class="pair">{}{}</div>').format(history, figures)


def _offsets(data: ReportData) -> Markup:
    if data.rollouts is None:
        return absent("what these numbers compare", data.why("rollouts"))
    rollouts, k = data.rollouts, data.iteration

    def paint(axes: Sequence[Axes]) -> None:
        time_s = np.arange(rollouts["real_block"].shape[1]) * data.scenario.control_dt_s
        for column, place in enumerate(axes):
            for name, colour, label in (
                ("real_block", REAL, f"recorded on the {data.reality}"),
                ("simulated_block", BEFORE, f"simulated, parameters {k - 1}"),
            ):
                offset = CM * (rollouts[name] - rollouts["target"][:, None])[..., column]
                band(place, time_s, offset, colour, label)
            place.set(xlabel="time (s)", ylabel=f"{'xy'[column]} of block - target (cm)", xlim=(0, time_s[-1]))
        axes[0].legend()

    caption = (
        f"What the divergence of iteration {k} compares: the block's position relative to its target over "
        f"{len(rollouts['target'])} episodes, median and middle 80 %. Where the bands part, the simulator misjudges "
        "the policy."
    )
    return picture(draw(paint, (WIDE, 2.8), (1, 2)), "Offsets to the target along x and y over time", caption)
