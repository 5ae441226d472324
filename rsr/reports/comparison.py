"""Several methods on the same recordings, side by side: a table to read and a picture to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from rsr.calibration import Calibration
from rsr.reports._drawing import AFTER, ALONG_X, ALONG_Y, BEFORE, PRIOR, RETRAINED, WIDE, render
from rsr.reports.parameters import in_prior_units, prior_interval
from rsr.scenarios import ParameterSpace

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
