"""Channels whose clock is not the robot's: which rows show which moment, and how to read between rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rsr.scenarios.scenario import Scenario
from rsr.sessions import Episode


def resampled(rows: np.ndarray, moved: float) -> np.ndarray:
    """Rows [..., T, C] as they are `moved` rows later: straight lines between rows, and beyond both ends."""
    last = rows.shape[-2] - 1
    if last < 1 or moved == 0.0:
        return rows
    places = np.arange(last + 1) + moved
    before = np.clip(np.floor(places).astype(int), 0, last - 1)
    share = (places - before)[:, None]
    return (1.0 - share) * rows[..., before, :] + share * rows[..., before + 1, :]


def lags(scenario: Scenario, values: np.ndarray) -> dict[str, float]:
    """Channel -> how many rows late it was recorded, with parameters [P]; only channels that a parameter shifts."""
    return {name: float(values[index]) / scenario.control_dt_s for name, index in scenario.shifts}


def read_late(scenario: Scenario, measured: Mapping[str, np.ndarray], values: np.ndarray) -> dict[str, np.ndarray]:
    """What late channels [..., T, C] would have shown: each row the world as it was `lag` rows before."""
    late = lags(scenario, values)
    return {name: resampled(rows, -late.get(name, 0.0)) for name, rows in measured.items()}


def on_time(scenario: Scenario, episode: Episode, values: np.ndarray) -> Episode:
    """A recording with its late channels moved back to the moments that they show; rows without a partner go."""
    late = {name: rows for name, rows in lags(scenario, values).items() if rows != 0.0}
    if not late:
        return episode
    lost = int(np.ceil(max(0.0, *late.values())))
    first = int(np.ceil(max(0.0, *(-rows for rows in late.values()))))
    moved = {
        name: resampled(_unbroken(scenario, name, episode[name]), late[name]) if name in late else episode[name]
        for name in episode.values
    }
    return rows_of(replace(episode, values=moved), first, len(episode) - lost)


def rows_of(episode: Episode, first: int, end: int) -> Episode:
    """Some of an episode's rows, with the times they had."""
    values = {name: rows[first:end] for name, rows in episode.values.items()}
    return replace(episode, time_s=episode.time_s[first:end], values=values)


def _unbroken(scenario: Scenario, name: str, rows: np.ndarray) -> np.ndarray:
    """Quaternions [T, 4] without jumps between q and -q, which are the same orientation."""
    if scenario.observed_channel(name).kind != "quaternion":
        return rows
    turned = np.sum(rows[1:] * rows[:-1], axis=1) < 0
    return rows * np.cumprod(np.where(np.concatenate([[False], turned]), -1.0, 1.0))[:, None]


def start_states(scenario: Scenario, around: np.ndarray, values: np.ndarray) -> np.ndarray:
    """States [W, n] in which simulations begin with parameters [P]: late channels as they are shown some rows later.

    Args:
        around: [W, 2 S + 1, n], states as recorded, from S rows before the start to S rows after it.
    """
    middle, size = around.shape[1] // 2, scenario.base_model.nq
    states = around[:, middle].copy()
    for name, late in lags(scenario, values).items():
        observed = scenario.observed_channel(name)
        place, speed = list(observed.qpos), [size + dof for dof in observed.dofs]
        positions = around[..., place]
        if observed.kind == "quaternion":
            same = np.sum(positions * positions[:, middle : middle + 1], axis=-1, keepdims=True) >= 0
            positions = np.where(same, positions, -positions)
        moved = resampled(positions, late)[:, middle]
        if observed.kind == "quaternion":
            moved = moved / np.linalg.norm(moved, axis=-1, keepdims=True)
        states[:, place], states[:, speed] = moved, resampled(around[..., speed], late)[:, middle]
    return states
