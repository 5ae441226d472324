"""Write the iteration's HTML page."""

from __future__ import annotations

from rsr.files import write_text
from rsr.progress import Advance
from rsr.reports.page import render_report
from rsr.workspace import Workspace


def report(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write report.html: what this iteration found, beside the iterations before it."""
    write_text(workspace.report_path(iteration), render_report(workspace, iteration, advance))
