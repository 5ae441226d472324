"""`rsr check`: one page per session, for a person, a browser or a machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.markup import escape
from tyro.conf import Positional, arg

from rsr.cli.command import OptionalFile, OptionalName, Switch, at_least_one, say, show

if TYPE_CHECKING:
    from rsr.reports.session import SessionPage

REJECTED = 1
"""Exit code of `rsr check` where a session cannot be used."""


def check(
    sessions: Positional[Annotated[tuple[Path, ...], arg(metavar="SESSION [SESSION ...]", help_behavior_hint="")]],
    /,
    *,
    scenario: OptionalName = None,
    brief: Switch = False,
    html: OptionalFile = None,
    json: OptionalFile = None,
) -> int:
    """Say of recordings whether to use them, to use them with care or to reject them, and why, and what to do.

    Args:
        sessions: folders of stored sessions. Exit code 0: all can be used, if with care; 1: at least one is rejected.
        scenario: what they are to be used for; by default what each one's card says.
        brief: verdicts and findings alone: no numbers, and nothing is simulated.
        html: also write the pages to this file, with pictures.
        json: also write everything to this file.
    """
    at_least_one(sessions)
    from rsr.reports.session import examine_session, known_prints, page_document

    others = known_prints(sessions)
    pages = []
    for folder in sessions:
        pages.append(examine_session(folder, scenario, others, simulate=not brief))
        _show(pages[-1], brief)
    if html is not None:
        from rsr.files import write_text
        from rsr.reports.session_page import render_sessions

        write_text(html, render_sessions(pages))
    if json is not None:
        from rsr.files import write_json

        write_json(json, {"sessions": [page_document(page) for page in pages]})
    return REJECTED if any(page.verdict == "reject" for page in pages) else 0


def _show(page: SessionPage, brief: bool) -> None:
    from rsr.reports.session_page import finding_lines, headline, tables

    mark, words = headline(page)
    show(f"{mark}{' ' * max(2, 8 - len(page.verdict))}{escape(words)}")
    for line in finding_lines(page):
        say(f"        {line}")
    for table in () if brief else tables(page):
        show(table)
