"""By which figures a scenario is judged on a recording: what is compared, how it is averaged, what counts as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from rsr.common import ScenarioError, chosen
from rsr.scenarios.yaml_keys import check_fields

StartName = Literal["first", "free_flight", "windows"]
"""`first`: each episode from its first frame, with the velocities that were recorded. `free_flight`: shortly before the
first touch, with velocities fitted to the flight before it. `windows`: again and again, every `horizon_s`."""
Statistic = Literal["mean_distance", "rmse", "mean_rmse"]
"""`mean_distance`: length of the difference, averaged over the frames of an episode, then over the episodes (repeats of
one trial together count once). `rmse`: root of the mean squared difference over all columns and frames. `mean_rmse`:
that of each simulation, averaged over the simulations."""


@dataclass(frozen=True)
class ErrorMetric:
    """One figure. Differences of orientations are rotation vectors in rad.

    Args:
        display_unit: this much of the channel's unit counts as one: 0.01 of a metre makes centimetres.
    """

    name: str
    channel: str
    statistic: Statistic
    display_unit: float = 1.0

    def episode(self, errors: Sequence[np.ndarray]) -> float:
        """The figure of one episode, from the errors [T, C] of its simulations."""
        if self.statistic == "mean_rmse":
            return float(np.mean([_rmse(error) for error in errors])) / self.display_unit
        error = np.concatenate(errors)
        if self.statistic == "rmse":
            return _rmse(error) / self.display_unit
        return float(np.mean(np.linalg.norm(error, axis=-1))) / self.display_unit

    def total(self, errors: Sequence[Sequence[np.ndarray]], groups: Sequence[str]) -> float:
        """The figure of all episodes; `groups` names the trial that each repeats."""
        if self.statistic == "mean_distance":
            return float(np.mean(group_means(np.array([self.episode(episode) for episode in errors]), groups)))
        return self.episode([error for episode in errors for error in episode])


def _rmse(error: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(error))))


def group_means(values: np.ndarray, groups: Sequence[str]) -> np.ndarray:
    """Average values [E] within each group: [G]."""
    owner = np.array(groups)
    return np.array([values[owner == group].mean() for group in dict.fromkeys(groups)])


@dataclass(frozen=True)
class FreeFlight:
    """How to find the last frames before a thrown body touches the ground.

    Args:
        position, orientation: channels of the body's free joint.
        below_m: below this height of the centre it may touch.
        frames_before: the start lies this many frames earlier.
    """

    position: str
    orientation: str
    below_m: float
    frames_before: int


@dataclass(frozen=True)
class Evaluation:
    """How predictions are judged on recordings.

    Args:
        starts: allowed ones; the first is the default.
        horizon_s: length of the rollouts of `windows`.
    """

    starts: tuple[StartName, ...]
    metrics: tuple[ErrorMetric, ...]
    horizon_s: float | None = None
    free_flight: FreeFlight | None = None

    def start(self, name: str | None) -> StartName:
        """The start of this name, or the default."""
        if name is None:
            return self.starts[0]
        advice = "Choose one of these, or add it to `evaluation: starts:` of the scenario's YAML file."
        return chosen(name, {start: start for start in self.starts}, "start", "start of the evaluation", advice)


def default_evaluation(channels: Sequence[str]) -> Evaluation:
    """Metrics of a scenario that names none: the RMSE of every observed channel, over half seconds."""
    return Evaluation(("windows", "first"), tuple(ErrorMetric(f"{name}_rmse", name, "rmse") for name in channels), 0.5)


def parse_evaluation(entry: Mapping[str, Any], channels: Sequence[str], where: str) -> Evaluation:
    """Read `evaluation:` of a scenario's YAML file.

    Args:
        channels: names of the observed channels.
    """
    place = f"{where}, evaluation"
    check_fields("evaluation", entry, place)
    metrics = []
    for name, described in entry["metrics"].items():
        check_fields("metric", described, f"{place}, metric {name}")
        _check_word(described["channel"], channels, f"{place}, metric {name}, channel")
        _check_word(described["statistic"], get_args(Statistic), f"{place}, metric {name}, statistic")
        metrics.append(ErrorMetric(name=name, **described))
    for start in entry["starts"]:
        _check_word(start, get_args(StartName), f"{place}, starts")
    for start, key in (("free_flight", "free_flight"), ("windows", "horizon_s")):
        if start in entry["starts"]:
            _check_word(key, tuple(entry), f"{place}: start '{start}' needs {key}")
    flight = entry.get("free_flight")
    if flight is not None:
        check_fields("free_flight", flight, f"{place}, free_flight")
        for key in ("position", "orientation"):
            _check_word(flight[key], channels, f"{place}, free_flight, {key}")
        flight = FreeFlight(**flight)
    return Evaluation(tuple(entry["starts"]), tuple(metrics), entry.get("horizon_s"), flight)


def _check_word(word: str, allowed: Sequence[str], where: str) -> None:
    if word not in allowed:
        raise ScenarioError(
            got=f"'{word}'" if allowed else "nothing",
            expected=f"one of {', '.join(allowed)}",
            where=where,
            next_step="Correct the scenario's YAML file; docs/scenarios.md explains every key.",
        )
