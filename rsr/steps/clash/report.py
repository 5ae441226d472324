"""Write the iteration's HTML page."""

from __future__ import annotations

from rsr.files import write_text
from rsr.progress import Advance
from rsr.reports.collision_page import render_collision_report
from rsr.workspace import Workspace


def report(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write report.html: what the adaptation is worth, beside the iterations before it."""
    write_text(workspace.report_path(iteration), render_collision_report(workspace, iteration))
    advance(1.0, "written")
