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
from typing import Any

import mujoco
import numpy as np

from rsr.common import short
from rsr.scenarios.motion.commands import reach_of, readings_at_rest, rest_command, stated_limits
from rsr.scenarios.motion.kinematics import site_positions
from rsr.scenarios.scenario import Scenario
from rsr.scenarios.tasks.state_columns import turns_all_around
from rsr.scenarios.tasks.stated_aims import Aim, aim_of, between, place_of, wrong_task
from rsr.scenarios.tasks.task import (
    AbsoluteAction,
    ActionMeaning,
    Channels,
    DisplacementAction,
    ObservationTerm,
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
                yield Channel(place_of(site), ("x", "y", "z"), "m", "world")


def stated_task(scenario: Scenario, section: Mapping[str, Any]) -> Task:
    """The task that the section `task` of a scenario's YAML file says.

    Raises:
        ScenarioError: a name that the scenario does not have, or a number that does not fit; with its place.
    """
    where = f"{scenario.file.name if scenario.file else scenario.name}, task"
    check_fields("task", section, where)
    names = [(kind, entry) for kind in _KINDS for entry in _entries(section, kind, where)]
    if not names:
        raise wrong_task("no term that says when it has succeeded", f"one of {', '.join(_KINDS)}", where)
    sites = {}
    aims = [aim_of(scenario, kind, entry, sites, f"{where}, {kind}") for kind, entry in names]
    costs = list(_costs(scenario, section.get("smoothness", {}), f"{where}, smoothness"))
    action, posture = _action(scenario, section.get("action", {}), f"{where}, action"), reach_of(scenario).posture

    def places(channels: Channels) -> dict[str, np.ndarray]:
        leading = next(iter(channels.values())).shape[:-1]
        flat = {name: values.reshape(-1, values.shape[-1]) for name, values in channels.items()}
        count = int(np.prod(leading))
        found = site_positions(scenario.base_model, posture(flat, count), sites.values()) if sites else np.zeros(0)
        return {place_of(name): found[:, index].reshape(*leading, 3) for index, name in enumerate(sites)}

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


def _held(scenario: Scenario, held_s: float, where: str) -> float:
    longest = scenario.episode_steps * scenario.control_dt_s
    if held_s > longest:
        raise wrong_task(f"held_s {held_s:g}", f"at most {longest:g} s, the length of an episode", where)
    return float(held_s)


# What the policy sees and does, where episodes begin, what costs, when it is over.


def _observation(scenario: Scenario, action: ActionMeaning, aims: list[Aim]) -> Iterator[ObservationTerm]:
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
            ahead = between(command.name, each.channel.name)
            return ObservationTerm(f"{command.name} ahead", *about, (command.name, each.channel.name), ahead)
    return ObservationTerm(command.name, *about, (command.name,))


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
        raise wrong_task(got, expected, where)
    bounds = tuple(lower.tolist()), tuple(upper.tolist())
    if "step" not in entry:
        return AbsoluteAction(*bounds)
    if np.size(entry["step"]) not in (1, len(lower)):
        raise wrong_task(f"step {short(entry['step'])}", f"a number, or {len(lower)}, one a command", where)
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
        aims: list[Aim],
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
                raise wrong_task(f"{name}: {short(ends)}", expected, where)
            self._lower[places], self._upper[places] = ends

    def __call__(self, rng: np.random.Generator, count: int) -> Starts:
        start, other = rng.uniform(self._lower, self._upper, (2, count, len(self._lower)))
        there = self._seen(other) if any(aim.box is None for aim in self._aims) else {}
        return Starts(start, {aim.drawn: self._goal(aim, rng, there, count) for aim in self._aims if aim.drawn})

    def _goal(self, aim: Aim, rng: np.random.Generator, there: Channels, count: int) -> np.ndarray:
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
    raise wrong_task(f"'{name}'", f"one of {', '.join(filter(None, known))}, or a free body", where)


def _costs(scenario: Scenario, entry: Mapping[str, Any], where: str) -> Iterator[Value]:
    """Mean square of the action; speed of measured channels."""
    measured = [each.channel.name for each in scenario.observed]
    for name, weight in entry.items():
        if name not in (*measured, "action"):
            raise wrong_task(f"'{name}'", f"action, or one of {', '.join(measured)}", where)
        if not isinstance(weight, int | float) or isinstance(weight, bool) or weight < 0:
            raise wrong_task(f"{name}: {short(weight)}", "a number from 0, its weight in the reward", where)
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
            raise wrong_task(f"'{name}'", f"one of {', '.join(widths)}", where)
        if np.shape(ends) not in ((2,), (2, widths[name])):
            raise wrong_task(
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
