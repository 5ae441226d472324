"""Sensor delay, gain and bias: which moment a channel's rows show, and what becomes of the values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rsr.scenarios.channels.observed import Observed
from rsr.scenarios.channels.turns import continuous
from rsr.scenarios.scenario import Scenario
from rsr.sessions import Episode


def resampled(rows: np.ndarray, moved: float) -> np.ndarray:
    """Rows [..., T, C] shifted by `moved` rows: linear between rows, and beyond both ends."""
    last = rows.shape[-2] - 1
    if last < 1 or moved == 0.0:
        return rows
    places = np.arange(last + 1) + moved
    before = np.clip(np.floor(places).astype(int), 0, last - 1)
    share = (places - before)[:, None]
    return (1.0 - share) * rows[..., before, :] + share * rows[..., before + 1, :]


def lags(scenario: Scenario, values: np.ndarray) -> dict[str, float]:
    """Sensor delay of each channel in rows, with parameters [P]; only channels that a parameter delays."""
    return {name: float(values[index]) / scenario.control_dt_s for name, index in scenario.sensor_delays}


def scales(scenario: Scenario, values: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Gains [..., C] and biases [..., C] of each channel, with parameters [..., P]; only those that are scaled."""
    found: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for scale in scenario.sensor_scales:
        shape = (*values.shape[:-1], scenario.observed_channel(scale.channel).channel.width)
        gain, bias = found.setdefault(scale.channel, (np.ones(shape), np.zeros(shape)))
        (gain if scale.kind == "gain" else bias)[..., list(scale.columns)] = values[..., scale.parameter, None]
    return found


def scaled(scenario: Scenario, measured: Mapping[str, np.ndarray], values: np.ndarray) -> dict[str, np.ndarray]:
    """Readings [..., C] of values [..., C] without noise or delay, with parameters [P]: gain x value + bias."""
    found = scales(scenario, values)
    return {name: found[name][0] * rows + found[name][1] if name in found else rows for name, rows in measured.items()}


def unscaled(scenario: Scenario, episode: Episode, values: np.ndarray) -> Episode:
    """Remove gains and biases that are parameters from a recording."""
    found = scales(scenario, values)
    corrected = {name: (episode[name] - bias) / gain for name, (gain, bias) in found.items()}
    return replace(episode, values={**episode.values, **corrected}) if found else episode


def readings(scenario: Scenario, measured: Mapping[str, np.ndarray], values: np.ndarray) -> dict[str, np.ndarray]:
    """Readings [..., T, C] of what is [..., T, C]: each row shows the world as it was `lag` rows before, scaled."""
    delays = lags(scenario, values)
    shown = {name: resampled(rows, -delays.get(name, 0.0)) for name, rows in measured.items()}
    return scaled(scenario, shown, values)


def on_time(scenario: Scenario, episode: Episode, values: np.ndarray) -> Episode:
    """Remove sensor delays from a recording; rows at the ends that lack a partner go."""
    delays = {name: rows for name, rows in lags(scenario, values).items() if rows != 0.0}
    if not delays:
        return episode
    lost = int(np.ceil(max(0.0, *delays.values())))
    first = int(np.ceil(max(0.0, *(-rows for rows in delays.values()))))
    moved = {
        name: resampled(_unbroken(scenario, name, episode[name]), delays[name]) if name in delays else episode[name]
        for name in episode.values
    }
    return rows_of(replace(episode, values=moved), first, len(episode) - lost)


def rows_of(episode: Episode, first: int, end: int) -> Episode:
    """Some of an episode's rows, with the times they had."""
    values = {name: rows[first:end] for name, rows in episode.values.items()}
    return replace(episode, time_s=episode.time_s[first:end], values=values)


def _unbroken(scenario: Scenario, name: str, rows: np.ndarray) -> np.ndarray:
    """Rows [T, W] without jumps between q and -q, or by a whole turn: both are the same orientation."""
    observed = scenario.observed_channel(name)
    if observed.kind != "quaternion":
        return continuous(scenario.base_model, observed, rows, f"scenario {scenario.name}")
    turned = np.sum(rows[1:] * rows[:-1], axis=1) < 0
    return rows * np.cumprod(np.where(np.concatenate([[False], turned]), -1.0, 1.0))[:, None]


def start_states(scenario: Scenario, starts: np.ndarray, around: np.ndarray, values: np.ndarray) -> np.ndarray:
    """States [W, n] in which simulations begin with parameters [P]: recorded ones, less the errors of their sensors.

    Args:
        starts: [W, n], as recorded.
        around: [W, 2 S + 1, n], the same from S rows before the start to S rows after it, where a channel is delayed.
    """
    middle, size = around.shape[1] // 2, scenario.base_model.nq
    states = starts.copy()
    # A delayed channel shows the start some rows later.
    for name, delay in lags(scenario, values).items():
        observed = scenario.observed_channel(name)
        place, speed = list(observed.places), [size + dof for dof in observed.dofs]
        positions = around[..., place]
        if observed.kind == "quaternion":
            same = np.sum(positions * positions[:, middle : middle + 1], axis=-1, keepdims=True) >= 0
            positions = np.where(same, positions, -positions)
        moved = resampled(positions, delay)[:, middle]
        if observed.kind == "quaternion":
            moved = moved / np.linalg.norm(moved, axis=-1, keepdims=True)
        states[:, place], states[:, speed] = moved, resampled(around[..., speed], delay)[:, middle]
    for name, (gain, bias) in scales(scenario, values).items():
        observed = scenario.observed_channel(name)
        place, speed = list(observed.places), [size + dof for dof in observed.dofs]
        states[:, place] = (states[:, place] - bias) / gain
        # Velocities are differences of positions: no bias. Sensors have none.
        states[:, speed] /= gain if speed else 1.0
    return states


# Sensors whose zero was set anew for each episode: a constant that belongs to the recording, not to the robot.


def bias_free(scenario: Scenario) -> tuple[Observed, ...]:
    """Channels whose sensor bias differs from episode to episode; biases [Z] are their columns, one after the other."""
    return tuple(observed for observed in scenario.observed if observed.bias_std > 0)


def bias_std(scenario: Scenario) -> np.ndarray:
    """Prior standard deviations [Z] of sensor biases, in the channels' units."""
    return np.array([observed.bias_std for observed in bias_free(scenario) for _ in observed.places])


def biased_coordinates(scenario: Scenario) -> np.ndarray:
    """[Z], the index into a row of states of each zero."""
    return np.array([index for observed in bias_free(scenario) for index in observed.places], int)


def without_biases(scenario: Scenario, episode: Episode, biases: np.ndarray) -> Episode:
    """Subtract sensor biases [Z] from a recording [T]."""
    values, taken = dict(episode.values), 0
    for observed in bias_free(scenario):
        name, width = observed.channel.name, observed.channel.width
        values[name] = episode[name] - biases[taken : taken + width]
        taken += width
    return replace(episode, values=values) if taken else episode
