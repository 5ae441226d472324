"""The first NaN of a simulation: its inputs on disk, and the command that replays it."""

from __future__ import annotations

import logging
import shlex
from pathlib import Path

import numpy as np

from rsr.common import write_arrays
from rsr.scenarios import Scenario, built_in_scenarios
from rsr.simulators.mjx._flags import cache_folder

ROWS = 5
"""Last finite states kept before the first that is not."""
_log = logging.getLogger(__name__)


def dump_first_bad(
    scenario: Scenario,
    trajectory: np.ndarray,
    actions: np.ndarray,
    params: np.ndarray,
    derivatives: np.ndarray | None = None,
) -> Path | None:
    """Write the last states before the first NaN or infinity, and log the command that replays them.

    Args:
        trajectory: [B, T + 1, n].
        actions: [B, H + T, nu].
        derivatives: [B, T + 1, n, P], checked too.

    Returns:
        The file, or None if everything is finite.
    """
    bad = ~np.isfinite(trajectory).all(axis=2)
    if derivatives is not None:
        bad |= ~np.isfinite(derivatives).all(axis=(2, 3))
    if not bad.any():
        return None
    # The earliest row over all windows: NaN spreads, and later ones are consequences.
    places = np.argwhere(bad)
    window, row = (int(index) for index in places[places[:, 1].argmin()])
    first = max(0, row - ROWS)
    values = np.broadcast_to(np.atleast_2d(params), (len(trajectory), len(scenario.space)))[window]
    path = cache_folder() / "dumps" / f"{scenario.name}-nan.npz"
    write_arrays(
        path,
        {
            "scenario": np.array(_name(scenario)),
            "states": trajectory[window, first : row + 1],
            # From row `first` on, with the history before it: actions begin H rows before the first state.
            "actions": actions[window, first : max(row, first + 1) + scenario.history_steps],
            "params": values,
        },
    )
    _log.warning(
        "%s: not finite in window %d, control step %d, with %s. Replay: python -m rsr.simulators.mjx %s",
        scenario.name,
        window,
        row,
        ", ".join(f"{name} {value:.4g}" for name, value in zip(scenario.space.names, values, strict=True)),
        shlex.quote(str(path)),
    )
    return path


def _name(scenario: Scenario) -> str:
    """Name the scenario as `load_scenario` takes it: built-in name or path of a YAML file."""
    if scenario.name in built_in_scenarios():
        return scenario.name
    return str(scenario.folder / "scenario.yaml")
