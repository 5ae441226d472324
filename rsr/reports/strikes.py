"""An adaptation to recorded strikes in a picture and a table: methods, predictions against measurements, learning."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from rsr.clash.comparison import Comparison
from rsr.reports._drawing import AFTER, ALONG_X, ALONG_Y, PRIOR, REAL, RETRAINED, render, share_axis
from rsr.scenarios.strike import Shape

_WORDS = {
    "adapted": "adapted (surrogate and law)",
    "surrogate_residual": "surrogate and residual",
    "identified": "surrogate, identified only",
    "finetuned": "surrogate, fine-tuned, gated",
    "paper": "CLASH recipe as stated",
    "paper_normalised": "CLASH recipe, normalised",
    "mujoco_grid": "MuJoCo, grid search",
    "mujoco_grid_residual": "MuJoCo and residual",
    "mjx": "MJX, Gauss-Newton",
    "analytic": "analytic impact law",
    "analytic_residual": "analytic law and residual",
    "residual_alone": "residual alone",
    "untrained": "network without simulation",
    "untrained_normalised": "same, block's frame",
}


def method_name(name: str) -> str:
    """A method in words."""
    return _WORDS.get(name, name)


def strike_picture(shape: Shape, comparison: Comparison, curve: Mapping[int, float]) -> bytes:
    """Draw a PNG."""

    def compose(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3, width_ratios=(1.2, 1, 0.8))
        _bars(left, comparison)
        _scatter(middle, shape, comparison)
        _curve(right, curve)
        figure.suptitle(f"Strikes on '{shape.name}': {comparison.how}", fontsize=10)

    return render(compose, (12.5, 4.0), "png")


def comparison_table(comparison: Comparison) -> Table:
    """List the methods, best first, for the terminal."""
    table = Table("method", "within 10 %", "raw metric", "median error", "in 90 % intervals", title=comparison.how)
    for judged in sorted(comparison.methods, key=lambda judged: -judged.accuracy):
        inside = "" if judged.inside is None else f"{judged.inside:.0%}"
        figures = f"{judged.accuracy:.0%}", f"{judged.raw_accuracy:.0%}", f"{np.median(judged.errors):.1%}", inside
        table.add_row(method_name(judged.name), *figures)
    return table


def _bars(axes: Axes, comparison: Comparison) -> None:
    ordered = sorted(comparison.methods, key=lambda judged: judged.accuracy)
    colours = [AFTER if judged.name == "adapted" else PRIOR for judged in ordered]
    axes.barh([method_name(judged.name) for judged in ordered], [judged.accuracy for judged in ordered], color=colours)
    for place, judged in enumerate(ordered):
        axes.annotate(
            f"{judged.accuracy:.2f}", (judged.accuracy, place), xytext=(3, -3), textcoords="offset points", fontsize=8
        )
    axes.set(xlim=(0, 1.1), xlabel="share predicted within 10 %")
    axes.grid(visible=False, axis="y")


def _scatter(axes: Axes, shape: Shape, comparison: Comparison) -> None:
    measured, predicted = comparison.judged_on.after, comparison["adapted"].predicted
    weights = np.array([1.0, 1.0, shape.gyration_m])
    names = ("x", "y", "turning x radius of gyration")
    for column, colour, name in zip(range(3), (ALONG_X, ALONG_Y, RETRAINED), names, strict=True):
        values = [(motion * weights)[:, column] for motion in (measured, predicted)]
        axes.scatter(*values, s=9, color=colour, alpha=0.7, linewidths=0, label=name)
    axes.axline((0, 0), slope=1, color=REAL, linewidth=0.8)
    axes.set(xlabel="measured velocity after (m/s)", ylabel="predicted by the adapted surrogate (m/s)")
    axes.legend()


def _curve(axes: Axes, curve: Mapping[int, float]) -> None:
    share_axis(axes)
    axes.set(xlabel="strikes adapted to", ylabel="share predicted within 10 %")
    if curve:
        axes.plot(list(curve), list(curve.values()), marker="o", color=AFTER)
        axes.set_xticks(list(curve))
    else:
        axes.text(0.5, 0.5, "too few strikes", ha="center", transform=axes.transAxes)
