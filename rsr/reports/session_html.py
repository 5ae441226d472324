"""The pages of sessions as one HTML file that needs nothing else, no script and no network."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from rsr.reports._drawing import AFTER, BEFORE, REAL, RETRAINED, WIDE, draw, picture
from rsr.reports._html import Section, absent, badge, join, paragraph, table
from rsr.reports._templates import template
from rsr.reports._text import ABSENT, number, percent
from rsr.reports.session import SessionPage, facts
from rsr.sessions import Session

_COLOURS = (AFTER, BEFORE, RETRAINED, REAL, "#7a4fa3", "#c2527a")
_ROW_INCHES = 1.25
_MOST_POINTS = 2000
_LARGEST = 1e30


def render_sessions(pages: Sequence[SessionPage]) -> str:
    """Lay out sessions one after the other; equal pages give equal bytes."""
    sections = [_section(index, page) for index, page in enumerate(pages)]
    title = "Session" if len(pages) == 1 else f"{len(pages)} sessions"
    return template("sessions.html").render(title=title, sections=sections)


def _section(index: int, page: SessionPage) -> Section:
    parts = [Markup('<p class="verdict">{}</p>').format(_verdict(page.verdict)), _findings(page)]
    if page.inspection is not None:
        parts.append(table(("", ""), facts(page), text=(0, 1)))
        parts.append(_channels(page))
        parts.append(_excitation(page))
        parts.append(_picture(page.inspection.session))
    name = page.session.card.session if page.session else page.folder.name
    return Section(f"session-{index}", name, join(parts))


def _verdict(word: str) -> Markup:
    kind = {"use": "good", "use with care": "fair", "reject": "poor", "care": "fair"}.get(word, "plain")
    return Markup('<span class="badge {}">{}</span>').format(kind, word)


def _findings(page: SessionPage) -> Markup:
    if not page.findings:
        return paragraph("Nothing was found that speaks against using it.")
    order = ("reject", "care", "note")
    rows = [
        (_verdict(each.severity), each.where, f"got {each.got}; expected {each.expected}", each.next_step)
        for each in sorted(page.findings, key=lambda finding: order.index(finding.severity))
    ]
    return table(("", "where", "what", "what to do"), rows, text=(0, 1, 2, 3))


def _channels(page: SessionPage) -> Markup:
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
        return absent("which parameters it can tell of", "It was not asked for, or the session cannot be simulated.")
    rows = [
        (each.parameter.name, percent(each.left), badge(each.telling), ", ".join(each.together) or ABSENT)
        for each in page.excitation
    ]
    words = (
        "How much of what was uncertain before would still be after a fit, were the model right: simulations of this "
        "session with parameters scattered around nominal. Parameters that look alike are told together, not apart."
    )
    return join([paragraph(words), table(("parameter", "doubt left", "tells", "looks like"), rows, text=(0, 2, 3))])


def _picture(session: Session) -> Markup:
    """Every channel of the longest episode over time."""
    episode = max(session.episodes, key=len)
    step = max(1, len(episode) // _MOST_POINTS)
    channels, time_s = session.channels, _drawable(episode.time_s)[::step]

    def paint(axes: Sequence[Axes]) -> None:
        for place, channel in zip(axes, channels, strict=True):
            values = _drawable(episode[channel.name])[::step]
            for index in range(channel.width):
                colour = _COLOURS[index % len(_COLOURS)]
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
