"""Sections on a calibration: the fit and its held-out errors, the parameters and their intervals, several methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rsr.calibration import Calibration, Estimate
from rsr.reports._drawing import AFTER, ALONG_X, ALONG_Y, BEFORE, PRIOR, RETRAINED, WIDE, draw, picture, render
from rsr.reports._html import ABSENT, ReportSection, absent, badge, bullets, folded, join, number, paragraph, table
from rsr.reports.data import ReportData
from rsr.scenarios import Parameter, ParameterSpace, Scenario

ADVICE = {
    "converged": "the search ended by itself.",
    "budget spent": "the search was cut off; a larger budget may still improve it.",
    "no improvement": "the previous parameters predict unseen episodes better, and were kept; see the warnings.",
}


def calibration(data: ReportData) -> ReportSection:
    title = "Calibration"
    if data.after is None:
        return ReportSection("calibration", title, absent("calibration", data.why("calibration")))
    after = data.after
    parts = [_status(after), _warnings(after), _evidence(data, after), _checks(after), _trace(after)]
    return ReportSection("calibration", title, join(parts))


def _status(after: Calibration) -> Markup:
    evidence = after.evidence
    held_out = "each held out in turn" if evidence.crossed else f"{len(evidence.held_out)} held out"
    text = Markup("Method <b>{}</b>, {}: {} {} episodes were fitted, {}.")
    said = badge(after.status), ADVICE.get(after.status, ""), len(evidence.fitted), held_out
    return paragraph(text.format(after.method, *said))


def _warnings(after: Calibration) -> Markup:
    if not after.warnings:
        return paragraph("No warnings.")
    return Markup('<div class="warning">{}</div>').format(bullets(after.warnings))


def _evidence(data: ReportData, after: Calibration) -> Markup:
    if not after.evidence.channels:
        return absent("evidence per channel", "The calibration holds none.")
    units = {channel.name: channel.unit for channel in data.scenario.channels}
    rows = [
        [name, number(before), number(later), f"{before / later:.1f}x" if later > 0 else "", _unit(name, units)]
        for name, (before, later) in after.evidence.channels.items()
    ]
    k = data.iteration
    header = ["held-out RMS error of", f"parameters {k - 1}", f"parameters {k}", "closer by", "unit"]
    return table(header, rows)


def _unit(name: str, units: dict[str, str]) -> str:
    """Rotations are compared as rotation vectors, so their differences are in rad."""
    unit = units.get(name, "")
    return "rad" if unit == "1" else unit


def _checks(after: Calibration) -> Markup:
    """Show the selected structure and the checks beside the held-out episodes; nothing where there are none."""
    checks, chosen = after.checks, ", ".join(f"{option} {value}" for option, value in after.structure.items())
    said = {
        "Structure, selected by successive halving on episodes left out of its fits": chosen,
        "Fitted on windows": checks.windows,
        "Error of the model that fits best (standard deviation)": checks.model_error,
        "Sensitivities by": checks.sensitivity,
        "Gradients against differences in C": checks.gradients,
        "One step of MJX against one of C": checks.parity,
        "Refits to resampled episodes of this session, against its interval's standard deviation": _factors(
            checks.bootstrap, "x"
        ),
        "Windows half as long move this session's own estimate by (standard deviations)": _factors(checks.horizon, ""),
    }
    lines = [f"{what}: {words}." for what, words in said.items() if words]
    return join([bullets(lines) if lines else Markup(""), _structures(after)])


def _factors(figures: Mapping[str, float], unit: str) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {figure:.2g}{unit}" for name, figure in figures.items())


def _structures(after: Calibration) -> Markup:
    """The structures compared, the best first."""
    if not after.structure_losses:
        return Markup("")
    ranked = sorted(after.structure_losses.items(), key=lambda each: each[1])
    header = ["structure", "error of replays, in standard deviations of the noise, when it last took part"]
    return table(header, [[words, number(score)] for words, score in ranked], text=(0,))


def _trace(after: Calibration) -> Markup:
    if not len(after.trace):
        return absent("the course of the search", "The calibration holds no trace.")

    def paint(axes: Sequence[Axes]) -> None:
        steps, loss = after.trace.T
        axes[0].plot(steps / 1e6, loss, color=AFTER, marker=".", markersize=4, drawstyle="steps-post")
        if loss.min() > 0 and loss.max() > 10 * loss.min():
            axes[0].set_yscale("log")
        axes[0].set(xlabel="simulated physics steps (millions)", ylabel="best loss so far")

    caption = "Course of the search on the fitted episodes: the loss is the misfit to the recording, and to the prior."
    return picture(draw(paint, (WIDE, 2.4)), "Best loss over simulated steps", caption)


# Section: the parameters with their 95 % intervals, against the prior, and the verdict on each.


NORMAL_95 = 1.96

VERDICTS = (
    "identified: the recording determines it, the interval is narrow",
    "weak: the recording narrows it, but not by much",
    "not identifiable: the recording says nothing about it; the value is what was known before",
    "at bound: the best value lies at the edge of what is allowed; widen the bound, or suspect the model",
)


def parameters(data: ReportData) -> ReportSection:
    title = "Parameters"
    if data.after is None:
        return ReportSection("parameters", title, absent("parameters", data.why("calibration")))
    body = [_forest(data, data.after), _table(data, data.after), folded("What the verdicts mean", bullets(VERDICTS))]
    return ReportSection("parameters", title, join(body))


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
    rows = [_row(data, data.scenario, name, e) for name, e in after.estimates.items()]
    if not any(row[1] for row in rows):  # no parameter is described
        return table([*header[:1], *header[2:]], [[*row[:1], *row[2:]] for row in rows], text=(0, 1))
    return table(header, rows, text=(0, 1, 2))


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


# Several methods on the same recordings, side by side: a table to read and a picture to look at.


_COLOURS = (AFTER, BEFORE, RETRAINED, ALONG_X, ALONG_Y)


def picture_of_methods(space: ParameterSpace, found: Mapping[str, Calibration]) -> bytes:
    """A PNG: every method's value and 95 % interval, a line a parameter, over the prior's."""

    def compose(figure: Figure) -> None:
        axes = figure.subplots()
        for line, parameter in enumerate(space):
            low, high = (in_prior_units(parameter, value) for value in prior_interval(parameter))
            axes.plot([low, high], [line, line], color=PRIOR, linewidth=12, alpha=0.55, solid_capstyle="butt")
            for turn, (method, calibration) in enumerate(found.items()):
                each, colour = calibration.estimates[parameter.name], _COLOURS[turn % len(_COLOURS)]
                place = line + 0.6 * ((turn + 0.5) / len(found) - 0.5)
                ends = [in_prior_units(parameter, value) for value in (each.lower, each.upper)]
                axes.plot(ends, [place, place], color=colour, linewidth=2)
                label = method if line == 0 else None
                axes.plot(in_prior_units(parameter, each.value), place, "o", color=colour, markersize=4.5, label=label)
        axes.axvline(0, color="#8b939c", linewidth=0.8)
        axes.set_yticks(range(len(space)), [name.replace("_", " ") for name in space.names])
        axes.invert_yaxis()
        axes.set_xlabel("distance from nominal, in standard deviations of the prior (grey: its 95 % interval)")
        axes.legend(loc="upper left", bbox_to_anchor=(0, 1.1), ncols=len(found), borderaxespad=0)

    return render(compose, (WIDE, 1.2 + 0.5 * len(space)), "png")


def disagreements(found: Mapping[str, Calibration]) -> list[str]:
    """Parameters whose 95 % intervals do not meet, method against method."""
    methods = list(found)
    return [
        f"{name}: {first} says {a.lower:.4g} to {a.upper:.4g}, {second} says {b.lower:.4g} to {b.upper:.4g}. Their "
        "intervals do not meet: one of them sits in a local minimum. Trust the one with the lower held-out gap, or fit "
        "more episodes."
        for index, first in enumerate(methods)
        for second in methods[index + 1 :]
        for name, a, b in _pairs(found[first], found[second])
        if a.lower > b.upper or b.lower > a.upper
    ]


def _pairs(first: Calibration, second: Calibration) -> Sequence[tuple]:
    return [(name, first.estimates[name], second.estimates[name]) for name in first.estimates]
