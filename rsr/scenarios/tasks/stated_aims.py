"""What a task said in YAML brings where: to a drawn goal, near a value, or along a path that moves on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rsr.common import ScenarioError, lengths, short
from rsr.scenarios.channels.differences import difference
from rsr.scenarios.parameters.bindings import element_id
from rsr.scenarios.scenario import Scenario
from rsr.scenarios.tasks.task import TIME, Channels, ProgressFigure, Value


@dataclass(frozen=True)
class Aim:
    """What shall be near something: a goal that is drawn, or numbers that stay.

    Args:
        value: the channel that shows it.
        kind: how differences of it are taken.
        measured: the channel whose noise is its figures'.
        goal: the channel that says where to; None where `near` does.
        box: of drawn goals; None: where another drawn start would have it.
        still: speed of `measured` below which it stays; None where that does not decide.
        approach: distance of what pushes it.
        path: along which the goal moves.
    """

    value: str
    kind: Any
    columns: tuple[str, ...]
    unit: str
    frame: str
    measured: str
    goal: str | None
    near: np.ndarray
    box: np.ndarray | None
    within: float
    weight: float
    still: float | None
    approach: Value | None
    path: _Path | None = None

    @property
    def drawn(self) -> str | None:
        """The channel that an episode's start draws; of a path where on it the episode begins."""
        return self.goal if self.path is None else self.path.phase

    def to_go(self, channels: Channels) -> np.ndarray:
        """What is left [..., C], as a rotation vector of orientations."""
        here = channels[self.value]
        there = np.broadcast_to(self.near, here.shape) if self.goal is None else channels[self.goal]
        return difference(self.kind, here, there)

    def distance(self, channels: Channels) -> np.ndarray:
        return lengths(self.to_go(channels))

    def reward(self, channels: Channels) -> np.ndarray:
        """Falls with the distance; a bonus within twice the tolerance, or so, pays for the last of it."""
        gap = self.distance(channels)
        return self.weight * (0.5 * np.exp(-np.square(gap / (2 * self.within))) - gap)

    def figures(self, prefixed: bool) -> Iterator[ProgressFigure]:
        own = f"{self.value} " if prefixed else ""
        names = self.columns if self.kind != "quaternion" else ("turn x", "turn y", "turn z")
        for index, column in enumerate(names):
            yield ProgressFigure(f"{own}{column}", self._column(index), self.unit, self.measured)
        yield ProgressFigure(f"{own}distance", self.distance, self.unit, self.measured, self.within, axis=False)
        if self.still is not None:
            velocity = f"velocity:{self.measured}"
            yield ProgressFigure(
                f"{own}speed",
                lambda channels: np.linalg.norm(channels[velocity], axis=-1),
                f"{self.unit}/s",
                self.measured,
                self.still,
                axis=False,
            )

    def _column(self, index: int) -> Value:
        return lambda channels: -self.to_go(channels)[..., index]


def aim_of(scenario: Scenario, kind: str, entry: Mapping[str, Any], sites: dict[str, int], where: str) -> Aim:
    of, observed = str(entry["of"]), {each.channel.name: each for each in scenario.observed}
    if of in observed:
        shown, value = observed[of], of
        about = (shown.kind, shown.channel.columns, shown.channel.unit, shown.channel.frame, of)
        width = shown.channel.width
    else:
        value, width = _with_site(scenario, of, sites, where), 3
        about = ("linear", ("x", "y", "z"), "m", "world", _joint_channel(scenario, where))
    near = np.array(entry.get("near", np.zeros(width)), float)
    if near.size not in (1, width):
        raise wrong_task(f"near {short(entry['near'])}", f"{width} numbers, one a column of {of}", where)
    ends = [entry[key] for key in ("box_lower", "box_upper") if key in entry]
    if ends and (len(ends) == 1 or width != 3):
        raise wrong_task("a box of goals", f"box_lower and box_upper, of what has 3 columns ({of} has {width})", where)
    box = np.array(ends, float) if ends else None
    approach = _apart(_with_site(scenario, str(entry["by"]), sites, where), value) if "by" in entry else None
    goal = None if kind == "balance" else f"goal_{of}"
    numbers = float(entry["within"]), float(entry.get("weight", 1.0)), entry.get("still")
    path = _path(entry, of, width, where) if kind == "track" else None
    if path is not None and about[0] == "quaternion":
        raise wrong_task(
            f"a path of {of}", "a channel of positions, angles or readings: an orientation has no path", where
        )
    return Aim(value, *about, goal, near, box, *numbers, approach, path)


@dataclass(frozen=True)
class _Path:
    """A goal that moves: round and round, once in a period.

    Args:
        of: what is to follow it.
        place: turns [...] -> where the goal is [..., C].
    """

    of: str
    period_s: float
    place: Callable[[np.ndarray], np.ndarray]

    @property
    def phase(self) -> str:
        return f"phase_{self.of}"

    def now(self, channels: Channels) -> dict[str, np.ndarray]:
        """Goal and its speed, where it is said since when it moves; a recording has them as its channels."""
        if self.phase not in channels or TIME not in channels:
            return {}
        turns = (channels[self.phase] + channels[TIME] / self.period_s)[..., 0]
        pace = (self.place(turns + _TURN) - self.place(turns - _TURN)) / (2 * _TURN * self.period_s)
        return {f"goal_{self.of}": self.place(turns), f"pace_{self.of}": pace}


_TURN = 1e-4  # of a period: half of the difference by which the speed along a path is taken


def _path(entry: Mapping[str, Any], of: str, width: int, where: str) -> _Path:
    """A path of sines about a middle, or through points in turn."""
    sines = [key for key in ("around", "amplitude", "phase") if key in entry]
    if ("through" in entry) == bool(sines) or (sines and "amplitude" not in sines):
        raise wrong_task(", ".join(sines) or "no path", "either `through`, or `amplitude` (with around, phase)", where)
    if not sines:
        points = np.array(entry["through"], float)
        if points.shape[1] != width:
            raise wrong_task(f"points of {points.shape[1]} numbers", f"{width} numbers, one a column of {of}", where)
        return _Path(of, float(entry["period_s"]), lambda turns: _between_points(points, turns))
    rows = {key: np.array(entry.get(key, 0.0), float) for key in ("around", "amplitude", "phase")}
    for key, row in rows.items():
        if row.size not in (1, width):
            raise wrong_task(f"{key} {short(entry[key])}", f"{width} numbers, one a column of {of}", where)
    around, amplitude, phase = (np.broadcast_to(row, width) for row in rows.values())
    return _Path(
        of,
        float(entry["period_s"]),
        lambda turns: around + amplitude * np.sin(2 * np.pi * (turns[..., None] + phase)),
    )


def _between_points(points: np.ndarray, turns: np.ndarray) -> np.ndarray:
    """Places [..., C] on the straight lines from point to point, and back to the first, each in the same time."""
    along = np.mod(turns, 1.0) * len(points)
    last = np.floor(along).astype(int) % len(points)
    share = (along - np.floor(along))[..., None]
    return (1.0 - share) * points[last] + share * points[(last + 1) % len(points)]


def _apart(one: str, other: str) -> Value:
    way = between(one, other)
    return lambda channels: lengths(way(channels))


def _with_site(scenario: Scenario, name: str, sites: dict[str, int], where: str) -> str:
    """The channel that says where something is: a measured one, or a site's, which joins those that are computed."""
    model = scenario.base_model
    known = [each.channel.name for each in scenario.observed]
    if name in known:
        return name
    named = [model.site(index).name for index in range(model.nsite) if model.site(index).name]
    if name not in named:
        expected = f"a site ({', '.join(named) or 'the MJCF has none'}) or a measured channel ({', '.join(known)})"
        raise wrong_task(f"'{name}'", expected, where)
    sites[name] = element_id(model, "site", name, where)
    return place_of(name)


def place_of(site: str) -> str:
    return f"{site}_position"


def _joint_channel(scenario: Scenario, where: str) -> str:
    found = [each.channel.name for each in scenario.observed if each.qpos and each.kind != "quaternion"]
    if not found:
        raise wrong_task(
            "a site", "a measured channel: no joint is measured from which the site's place follows", where
        )
    return found[0]


def between(one: str, other: str) -> Value:
    return lambda channels: channels[one] - channels[other]


def wrong_task(got: str, expected: str, where: str) -> ScenarioError:
    next_step = "Correct the section `task` of the scenario's YAML file; docs/scenarios.md explains it."
    return ScenarioError(got=got, expected=expected, where=where, next_step=next_step)
