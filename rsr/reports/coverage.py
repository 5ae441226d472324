"""Section: where in the workspace the block has been, and so where the recording can say anything."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm

from rsr.reports._drawing import draw, picture
from rsr.reports._html import Section, absent
from rsr.reports._text import percent
from rsr.reports.data import ReportData
from rsr.scenarios.pushing.arm import CENTRE_M

CM = 100.0


def coverage(data: ReportData) -> Section:
    title = "Coverage of the workspace"
    if data.rollouts is None:
        return Section("coverage", title, absent("coverage", data.why("rollouts")))
    half_m, cell_m = data.config.evaluate.coverage_half_m, data.config.evaluate.coverage_cell_m
    counts, edges = visits(data.rollouts["real_block"], half_m, cell_m)

    def paint(axes: Sequence[Axes]) -> None:
        extent = [CM * edge for edge in (edges[0][0], edges[0][-1], edges[1][0], edges[1][-1])]
        shown = np.ma.masked_equal(counts.T, 0)
        image = axes[0].imshow(
            shown, origin="lower", extent=tuple(extent), cmap="YlGnBu", norm=LogNorm(1, max(2.0, counts.max()))
        )
        axes[0].set(xlabel="x (cm)", ylabel="y (cm)")
        axes[0].grid(visible=False)
        bar = axes[0].figure.colorbar(image, ax=axes[0], label="rows recorded in the cell", shrink=0.85)
        bar.outline.set_visible(False)  # type: ignore[operator]

    caption = (
        f"Cells of {CM * cell_m:.0f} cm that the block visited under policy {data.iteration - 1}, recorded on the "
        f"{data.reality}: {percent(data.row.get('coverage'))} of the square of {2 * CM * half_m:.0f} cm around the "
        "middle of the workspace. White: never visited."
    )
    return Section("coverage", title, picture(draw(paint, (5.4, 4.2)), "Heat map of the block's positions", caption))


def visits(block: np.ndarray, half_m: float, cell_m: float) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Count rows of block positions [episodes, times, 3] in each cell of the table: [cells, cells], and the edges."""
    side = round(2 * half_m / cell_m)
    edges = [np.linspace(centre - half_m, centre + half_m, side + 1) for centre in CENTRE_M]
    counts, x_edges, y_edges = np.histogram2d(*block[..., :2].reshape(-1, 2).T, bins=edges)
    return counts, (x_edges, y_edges)
