"""Prediction error of a simulator on a recording, in the metrics of its scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rsr.common import SessionError
from rsr.scenarios import Scenario, Start, difference, starts_of
from rsr.sessions import Episode, Session
from rsr.simulators.mujoco import MujocoSimulator, Simulator
from rsr.simulators.sensor_correction import correct_sensors

UNSTABLE = 1e3
"""Error charged to a prediction that is no longer finite, in the channel's unit."""


def evaluate_recording(
    scenario: Scenario,
    session: Session,
    params: np.ndarray | Mapping[str, float],
    start: str | None = None,
    episodes: Sequence[int] | None = None,
    simulator: Simulator | None = None,
    as_recorded: bool = False,
) -> dict[str, Any]:
    """Simulate a recording open loop and compare.

    Args:
        params: [P] in physical units, or names and values; names left out keep their nominal value.
        start: one of `scenario.evaluation.starts`; the first of them by default.
        episodes: indices of the episodes to compare with; all by default. Leave out those that were fitted, with their
            repeats (`unseen_episodes`).
        simulator: C MuJoCo by default.
        as_recorded: compare with all of the recording, its sensor biases and delays included. By default sensors are
            corrected first, with these parameters (`correct_sensors`).

    Returns:
        The scenario's metrics by name, and `start`, `episodes` (how many were compared), `trials` (how many different
        ones), `skipped` (indices of episodes that do not allow this start), `per_episode` (index -> metric -> value).

    Example:
        >>> evaluate_recording(scenario, session, {"friction": 0.18}, "free_flight")  # doctest: +SKIP
        {'position_error_percent': 14.6, 'rotation_error_deg': 19.6, ...}
    """
    if simulator is None:
        with MujocoSimulator(scenario) as own:
            return evaluate_recording(scenario, session, params, start, episodes, own, as_recorded)
    values = scenario.space.vector(params) if isinstance(params, Mapping) else np.asarray(params, float)
    name = scenario.evaluation.start(start)
    chosen = session.episodes if episodes is None else tuple(session.episodes[index] for index in episodes)
    if not as_recorded:
        chosen = tuple(correct_sensors(scenario, simulator, chosen, values))
    begun = {episode.index: starts_of(scenario, episode, name) for episode in chosen}
    compared = [episode for episode in chosen if begun[episode.index]]
    if not compared:
        raise SessionError(
            got=f"no episode that allows the start '{name}', of {len(chosen)}",
            expected="at least one",
            where=f"session '{session.card.session}'",
            next_step=f"Choose another start: {', '.join(scenario.evaluation.starts)}; or record longer episodes.",
        )
    rollouts = [(episode, start) for episode in compared for start in begun[episode.index]]
    errors = _by_episode(compared, rollouts, predict(scenario, rollouts, values, simulator), scenario)
    skipped = [episode.index for episode in chosen if not begun[episode.index]]
    return _figures(scenario, compared, errors) | {"start": name, "skipped": skipped}


def _figures(
    scenario: Scenario, compared: Sequence[Episode], errors: Mapping[int, Mapping[str, list[np.ndarray]]]
) -> dict[str, Any]:
    """The scenario's metrics, over all episodes and of each."""
    metrics, groups = scenario.evaluation.metrics, [scenario.group(episode) for episode in compared]
    figures: dict[str, Any] = {
        metric.name: metric.total([errors[episode.index][metric.channel] for episode in compared], groups)
        for metric in metrics
    }
    each = {
        str(index): {metric.name: metric.episode(error[metric.channel]) for metric in metrics}
        for index, error in errors.items()
    }
    return figures | {"episodes": len(compared), "trials": len(set(groups)), "per_episode": each}


def unseen_episodes(scenario: Scenario, session: Session, fitted: Sequence[int]) -> tuple[int, ...]:
    """List the episodes that neither were fitted nor repeat a trial that was, by index."""
    seen = {scenario.group(session.episodes[index]) for index in fitted}
    return tuple(episode.index for episode in session.episodes if scenario.group(episode) not in seen)


def predict(
    scenario: Scenario,
    rollouts: Sequence[tuple[Episode, Start]],
    values: np.ndarray,
    simulator: Simulator,
) -> list[np.ndarray]:
    """Simulate each start with the recorded commands: states [steps + 1, nq + nv], the first the start itself."""
    # One batch needs one length: shorter rollouts are cut after it, which costs less than several batches.
    longest = max(start.steps for _, start in rollouts)
    states = simulator.rollout(
        np.array([start.state for _, start in rollouts]),
        np.array([scenario.commands_from(episode, start.row, longest) for episode, start in rollouts]),
        values,
    )
    return [rows[: start.steps + 1] for rows, (_, start) in zip(states, rollouts, strict=True)]


def _by_episode(
    compared: Sequence[Episode],
    rollouts: Sequence[tuple[Episode, Start]],
    predicted: Sequence[np.ndarray],
    scenario: Scenario,
) -> dict[int, dict[str, list[np.ndarray]]]:
    """Compute errors of the channels that metrics use: episode index -> channel -> one array [T, C] a rollout."""
    channels = {metric.channel for metric in scenario.evaluation.metrics}
    errors: dict[int, dict[str, list[np.ndarray]]] = {
        episode.index: {channel: [] for channel in channels} for episode in compared
    }
    for (episode, start), states in zip(rollouts, predicted, strict=True):
        measured = scenario.measure(states)
        for channel in channels:
            real = episode[channel][start.row : start.row + start.steps + 1]
            error = difference(scenario.observed_channel(channel).kind, real, measured[channel])
            errors[episode.index][channel].append(np.nan_to_num(error, nan=UNSTABLE, posinf=UNSTABLE, neginf=-UNSTABLE))
    return errors
