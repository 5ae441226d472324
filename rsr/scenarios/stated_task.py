"""A task said in YAML: common terms by name, which make the same `Task` as Python does.

    task:
      action: {step: 0.1}
      start: {turn: [-1.2, 1.2], lift: [-1.6, -0.6]}
      reach: {of: tool, within: 0.015}
      smoothness: {action: 0.02, joint_position: 0.01}

`reach` brings a site or a measured channel to a drawn goal, `push` a body that a site goes to first, `balance` keeps
a channel near a value, `track` near one that moves along a path; they add up. What a policy sees follows: all that is
measured, its velocity, the command, the last action, and what is left to each goal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from rsr.errors import ScenarioError
from rsr.outside import short
from rsr.scenarios.bindings import element_id
from rsr.scenarios.commands import reach_of, readings_at_rest, rest_command, stated_limits
from rsr.scenarios.kinematics import site_positions
from rsr.scenarios.residuals import difference
from rsr.scenarios.scenario import Scenario
from rsr.scenarios.state_columns import turns_all_around
from rsr.scenarios.task import (
    TIME,
    AbsoluteAction,
    ActionMeaning,
    Channels,
    DisplacementAction,
    ObservationTerm,
    ProgressFigure,
    Starts,
    Task,
    Value,
)
from rsr.scenarios.yaml_keys import check_fields
from rsr.sessions import Channel

_FREE, _BALL = mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_BALL
_KINDS = ("reach", "push", "balance", "track")


def channels_of_task(section: Mapping[str, Any], channels: Mapping[str, Any]) -> Iterator[Channel]:
    """Channels that a session of the task records besides: goals, and where sites are.

    Args:
        channels: the mapping of this name in the YAML file.
    """
    for kind in ("reach", "push", "track"):
        for entry in _entries(section, kind, "task"):
            of = str(entry["of"])
            declared = channels.get(of, {"columns": ("x", "y", "z"), "unit": "m", "frame": "world"})
            about = tuple(declared["columns"]), declared["unit"], declared["frame"]
            yield Channel(f"goal_{of}", *about)
            if kind == "track":
                yield Channel(f"pace_{of}", about[0], f"{about[1]}/s", about[2])
                yield Channel(f"phase_{of}", ("turns",), "1", "world")
            for site in {of, str(entry.get("by", of))} - set(channels):
                yield Channel(_place_of(site), ("x", "y", "z"), "m", "world")


def stated_task(scenario: Scenario, section: Mapping[str, Any]) -> Task:
    """The task that the section `task` of a scenario's YAML file says.

    Raises:
        ScenarioError: a name that the scenario does not have, or a number that does not fit; with its place.
    """
    where = f"{scenario.file.name if scenario.file else scenario.name}, task"
    check_fields("task", section, where)
    names = [(kind, entry) for kind in _KINDS for entry in _entries(section, kind, where)]
    if not names:
        raise _wrong("no term that says when it has succeeded", f"one of {', '.join(_KINDS)}", where)
    sites = {}
    aims = [_aim(scenario, kind, entry, sites, f"{where}, {kind}") for kind, entry in names]
    costs = list(_costs(scenario, section.get("smoothness", {}), f"{where}, smoothness"))
    action, posture = _action(scenario, section.get("action", {}), f"{where}, action"), reach_of(scenario).posture

    def places(channels: Channels) -> dict[str, np.ndarray]:
        leading = next(iter(channels.values())).shape[:-1]
        flat = {name: values.reshape(-1, values.shape[-1]) for name, values in channels.items()}
        count = int(np.prod(leading))
        found = site_positions(scenario.base_model, posture(flat, count), sites.values()) if sites else np.zeros(0)
        return {_place_of(name): found[:, index].reshape(*leading, 3) for index, name in enumerate(sites)}

    def derived(channels: Channels) -> dict[str, np.ndarray]:
        moving = [aim.path.now(channels) for aim in aims if aim.path is not None]
        return {name: values for each in (places(channels), *moving) for name, values in each.items()}

    def reward(channels: Channels) -> np.ndarray:
        return np.sum([aim.reward(channels) for aim in aims] + [-cost(channels) for cost in costs], axis=0)

    approached = [aim.approach for aim in aims if aim.approach is not None]
    return Task(
        terms=tuple(_observation(scenario, action, aims)),
        goal=tuple(aim.drawn for aim in aims if aim.drawn is not None),
        action=action,
        reset=_Reset(scenario, section.get("start", {}), aims, places if sites else None, f"{where}, start"),
        reward=reward,
        figures=tuple(figure for aim in aims for figure in aim.figures(prefixed=len(aims) > 1)),
        failure=_failure(scenario, section["limits"], f"{where}, limits") if "limits" in section else None,
        potential=(lambda channels: -np.sum([each(channels) for each in approached], axis=0)) if approached else None,
        derived=derived if sites or any(aim.path for aim in aims) else None,
        held_s=_held(scenario, section.get("held_s", 0.0), where),
        training=section.get("training", {}),
        name=scenario.name,
    )


# Terms that say what is to come where.


@dataclass(frozen=True)
class _Aim:
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
        return np.linalg.norm(self.to_go(channels), axis=-1)

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


def _aim(scenario: Scenario, kind: str, entry: Mapping[str, Any], sites: dict[str, int], where: str) -> _Aim:
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
        raise _wrong(f"near {short(entry['near'])}", f"{width} numbers, one a column of {of}", where)
    ends = [entry[key] for key in ("box_lower", "box_upper") if key in entry]
    if ends and (len(ends) == 1 or width != 3):
        raise _wrong("a box of goals", f"box_lower and box_upper, of what has 3 columns ({of} has {width})", where)
    box = np.array(ends, float) if ends else None
    approach = _apart(_with_site(scenario, str(entry["by"]), sites, where), value) if "by" in entry else None
    goal = None if kind == "balance" else f"goal_{of}"
    numbers = float(entry["within"]), float(entry.get("weight", 1.0)), entry.get("still")
    path = _path(entry, of, width, where) if kind == "track" else None
    if path is not None and about[0] == "quaternion":
        raise _wrong(f"a path of {of}", "a channel of positions, angles or readings: an orientation has no path", where)
    return _Aim(value, *about, goal, near, box, *numbers, approach, path)


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
        raise _wrong(", ".join(sines) or "no path", "either `through`, or `amplitude` (with around, phase)", where)
    if not sines:
        points = np.array(entry["through"], float)
        if points.shape[1] != width:
            raise _wrong(f"points of {points.shape[1]} numbers", f"{width} numbers, one a column of {of}", where)
        return _Path(of, float(entry["period_s"]), lambda turns: _between_points(points, turns))
    rows = {key: np.array(entry.get(key, 0.0), float) for key in ("around", "amplitude", "phase")}
    for key, row in rows.items():
        if row.size not in (1, width):
            raise _wrong(f"{key} {short(entry[key])}", f"{width} numbers, one a column of {of}", where)
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


def _held(scenario: Scenario, held_s: float, where: str) -> float:
    longest = scenario.episode_steps * scenario.control_dt_s
    if held_s > longest:
        raise _wrong(f"held_s {held_s:g}", f"at most {longest:g} s, the length of an episode", where)
    return float(held_s)


def _apart(one: str, other: str) -> Value:
    between = _between(one, other)
    return lambda channels: np.linalg.norm(between(channels), axis=-1)


def _with_site(scenario: Scenario, name: str, sites: dict[str, int], where: str) -> str:
    """The channel that says where something is: a measured one, or a site's, which joins those that are computed."""
    model = scenario.base_model
    known = [each.channel.name for each in scenario.observed]
    if name in known:
        return name
    named = [model.site(index).name for index in range(model.nsite) if model.site(index).name]
    if name not in named:
        expected = f"a site ({', '.join(named) or 'the MJCF has none'}) or a measured channel ({', '.join(known)})"
        raise _wrong(f"'{name}'", expected, where)
    sites[name] = element_id(model, "site", name, where)
    return _place_of(name)


def _place_of(site: str) -> str:
    return f"{site}_position"


def _joint_channel(scenario: Scenario, where: str) -> str:
    found = [each.channel.name for each in scenario.observed if each.qpos and each.kind != "quaternion"]
    if not found:
        raise _wrong("a site", "a measured channel: no joint is measured from which the site's place follows", where)
    return found[0]


# What the policy sees and does, where episodes begin, what costs, when it is over.


def _observation(scenario: Scenario, action: ActionMeaning, aims: list[_Aim]) -> Iterator[ObservationTerm]:
    for each in scenario.observed:
        channel, named, velocity = each.channel, (each.channel.name,), f"velocity:{each.channel.name}"
        if each.kind == "angle" and turns_all_around(scenario, each):
            directions = _directions(channel.name)
            yield ObservationTerm(
                f"directions of {channel.name}", 2 * channel.width, "1", channel.frame, named, directions
            )
        else:
            yield ObservationTerm(channel.name, channel.width, channel.unit, channel.frame, named)
        yield ObservationTerm(velocity, each.tangent_width, f"{channel.unit}/s", channel.frame, (velocity,))
    yield _command(scenario)
    yield ObservationTerm("last action", action.size, "1", "joint", ("action",))
    for aim in aims:
        size = 3 if aim.kind == "quaternion" else len(aim.columns)
        named = (aim.value,) if aim.goal is None else (aim.value, aim.goal)
        yield ObservationTerm(f"left of {aim.value}", size, aim.unit, aim.frame, named, aim.to_go)
        if aim.path is not None:
            pace = f"pace_{aim.path.of}"
            yield ObservationTerm(f"speed of {aim.goal}", size, f"{aim.unit}/s", aim.frame, (pace,))


def _command(scenario: Scenario) -> ObservationTerm:
    """The command in force; a setpoint by how far it is ahead of what is measured."""
    command = next(channel for channel in scenario.channels if channel.name == scenario.command)
    about = (command.width, command.unit, command.frame)
    for each in scenario.observed:
        if (each.channel.columns, each.channel.unit) == (command.columns, command.unit):
            ahead = _between(command.name, each.channel.name)
            return ObservationTerm(f"{command.name} ahead", *about, (command.name, each.channel.name), ahead)
    return ObservationTerm(command.name, *about, (command.name,))


def _between(one: str, other: str) -> Value:
    return lambda channels: channels[one] - channels[other]


def _directions(name: str) -> Value:
    return lambda channels: np.concatenate([np.sin(channels[name]), np.cos(channels[name])], axis=-1)


def _action(scenario: Scenario, entry: Any, where: str) -> ActionMeaning:
    """A share of the commands' range, or with `step` a change of the command in force."""
    check_fields("action", entry, where)
    limits = stated_limits(scenario)
    lower, upper = np.array(limits.command_lower), np.array(limits.command_upper)
    if not np.isfinite([lower, upper]).all():
        got, expected = (
            "commands without bounds",
            "`ctrlrange` in the MJCF, or command_lower and command_upper in `limits`",
        )
        raise _wrong(got, expected, where)
    bounds = tuple(lower.tolist()), tuple(upper.tolist())
    if "step" not in entry:
        return AbsoluteAction(*bounds)
    if np.size(entry["step"]) not in (1, len(lower)):
        raise _wrong(f"step {short(entry['step'])}", f"a number, or {len(lower)}, one a command", where)
    step = np.broadcast_to(np.array(entry["step"], float), np.shape(lower))
    return DisplacementAction(tuple(step.tolist()), *bounds)


class _Reset:
    """Draws starts and goals, at rest.

    Args:
        entry: joint -> the two numbers between which it begins; a free joint or its body -> two points.
    """

    def __init__(
        self,
        scenario: Scenario,
        entry: Mapping[str, Any],
        aims: list[_Aim],
        derived: Callable[[Channels], dict[str, np.ndarray]] | None,
        where: str,
    ) -> None:
        model = scenario.base_model
        self._scenario, self._aims, self._derived = scenario, aims, derived
        self._lower = np.array(model.key_qpos[0] if model.nkey else model.qpos0)
        self._upper = self._lower.copy()
        for name, ends in entry.items():
            places = _coordinates(model, str(name), where)
            if np.shape(ends) != ((2,) if len(places) == 1 else (2, 3)):
                expected = "two numbers, from and to" if len(places) == 1 else "two points, from and to"
                raise _wrong(f"{name}: {short(ends)}", expected, where)
            self._lower[places], self._upper[places] = ends

    def __call__(self, rng: np.random.Generator, count: int) -> Starts:
        start, other = rng.uniform(self._lower, self._upper, (2, count, len(self._lower)))
        there = self._seen(other) if any(aim.box is None for aim in self._aims) else {}
        return Starts(start, {aim.drawn: self._goal(aim, rng, there, count) for aim in self._aims if aim.drawn})

    def _goal(self, aim: _Aim, rng: np.random.Generator, there: Channels, count: int) -> np.ndarray:
        if aim.path is not None:
            return rng.uniform(0.0, 1.0, (count, 1))
        return there[aim.value] if aim.box is None else rng.uniform(aim.box[0], aim.box[1], (count, 3))

    def _seen(self, qpos: np.ndarray) -> Channels:
        model = self._scenario.base_model
        sensed = readings_at_rest(model, qpos, rest_command(model, qpos)) if self._scenario.has_sensors else None
        measured = self._scenario.measure(np.pad(qpos, ((0, 0), (0, model.nv))), sensed)
        return {**measured, **(self._derived(measured) if self._derived else {})}


def _coordinates(model: mujoco.MjModel, name: str, where: str) -> list[int]:
    """Where a joint, or the free joint of a body, lies in qpos; of a free one its position."""
    for joint in range(model.njnt):
        body = model.body(model.jnt_bodyid[joint]).name
        free = model.jnt_type[joint] == _FREE
        if name == model.joint(joint).name or (free and name == body):
            first = int(model.jnt_qposadr[joint])
            return list(range(first, first + 3)) if free else [first]
    known = [model.joint(joint).name for joint in range(model.njnt) if model.jnt_type[joint] != _BALL]
    raise _wrong(f"'{name}'", f"one of {', '.join(filter(None, known))}, or a free body", where)


def _costs(scenario: Scenario, entry: Mapping[str, Any], where: str) -> Iterator[Value]:
    """Mean square of the action; speed of measured channels."""
    measured = [each.channel.name for each in scenario.observed]
    for name, weight in entry.items():
        if name not in (*measured, "action"):
            raise _wrong(f"'{name}'", f"action, or one of {', '.join(measured)}", where)
        if not isinstance(weight, int | float) or isinstance(weight, bool) or weight < 0:
            raise _wrong(f"{name}: {short(weight)}", "a number from 0, its weight in the reward", where)
        yield _effort(weight) if name == "action" else _speed(f"velocity:{name}", weight)


def _effort(weight: float) -> Value:
    return lambda channels: weight * np.square(channels["action"]).mean(axis=-1)


def _speed(velocity: str, weight: float) -> Value:
    return lambda channels: weight * np.linalg.norm(channels[velocity], axis=-1)


def _failure(scenario: Scenario, entry: Mapping[str, Any], where: str) -> Value:
    """True where a measured channel is out of its limits."""
    widths = {each.channel.name: each.channel.width for each in scenario.observed}
    bounds = {}
    for name, ends in entry.items():
        if name not in widths:
            raise _wrong(f"'{name}'", f"one of {', '.join(widths)}", where)
        if np.shape(ends) not in ((2,), (2, widths[name])):
            raise _wrong(
                f"{name}: {short(ends)}", f"two numbers, or two lists of {widths[name]}: lower and upper", where
            )
        bounds[name] = np.array(ends, float)

    def out(channels: Channels) -> np.ndarray:
        outside = [(channels[name] < low) | (channels[name] > high) for name, (low, high) in bounds.items()]
        return np.any(np.concatenate(outside, axis=-1), axis=-1)

    return out


def _entries(section: Mapping[str, Any], kind: str, where: str) -> list[Mapping[str, Any]]:
    """The terms of a kind: one, or a list of them."""
    given = section.get(kind, [])
    return [check_fields(kind, entry, f"{where}, {kind}") for entry in (given if isinstance(given, list) else [given])]


def _wrong(got: str, expected: str, where: str) -> ScenarioError:
    next_step = "Correct the section `task` of the scenario's YAML file; docs/scenarios.md explains it."
    return ScenarioError(got=got, expected=expected, where=where, next_step=next_step)
