"""The page of a session for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from rsr.reports.session import SessionPage, facts

_LISTED = 10
_COLOURS = {"use": "green", "use with care": "yellow", "reject": "red"}


def headline(page: SessionPage) -> tuple[str, str]:
    """The verdict as markup, and what it is about, in one line together."""
    mark = f"[bold {_COLOURS[page.verdict]}]{page.verdict}[/]"
    faults = [finding for finding in page.findings if finding.severity != "note"]
    many = "" if len(faults) == 1 else "s"
    if page.session is None or page.verdict == "reject":
        return mark, f"{page.folder}: {len(faults)} problem{many}"
    session = page.session
    duration_s = session.card.control_dt_s * sum(len(episode) - 1 for episode in session.episodes)
    origin = "simulated" if session.card.simulated else "recorded in reality"
    size = f"{len(session.episodes)} episodes, {duration_s:.0f} s, {len(session.channels)} channels"
    return mark, f"{page.folder}: {size}, {origin}" + (f"; {len(faults)} problem{many}" if faults else "")


def finding_lines(page: SessionPage) -> Iterator[str]:
    """The findings, worst first, each with its remedy."""
    order = ("reject", "care", "note")
    findings = sorted(page.findings, key=lambda finding: order.index(finding.severity))
    for finding in findings[:_LISTED]:
        yield str(finding) if finding.severity == "reject" else f"{finding.severity}: {finding}"
    if len(findings) > _LISTED:
        yield f"... and {len(findings) - _LISTED} more"


def tables(page: SessionPage) -> Iterator[RenderableType]:
    """Numbers: the session, its channels, and the parameters it can tell of."""
    if page.inspection is None:
        return
    for name, value in facts(page):
        yield f"        {escape(name)}: {escape(value)}"
    yield _channels(page)
    if page.excitation is not None:
        yield _parameters(page)


def _channels(page: SessionPage) -> Table:
    table = Table(title="channels", title_justify="left")
    table.add_column("channel", no_wrap=True)
    table.add_column("unit")
    for name in ("lowest", "highest", "in motion", "of range"):
        table.add_column(name, justify="right")
    for row in page.inspection.channels if page.inspection else ():
        lowest, highest = (f"{min(row.lowest):.4g}", f"{max(row.highest):.4g}") if row.lowest else ("", "")
        covered = "" if row.covered is None else f"{100 * row.covered:.0f} %"
        table.add_row(row.channel.name, row.channel.unit, lowest, highest, f"{100 * row.moving:.0f} %", covered)
    return table


def _parameters(page: SessionPage) -> Table:
    table = Table(title="what these motions would tell, were the model right", title_justify="left")
    table.add_column("parameter")
    table.add_column("doubt left", justify="right")
    table.add_column("tells")
    table.add_column("looks like")
    for each in page.excitation or ():
        table.add_row(each.parameter.name, f"{100 * each.left:.0f} %", each.telling, ", ".join(each.together))
    return table
