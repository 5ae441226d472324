"""The whole loop in one picture: what the iterations did to divergence, gap, success and parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from rsr.calibration import Calibration, load_calibration
from rsr.common import CalibrationError, WorkspaceError, check_choice, write_bytes
from rsr.reports._drawing import AFTER, BEFORE, PRIOR, render, whole_numbers
from rsr.reports.calibration import prior_interval
from rsr.reports.chain import is_simulated, read_rows, reality_name
from rsr.reports.divergence import complete, paint_divergence
from rsr.reports.key_figures import Row, gap_unit, kl_keys
from rsr.reports.success import paint_success
from rsr.scenarios import Parameter, Scenario, load_scenario
from rsr.workspace import Workspace

FORMATS = ("png", "svg")
_KEYS = ("gap_before", "gap_after")
_SIZE_INCHES = (11.0, 6.0)


def loop_figure(workspace: Workspace, form: str = "png") -> bytes:
    """Draw the chain of iterations as "png" or "svg".

    Raises:
        WorkspaceError: no iteration has been evaluated.
        ConfigError: another format is asked for.
    """
    check_choice(
        form,
        FORMATS,
        got=f"a picture of format '{form}'",
        where="picture of the loop",
        next_step="Give the file a name that ends in one of these.",
    )
    rows = complete(read_rows(workspace), *_KEYS)
    if not rows:
        raise WorkspaceError(
            got="no iteration with metrics",
            expected="at least one evaluated iteration",
            where=str(workspace.root),
            next_step="Run the loop: `rsr-loop --iterations 3`.",
        )
    scenario, calibrations = load_scenario(workspace.settings().scenario), _calibrations(workspace, rows)
    simulated = is_simulated(workspace)

    def compose(figure: Figure) -> None:
        above, below = np.asarray(figure.subfigures(2, 1, height_ratios=(1.25, 1.0), hspace=0.04))
        figure.suptitle(_title(rows, scenario, simulated), fontsize=10.5)
        _figures(above, rows, reality_name(simulated))
        _parameters(below, scenario, calibrations)

    return render(compose, _SIZE_INCHES, form)


def save_loop_figure(workspace: Workspace, path: Path) -> None:
    """Draw it into a file whose ending names the format."""
    write_bytes(path, loop_figure(workspace, path.suffix.removeprefix(".").lower()))


def _calibrations(workspace: Workspace, rows: Sequence[Row]) -> dict[int, Calibration]:
    """Those that can be read; a checkout without DVC's cache has the figures but not these."""
    found = {}
    for row in rows:
        try:
            found[row["iteration"]] = load_calibration(workspace.calibration_dir(row["iteration"]))
        except (OSError, CalibrationError):
            continue
    return found


def _title(rows: Sequence[Row], scenario: Scenario, simulated: bool) -> str:
    count = f"{len(rows)} Real-Sim-Real iteration{'' if len(rows) == 1 else 's'}"
    source = "a MuJoCo stand-in for reality, with hidden parameters" if simulated else "reality"
    return f"{count} on {scenario.name}. Recorded on {source}."


def _figures(figure: Figure, rows: Sequence[Row], reality: str) -> None:
    """Divergence and success where there is a policy, and the gap."""
    diverged = [row for row in rows if kl_keys([row])]
    judged = complete(rows, "success_sim", "success_reality")
    paints = [lambda axes: paint_divergence(axes, diverged)] if diverged else []
    paints.append(lambda axes: _paint_gap(axes, rows))
    paints += [lambda axes: paint_success(axes, judged, reality)] if judged else []
    titles = [*(["Divergence per figure"] if diverged else []), "Gap on held-out episodes"]
    titles += ["Success of the deployed policy"] if judged else []
    places = np.atleast_1d(figure.subplots(1, len(paints)))
    for axes, paint, title in zip(places, paints, titles, strict=True):
        paint(axes)
        axes.set_title(title)


def _paint_gap(axes: Axes, rows: Sequence[Row]) -> None:
    """Draw the gap of the nominal simulator, where it was measured, and of the tuned one, in the same recording."""
    numbers, unit = [row["iteration"] for row in rows], gap_unit(rows)
    series = [("gap_nominal", PRIOR, "nominal"), ("gap_before", BEFORE, "before tuning"), ("gap_after", AFTER, "after")]
    series = [each for each in series if all(each[0] in row for row in rows)]
    width = 0.76 / len(series)
    for index, (key, colour, label) in enumerate(series):
        places = [number + (index - (len(series) - 1) / 2) * width for number in numbers]
        heights = [unit.factor * row[key] for row in rows]
        axes.bar(places, heights, width=0.9 * width, color=colour, label=label)
        for place, height in zip(places, heights, strict=True):
            text = f"{height:.0f}" if height >= 10 else f"{height:.2g}"
            axes.annotate(text, (place, height), (0, 2), textcoords="offset points", ha="center", fontsize=7.5)
    whole_numbers(axes, numbers)
    axes.set(xlabel="iteration", ylabel=unit.axis("RMS error"))
    axes.margins(y=0.25)  # place for the legend
    axes.legend(loc="upper center", ncols=len(series), columnspacing=1.0, handlelength=1.0)


def _parameters(figure: Figure, scenario: Scenario, calibrations: Mapping[int, Calibration]) -> None:
    places = figure.subplots(1, len(scenario.space))
    for place, parameter in zip(places, scenario.space, strict=True):
        _paint_parameter(place, parameter, calibrations)
    figure.suptitle("Parameters with 95 % intervals (grey: prior)", x=0.008, ha="left", fontsize=9.5, fontweight="bold")
    figure.supxlabel("iteration", fontsize=9, color="#3d444d")


def _paint_parameter(axes: Axes, parameter: Parameter, calibrations: Mapping[int, Calibration]) -> None:
    axes.plot([0, 0], prior_interval(parameter), color=PRIOR, linewidth=6, solid_capstyle="butt")
    axes.plot([0], [parameter.nominal], marker="o", color="#7d868f", markersize=4)
    for number, calibration in calibrations.items():
        estimate = calibration.estimates[parameter.name]
        axes.plot([number, number], [estimate.lower, estimate.upper], color=AFTER, linewidth=1.8)
        axes.plot([number], [estimate.value], marker="o", color=AFTER, markersize=4)
    if parameter.scale == "log":
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=6))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    whole_numbers(axes, [0, *calibrations])
    unit = "" if parameter.unit == "1" else f" ({parameter.unit})"
    axes.set_title(parameter.name.replace("_", "\n") + unit, fontsize=8, fontweight="normal")
    axes.tick_params(labelsize=7)
