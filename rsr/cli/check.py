"""`rsr check`: one page per session, for a person, a browser or a machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rich.markup import escape
from tyro.conf import Positional, arg

import rsr
from rsr.cli.command import OptionalFile, OptionalName, Switch, at_least_one, say, show

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

    others = rsr.reports.known_prints(sessions)
    pages = []
    for folder in sessions:
        pages.append(rsr.reports.examine_session(folder, scenario, others, simulate=not brief))
        _show(pages[-1], brief)
    if html is not None:
        rsr.common.write_text(html, rsr.reports.render_sessions(pages))
    if json is not None:
        rsr.common.write_json(json, {"sessions": [rsr.reports.page_document(page) for page in pages]})
    return REJECTED if any(page.verdict == "reject" for page in pages) else 0


def _show(page: rsr.reports.SessionPage, brief: bool) -> None:
    mark, words = rsr.reports.headline(page)
    show(f"{mark}{' ' * max(2, 8 - len(page.verdict))}{escape(words)}")
    for line in rsr.reports.finding_lines(page):
        say(f"        {line}")
    for table in () if brief else rsr.reports.tables(page):
        show(table)
