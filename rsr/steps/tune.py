"""Fit the simulator's parameters to the iteration's session."""

from __future__ import annotations

from rsr.progress import Advance
from rsr.workspace import Workspace


def tune(workspace: Workspace, iteration: int, advance: Advance) -> None:
    raise NotImplementedError
