"""Section: the parameters with their 95 % intervals, against what was believed before, and the verdict on each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from rsr.calibration import Calibration, Estimate
from rsr.reports._drawing import AFTER, BEFORE, PRIOR, WIDE, draw, picture
from rsr.reports._html import Section, absent, badge, bullets, folded, join, table
from rsr.reports._text import ABSENT, number
from rsr.reports.data import ReportData
from rsr.scenarios import Parameter, Scenario

NORMAL_95 = 1.96

VERDICTS = (
    "identified: the recording tells it, the interval is narrow",
    "weak: the recording narrows it, but not by much",
    "not identifiable: the recording says nothing about it; the value is the prior's",
    "at bound: the best value lies at the edge of what is allowed; widen the bound, or suspect the model",
)


def parameters(data: ReportData) -> Section:
    title = "Parameters"
    if data.after is None:
        return Section("parameters", title, absent("parameters", data.why("calibration")))
    body = [_forest(data, data.after), _table(data, data.after), folded("What the verdicts mean", bullets(VERDICTS))]
    return Section("parameters", title, join(body))


def prior_interval(parameter: Parameter) -> tuple[float, float]:
    """95 % interval of the scenario's prior, cut off at the bounds; physical units."""
    centre = parameter.to_coordinate(parameter.nominal)
    reach = NORMAL_95 * parameter.prior_std
    low, high = parameter.to_value(centre - reach), parameter.to_value(centre + reach)
    return float(max(low, parameter.lower)), float(min(high, parameter.upper))


def in_prior_units(parameter: Parameter, value: float) -> float:
    """How many standard deviations of the prior a value lies from nominal."""
    least = 1e-300 if parameter.scale == "log" else -np.inf
    apart = parameter.to_coordinate(max(value, least)) - parameter.to_coordinate(parameter.nominal)
    return float(apart / parameter.prior_std)


def _forest(data: ReportData, after: Calibration) -> Markup:
    space, k = data.scenario.space, data.iteration

    def paint(axes: Sequence[Axes]) -> None:
        place = axes[0]
        for line, parameter in enumerate(space):
            low, high = (in_prior_units(parameter, value) for value in prior_interval(parameter))
            place.plot([low, high], [line, line], color=PRIOR, linewidth=9, alpha=0.55, solid_capstyle="butt")
            for calibration, colour, offset in ((data.before, BEFORE, 0.2), (after, AFTER, -0.2)):
                estimate = calibration.estimates.get(parameter.name) if calibration else None
                if estimate is not None and not (calibration is data.before and k == 1):
                    _interval(place, parameter, estimate, line - offset, colour)
        place.axvline(0, color="#8b939c", linewidth=0.8)
        place.set_yticks(range(len(space)), [_plain(name) for name in space.names])
        place.invert_yaxis()
        place.grid(visible=False, axis="y")
        place.set_xlabel("distance from nominal, in standard deviations of the prior")
        _legend(place, k)

    caption = (
        f"Parameters of the simulator after iteration {k}, tuned to the recording on the {data.reality}. Grey: the "
        "prior's 95 % interval, cut off at the bounds. Dots and lines: value and 95 % interval. 0 is the nominal "
        "model. An interval as wide as the grey bar has learnt nothing."
    )
    drawn = draw(paint, (WIDE, 0.9 + 0.42 * len(space)))
    return picture(drawn, "Parameters with 95 % intervals against the prior", caption)


def _interval(axes: Axes, parameter: Parameter, estimate: Estimate, height: float, colour: str) -> None:
    low, value, high = (in_prior_units(parameter, v) for v in (estimate.lower, estimate.value, estimate.upper))
    axes.plot([low, high], [height, height], color=colour, linewidth=2.2)
    axes.plot([value], [height], marker="o", color=colour, markersize=5.5)


def _legend(axes: Axes, k: int) -> None:
    axes.plot([], [], color=PRIOR, linewidth=9, alpha=0.55, label="prior")
    if k > 1:
        axes.plot([], [], color=BEFORE, marker="o", label=f"parameters {k - 1}")
    axes.plot([], [], color=AFTER, marker="o", label=f"parameters {k}")
    axes.legend(loc="upper left", bbox_to_anchor=(0, 1.12), ncols=3, borderaxespad=0)


def _table(data: ReportData, after: Calibration) -> Markup:
    k = data.iteration
    header = ["parameter", "what it is", "verdict", f"value {k}", "95 % interval", f"value {k - 1}", "nominal", "unit"]
    return table(header, [_row(data, data.scenario, name, e) for name, e in after.estimates.items()], text=(0, 1, 2))


def _row(data: ReportData, scenario: Scenario, name: str, estimate: Estimate) -> list[str | Markup]:
    known = {parameter.name: parameter for parameter in scenario.space}.get(name)
    earlier = data.before.estimates.get(name) if data.before else None
    return [
        _plain(name),
        known.description if known else ABSENT,
        badge(estimate.verdict),
        number(estimate.value),
        f"{number(estimate.lower)} to {number(estimate.upper)}",
        number(earlier.value if earlier else None),
        number(known.nominal if known else None),
        "" if estimate.unit == "1" else estimate.unit,
    ]


def _plain(name: str) -> str:
    return name.replace("_", " ")
