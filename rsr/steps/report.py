"""Write the iteration's HTML page."""

from __future__ import annotations

from rsr.progress import Advance
from rsr.workspace import Workspace


def report(workspace: Workspace, iteration: int, advance: Advance) -> None:
    raise NotImplementedError
