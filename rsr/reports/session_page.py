"""The pages of sessions as one HTML file that needs nothing else, no script and no network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from rsr.common import titled_table
from rsr.reports._drawing import AFTER, BEFORE, REAL, RETRAINED, WIDE, draw, picture
from rsr.reports._html import ABSENT, ReportSection, absent, badge, join, number, paragraph, percent, table, template
from rsr.reports.session import SessionPage, facts
from rsr.sessions import Finding, Session

_HTML_COLOURS = (AFTER, BEFORE, RETRAINED, REAL, "#7a4fa3", "#c2527a")
_ROW_INCHES = 1.25
_MOST_POINTS = 2000
_LARGEST = 1e30


def render_sessions(pages: Sequence[SessionPage]) -> str:
    """Lay out sessions one after the other; equal pages give equal bytes."""
    sections = [_section(index, page) for index, page in enumerate(pages)]
    title = "Session" if len(pages) == 1 else f"{len(pages)} sessions"
    return template("sessions.html").render(title=title, sections=sections)


def _section(index: int, page: SessionPage) -> ReportSection:
    parts = [Markup('<p class="verdict">{}</p>').format(_verdict(page.verdict)), _findings(page)]
    if page.inspection is not None:
        parts.append(table(("", ""), facts(page), text=(0, 1)))
        parts.append(_channel_table(page))
        parts.append(_excitation(page))
        parts.append(_picture(page.inspection.session))
    name = page.session.card.session if page.session else page.folder.name
    return ReportSection(f"session-{index}", name, join(parts))


def _verdict(word: str) -> Markup:
    kind = {"use": "good", "use with care": "fair", "reject": "poor", "care": "fair"}.get(word, "plain")
    return Markup('<span class="badge {}">{}</span>').format(kind, word)


def _findings(page: SessionPage) -> Markup:
    if not page.findings:
        return paragraph("Nothing was found that speaks against using it.")
    rows = [
        (_verdict(each.severity), each.where, f"got {each.got}; expected {each.expected}", each.next_step)
        for each in _worst_first(page)
    ]
    return table(("", "where", "what", "what to do"), rows, text=(0, 1, 2, 3))


def _worst_first(page: SessionPage) -> list[Finding]:
    order = ("reject", "care", "note")
    return sorted(page.findings, key=lambda finding: order.index(finding.severity))


def _channel_table(page: SessionPage) -> Markup:
    rows = []
    for row in page.inspection.channels if page.inspection else ():
        lowest, highest = (min(row.lowest), max(row.highest)) if row.lowest else (None, None)
        channel = row.channel
        described = (channel.name, channel.unit, channel.frame, channel.clock)
        rows.append((*described, number(lowest), number(highest), percent(row.moving), percent(row.covered)))
    header = ("channel", "unit", "frame", "clock", "lowest", "highest", "time in motion", "of the joints' range")
    return table(header, rows, text=(0, 1, 2, 3))


def _excitation(page: SessionPage) -> Markup:
    if page.excitation is None:
        return absent("which parameters are observable", "It was not asked for, or the session cannot be simulated.")
    rows = [
        (each.parameter.name, percent(each.std_share), badge(each.observability), ", ".join(each.correlated) or ABSENT)
        for each in page.excitation
    ]
    words = (
        "Expected posterior standard deviation as a share of the prior's, were the model right: from simulations of "
        "this session with parameters scattered around nominal. Of correlated parameters a combination is observable."
    )
    header = ("parameter", "posterior / prior std", "observability", "correlated with")
    return join([paragraph(words), table(header, rows, text=(0, 2, 3))])


def _picture(session: Session) -> Markup:
    """Every channel of the longest episode over time."""
    episode = max(session.episodes, key=len)
    step = max(1, len(episode) // _MOST_POINTS)
    channels, time_s = session.channels, _drawable(episode.time_s)[::step]

    def paint(axes: Sequence[Axes]) -> None:
        for place, channel in zip(axes, channels, strict=True):
            values = _drawable(episode[channel.name])[::step]
            for index in range(channel.width):
                colour = _HTML_COLOURS[index % len(_HTML_COLOURS)]
                place.plot(time_s, values[:, index], color=colour, linewidth=1.0, label=channel.columns[index])
            if channel.width > 1:
                place.legend(loc="upper right", ncols=channel.width)
            place.set_title(f"{channel.name}, {channel.unit}")
        axes[-1].set_xlabel("time in s")

    drawn = draw(paint, (WIDE, 0.4 + _ROW_INCHES * len(channels)), (len(channels), 1))
    return picture(drawn, "channels over time", f"Episode {episode.index}, the longest: every channel as recorded.")


def _drawable(values: np.ndarray) -> np.ndarray:
    """Leave out what no axis can show."""
    values = np.asarray(values, float)
    return np.where(np.abs(values) < _LARGEST, values, np.nan)


# The page of a session for a terminal.

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
    findings = _worst_first(page)
    for finding in findings[:_LISTED]:
        yield str(finding) if finding.severity == "reject" else f"{finding.severity}: {finding}"
    if len(findings) > _LISTED:
        yield f"... and {len(findings) - _LISTED} more"


def tables(page: SessionPage) -> Iterator[RenderableType]:
    """Numbers: the session, its channels, and the parameters it is informative about."""
    if page.inspection is None:
        return
    for name, value in facts(page):
        yield f"        {escape(name)}: {escape(value)}"
    yield _channel_lines(page)
    if page.excitation is not None:
        yield _parameters(page)


def _channel_lines(page: SessionPage) -> Table:
    rows = []
    for row in page.inspection.channels if page.inspection else ():
        lowest, highest = (f"{min(row.lowest):.4g}", f"{max(row.highest):.4g}") if row.lowest else ("", "")
        covered = "" if row.covered is None else f"{100 * row.covered:.0f} %"
        rows.append((row.channel.name, row.channel.unit, lowest, highest, f"{100 * row.moving:.0f} %", covered))
    header = ("channel", "unit", "lowest", "highest", "in motion", "of range")
    table = titled_table("channels", header, rows, text=(0, 1))
    table.columns[0].no_wrap = True
    return table


def _parameters(page: SessionPage) -> Table:
    rows = [
        (each.parameter.name, f"{100 * each.std_share:.0f} %", each.observability, ", ".join(each.correlated))
        for each in page.excitation or ()
    ]
    header = ("parameter", "posterior / prior std", "observability", "correlated with")
    return titled_table("observability of the parameters, were the model right", header, rows, text=(0, 2, 3))
