"""The report of an iteration: one HTML page that needs nothing else, no script and no network."""

from __future__ import annotations

from collections.abc import Callable

from rsr.progress import Advance, ignore
from rsr.reports._html import Section
from rsr.reports._templates import template
from rsr.reports.calibration import calibration
from rsr.reports.coverage import coverage
from rsr.reports.data import ReportData, read_report_data
from rsr.reports.divergence import divergence
from rsr.reports.infogap import infogap
from rsr.reports.learning import learning
from rsr.reports.links import links
from rsr.reports.parameters import parameters
from rsr.reports.receipts import receipts
from rsr.reports.success import success
from rsr.reports.summary import summary
from rsr.reports.trajectories import trajectories
from rsr.workspace import Workspace

SECTIONS: tuple[Callable[[ReportData], Section], ...] = (
    summary,
    trajectories,
    parameters,
    divergence,
    success,
    learning,
    coverage,
    infogap,
    calibration,
    receipts,
    links,
)


def render_report(workspace: Workspace, iteration: int, advance: Advance = ignore) -> str:
    """Render the page of one iteration from the files of its workspace; equal files give an equal page."""
    data = read_report_data(workspace, iteration)
    sections = []
    for index, section in enumerate(SECTIONS):
        sections.append(section(data))
        advance((index + 1) / len(SECTIONS), sections[-1].title)
    title = f"Iteration {iteration} · {data.scenario.name}"
    return template("page.html").render(data=data, sections=sections, title=title)
