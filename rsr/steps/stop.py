"""The stop rule at the end of an iteration."""

from __future__ import annotations

from rsr.files import read_json
from rsr.workspace import Workspace


def reason_to_stop(workspace: Workspace, iteration: int) -> str | None:
    """Say why the loop may end after this iteration, or None.

    Follows the settings frozen for the iteration, so that a loop started again decides as the first one did.
    """
    gap_m = read_json(workspace.metrics_path(iteration))["gap_after"]
    floor_m = workspace.config(iteration).stop.gap_m
    if gap_m <= floor_m:
        return f"the gap, {gap_m:.4f} m, is at its floor of {floor_m:.4f} m"
    return None
