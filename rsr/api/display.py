"""Results on show: tables in a terminal or as HTML in a notebook, and figures in the colours of the reports."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib
from markupsafe import Markup, escape
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from rsr.calibration import Calibration
from rsr.reports import in_prior_units, prior_interval
from rsr.reports._drawing import AFTER, BEFORE, PRIOR, STYLE
from rsr.scenarios import Scenario

if TYPE_CHECKING:
    from rsr.api.evaluating import HorizonErrors


# Tables of results: as text in a terminal, as HTML in a notebook.


Row = Sequence[str]


def text_table(header: Row, rows: Sequence[Row], left: Sequence[int] = (0,)) -> str:
    """Columns padded to equal width; those in `left` hold words, the others numbers."""
    lines = [list(header), *(list(row) for row in rows)]
    for column in range(len(header)):
        width = max(len(line[column]) for line in lines)
        for line in lines:
            cell = line[column]
            line[column] = cell.ljust(width) if column in left else cell.rjust(width)
    first, *others = ["  ".join(line) for line in lines]
    return "\n".join(line.rstrip() for line in [first, "-" * len(first), *others])


def html_table(header: Row, rows: Sequence[Row], left: Sequence[int] = (0,)) -> Markup:
    """The same as HTML, every cell escaped."""

    def cells(line: Row, kind: str) -> Markup:
        made = Markup("").join(
            Markup('<{k} style="text-align: {side}">{cell}</{k}>').format(
                k=kind, side="left" if column in left else "right", cell=cell
            )
            for column, cell in enumerate(line)
        )
        return Markup("<tr>{}</tr>").format(made)

    body = Markup("").join(cells(row, "td") for row in rows)
    return Markup("<table><thead>{}</thead><tbody>{}</tbody></table>").format(cells(header, "th"), body)


def html_lines(lines: Sequence[str]) -> Markup:
    return Markup("").join(Markup("<p>{}</p>").format(escape(line)) for line in lines)


class NotebookFigure(Figure):
    """A matplotlib figure that a notebook shows, though pyplot knows nothing of it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(layout="constrained", **options)
        FigureCanvasAgg(self)

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=matplotlib.rcParams["figure.dpi"])
        return buffer.getvalue()


# Figures of a fit and of an evaluation, in the colours of the reports.


def forest(scenario: Scenario, calibration: Calibration) -> NotebookFigure:
    """Values and 95 % intervals over the prior's, in standard deviations of the prior."""
    with rc_context(STYLE):
        figure = NotebookFigure(figsize=(7.0, 1.1 + 0.42 * len(scenario.space)))
        axes = figure.subplots()
        for line, parameter in enumerate(scenario.space):
            estimate = calibration.estimates[parameter.name]
            wide = [in_prior_units(parameter, value) for value in prior_interval(parameter)]
            low, value, high = (in_prior_units(parameter, v) for v in (estimate.lower, estimate.value, estimate.upper))
            once = line == 0  # one entry in the legend for all lines
            axes.plot(wide, [line, line], color=PRIOR, linewidth=9, alpha=0.55, label="prior, 95 %" if once else None)
            axes.plot([low, high], [line, line], color=AFTER, linewidth=2.2)
            axes.plot([value], [line], marker="o", linestyle="", color=AFTER, label="fitted, 95 %" if once else None)
        axes.set_yticks(range(len(scenario.space)), list(scenario.space.names))
        axes.set_ylim(len(scenario.space) - 0.5, -0.5)
        axes.set_xlabel("distance from nominal, in standard deviations of the prior")
        figure.legend(loc="outside upper right", ncols=2)
    return figure


def against_horizon(errors: HorizonErrors) -> NotebookFigure:
    """RMS error over the time since the simulation began in the recorded state, a panel a channel."""
    with rc_context(STYLE):
        figure = NotebookFigure(figsize=(3.4 * len(errors.channels), 2.8))
        panels = figure.subplots(1, len(errors.channels), squeeze=False)[0]
        for axes, channel in zip(panels, errors.channels, strict=True):
            for values, colour, label in (
                (errors.nominal[channel], BEFORE, "nominal"),
                (errors.fitted[channel], AFTER, "fitted"),
            ):
                axes.plot(errors.horizons_s, values, color=colour, marker="o", markersize=4, label=label)
            axes.set(title=channel, xlabel="horizon (s)", ylabel=f"RMS error ({errors.units[channel]})", ylim=(0, None))
        panels[0].legend()
    return figure
