"""Pictures of the figures by which a task's progress is seen: over an episode, and at its end over the iterations."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from rsr.reports._drawing import AFTER, BEFORE, REAL, band, draw_panels, picture, whole_numbers
from rsr.reports._html import absent, shown_in
from rsr.reports.data import ReportData, figure_of
from rsr.reports.divergence import complete
from rsr.scenarios import ProgressFigure

TOLERANCE = {"color": "#8b939c", "linewidth": 1, "linestyle": "--"}


def closed_loop(data: ReportData) -> Markup:
    """The sizes of the figures that decide about success, over an episode."""
    if data.rollouts is None or not data.deciding:
        return absent("closed-loop episodes", data.why("rollouts"))
    rollouts, k = data.rollouts, data.iteration
    lines = (
        ("real", REAL, f"recorded on the {data.reality}"),
        ("simulated", BEFORE, f"simulated, parameters {k - 1}"),
        ("tuned", AFTER, f"simulated, parameters {k}"),
    )

    def paint(axes: Axes, figure: ProgressFigure) -> None:
        sizes = {name: np.abs(figure_of(rollouts, name, figure)) for name, _, _ in lines}
        unit = shown_in(figure.unit, sizes["real"], figure.tolerance)
        time_s = np.arange(sizes["real"].shape[1]) * data.scenario.control_dt_s
        for name, colour, label in lines:
            band(axes, time_s, unit.factor * sizes[name], colour, label)
        if figure.tolerance is not None:
            axes.axhline(unit.factor * figure.tolerance, **TOLERANCE)
        axes.set(xlabel="time (s)", ylabel=unit.axis(figure.name), xlim=(0, time_s[-1]))
        axes.set_ylim(bottom=0)

    names = ", ".join(figure.name for figure in data.deciding)
    count = len(figure_of(rollouts, "real", data.deciding[0]))
    caption = (
        f"How far from done under policy {k - 1}, closed loop, over {count} episodes ({names}): median, and the range "
        f"of the middle 80 %; dashed: what success allows. Black: recorded on the {data.reality}. Colours: the same "
        "policy from the same starts, simulated with the parameters it was trained with "
        f"({k - 1}) and with those tuned to this recording ({k}). The nearer a colour is to black, the better that "
        "simulator foretells what the policy does."
    )
    drawn = draw_panels(data.deciding, paint, 3.1, 2)
    return picture(drawn, "How far from done over time, recorded and simulated", caption)


def errors_at_the_end(data: ReportData) -> Markup:
    """Mean size of these figures at the end of an episode over the iterations (the paper's Fig. 5)."""
    figures = [figure for figure in data.deciding if complete(data.rows, *_keys(figure))]
    if not figures:
        return absent("errors at the end per iteration", data.why(f"metrics {data.iteration}"))
    caption = (
        f"Mean size at the end of an episode of {', '.join(figure.name for figure in figures)}. In iteration k policy "
        f"k-1 is judged, on the {data.reality} and in the simulator it was trained in, from the same starts; dashed: "
        "what success allows."
    )
    drawn = draw_panels(figures, lambda axes, figure: _paint_errors(axes, data, figure), 2.9, 2)
    return picture(drawn, "Errors at the end over the iterations", caption)


def _paint_errors(axes: Axes, data: ReportData, figure: ProgressFigure) -> None:
    rows = complete(data.rows, *_keys(figure))
    numbers, unit = [row["iteration"] for row in rows], shown_in(figure.unit, *(row[_keys(figure)[1]] for row in rows))
    for key, colour, marker, label in zip(
        _keys(figure), (BEFORE, REAL), "so", ("in its own simulator", f"on the {data.reality}"), strict=True
    ):
        axes.plot(numbers, [unit.factor * row[key] for row in rows], color=colour, marker=marker, label=label)
    if figure.tolerance is not None:
        axes.axhline(unit.factor * figure.tolerance, **TOLERANCE)
    whole_numbers(axes, numbers)
    axes.set(xlabel="iteration", ylabel=unit.axis(f"{figure.name} at the end"))
    axes.set_ylim(bottom=0)


def _keys(figure: ProgressFigure) -> tuple[str, str]:
    return f"{figure.key}_error_sim", f"{figure.key}_error_reality"
