"""Command: recordings that research groups publish, as sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from rsr import progress
from rsr.cli.screen import say


def data(
    action: Positional[Literal["get"]],
    name: Positional[Annotated[str, arg(metavar="NAME")]],
    /,
    *,
    root: Annotated[Path, arg(metavar="DIR")] = Path("data"),
    source: Annotated[Path | None, arg(metavar="DIR", help_behavior_hint="")] = None,
) -> int:
    """Store published recordings as a session, fetched from their authors and compared with their checksums.

    Args:
        action: get.
        name: contactnets (cube tosses) or double-pendulum.
        root: folder of the sessions.
        source: take the authors' files, or one parquet table of them, from here instead of fetching them.
    """
    from rsr.sessions.public import get_data, public_data

    published = public_data(name)
    with progress.bar("data") as advance:
        folder = get_data(name, root, source, advance)
    say(f"{folder}: {published.title} ({published.licence}), from {published.page}")
    return 0
