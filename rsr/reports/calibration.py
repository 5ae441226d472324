"""Section: how the fit went, what it is worth on episodes it did not see, and what it warns of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup
from matplotlib.axes import Axes

from rsr.calibration import Calibration
from rsr.reports._drawing import AFTER, WIDE, draw, picture
from rsr.reports._html import Section, absent, badge, bullets, join, paragraph, table
from rsr.reports._text import number
from rsr.reports.data import ReportData

ADVICE = {
    "converged": "the search ended by itself.",
    "budget spent": "the search was cut off; a larger budget may still improve it.",
    "no improvement": "the previous parameters explain the held-out episodes better, and were kept.",
}


def calibration(data: ReportData) -> Section:
    title = "Calibration"
    if data.after is None:
        return Section("calibration", title, absent("calibration", data.why("calibration")))
    after = data.after
    parts = [_status(after), _warnings(after), _evidence(data, after), _checks(after), _trace(after)]
    return Section("calibration", title, join(parts))


def _status(after: Calibration) -> Markup:
    text = Markup("Method <b>{}</b>, {}: {} {} episodes were fitted, {} held out.")
    counts = len(after.evidence.fitted), len(after.evidence.held_out)
    return paragraph(text.format(after.method, badge(after.status), ADVICE.get(after.status, ""), *counts))


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
    """What was chosen, and what was checked beside the held-out episodes; nothing where nothing was."""
    checks, chosen = after.checks, ", ".join(f"{option} {value}" for option, value in after.structure.items())
    said = {
        "Structure, chosen by a race on episodes left out of its fits": chosen,
        "Sensitivities by": checks.sensitivity,
        "Gradients against differences in C": checks.gradients,
        "One step of MJX against one of C": checks.parity,
        "Refits to resampled episodes, against the interval's standard deviation": _factors(checks.bootstrap, "x"),
        "Windows half as long move the estimate by (standard deviations)": _factors(checks.horizon, ""),
    }
    lines = [f"{what}: {words}." for what, words in said.items() if words]
    return join([bullets(lines) if lines else Markup(""), _race(after)])


def _factors(figures: Mapping[str, float], unit: str) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {figure:.2g}{unit}" for name, figure in figures.items())


def _race(after: Calibration) -> Markup:
    """Candidates of the race, the best first."""
    if not after.race:
        return Markup("")
    ranked = sorted(after.race.items(), key=lambda each: each[1])
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
