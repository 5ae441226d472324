"""A task is tried on a few starts before anything is trained: what does not fit its scenario is said there."""

from __future__ import annotations

from collections.abc import Iterable

import mujoco
import numpy as np

from rsr.common import ScenarioError, generator
from rsr.environments.measuring import at_rest
from rsr.scenarios import VELOCITY, Channels, Scenario, Starts, Task, limits_of, rest_command, task_of
from rsr.simulators import always_inside

_COUNT = 8
_APART = "Begin episodes with the bodies apart; a position is that of a body's frame, in m."
_TOLERANCE = 1e-6
"""rad or m, by which a start may be out of a joint's range: numbers in files are rounded."""


def tried_task(scenario: Scenario) -> Task:
    """The scenario's task, once every function of it was called on a few starts.

    Raises:
        ConfigError: the scenario has none.
        ScenarioError: it names what the scenario does not have, or a function raises, has a wrong shape or no number.
    """
    task = task_of(scenario)
    where = f"task of {scenario.name}"
    _check_names(scenario, task, where)
    _check_action(scenario, task, where)
    starts = task.reset(generator(0, "trial of a task"), _COUNT)
    _check_starts(scenario, task, starts, f"{where}, reset")
    channels = at_rest(scenario, task, starts)
    _check_terms(task, tuple(channels), where)
    seen = task.observe(channels)
    functions = [task.reward, task.succeeded, *(each.compute for each in task.figures), task.states.compute]
    functions += [each for each in (task.failure, task.potential) if each is not None]
    for function in functions:
        function(channels)
    _check_beginning(scenario, task, starts, channels, where)
    action = task.act(seen, np.zeros((_COUNT, task.chosen_size)))
    if action.shape != (_COUNT, task.action.size):
        got, expected = f"actions of shape {list(action.shape)}", f"{[_COUNT, task.action.size]}"
        raise _wrong(got, expected, f"{where}, head", "Let `act` return one row an episode, as wide as `action`.")
    return task


def _check_names(scenario: Scenario, task: Task, where: str) -> None:
    names = [channel.name for channel in scenario.channels]
    measured = [observed.channel.name for observed in scenario.observed]
    for name in task.goal:
        if name not in names:
            next_step = "Declare it under `channels:` (columns, unit, frame): a session records it."
            raise _wrong(f"'{name}'", _one_of(names), f"{where}, goal", next_step)
    for figure in task.figures:
        if figure.channel not in measured:
            next_step = "Name the measured channel whose noise is the figure's."
            raise _wrong(f"'{figure.channel}'", _one_of(measured), f"{where}, figure {figure.name}", next_step)
    if task.success is None and not any(figure.tolerance for figure in task.figures):
        got, expected = "neither `success` nor a figure with a tolerance", "one of the two"
        raise _wrong(got, expected, where, "Give the figure that decides a tolerance.")


def _check_terms(task: Task, known: tuple[str, ...], where: str) -> None:
    for term in task.terms:
        for name in term.channels:
            if name not in known:
                next_step = f"Name channels, what `derived` computes, or `{VELOCITY}` and a measured channel."
                raise _wrong(f"'{name}'", _one_of(known), f"{where}, observation term {term.name}", next_step)


def _one_of(names: Iterable[str]) -> str:
    return f"one of {', '.join(names)}"


def _check_action(scenario: Scenario, task: Task, where: str) -> None:
    model = scenario.base_model
    columns = [model.actuator(index).name or str(index) for index in range(model.nu)]
    wide = {name: len(getattr(task.action, name, ()) or ()) for name in ("scale", "lower", "upper", "lead")}
    for name, width in wide.items():
        if width and width != model.nu:
            next_step = "One number an actuator, in the MJCF's order."
            expected = f"{model.nu}, one a command ({', '.join(columns)})"
            raise _wrong(f"{width} numbers", expected, f"{where}, action: `{name}`", next_step)


def _check_starts(scenario: Scenario, task: Task, starts: Starts, where: str) -> None:
    model = scenario.base_model
    if not isinstance(starts, Starts):
        raise _wrong(f"a {type(starts).__name__}", "`rsr.Starts`", where, "Return rsr.Starts(qpos, goal).")
    shapes = {"qpos": (starts.qpos, model.nq)}
    if starts.command is not None:
        shapes["command"] = starts.command, model.nu
    widths = {channel.name: channel.width for channel in scenario.channels}
    if set(starts.goal) != set(task.goal):
        got, expected = (", ".join(goals) or "none" for goals in (starts.goal, task.goal))
        raise _wrong(f"goals {got}", f"{expected}, as `goal` lists them", where, "Return one array for each of them.")
    shapes |= {name: (values, widths[name]) for name, values in starts.goal.items()}
    for name, (values, width) in shapes.items():
        if np.shape(values) != (_COUNT, width):
            got, expected = f"{name} of shape {list(np.shape(values))}", f"{[_COUNT, width]} for {_COUNT} episodes"
            raise _wrong(got, expected, where, "One row an episode.")
        if not np.isfinite(values).all():
            raise _wrong(f"{name} that is not finite", "finite numbers", where, "Correct the draw.")
    _check_ranges(model, starts.qpos, where)
    if overlap := always_inside(scenario, starts.qpos):
        raise _wrong(f"{overlap} at every start", "bodies that touch and do not penetrate", where, _APART)


def _check_beginning(scenario: Scenario, task: Task, starts: Starts, channels: Channels, where: str) -> None:
    """Refuse a task that is over before it begins, or in which the limits never let go of the robot."""
    if task.failure is not None and np.all(task.failure(channels)):
        got, expected = "a task that has failed at every start", "starts from which it can be done"
        raise _wrong(got, expected, f"{where}, failure", "Widen its bounds, or begin within them.")
    # A section `task` calls the goal of a channel so; in Python it may be anything.
    for goal in task.goal if scenario.task is not None else ():
        of = goal.removeprefix("goal_")
        if task.failure is not None and of in channels and np.all(task.failure({**channels, of: channels[goal]})):
            got, expected = f"goals of {of} where the task has failed", "goals within its limits"
            raise _wrong(got, expected, f"{where}, failure", "Widen the limits, or draw goals within them.")
    limits = limits_of(scenario, task)
    command = rest_command(scenario.base_model, starts.qpos) if starts.command is None else starts.command
    for reason, held in limits.holds(command, channels).items():
        if np.all(held):
            got = f"limits that hold the robot at every start: {limits.words[reason]}"
            raise _wrong(got, "starts within the limits", f"{where}, limits", "Widen them, or begin within them.")


def _check_ranges(model: mujoco.MjModel, qpos: np.ndarray, where: str) -> None:
    for joint in range(model.njnt):
        if not model.jnt_limited[joint] or model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_BALL:
            continue
        (lower, upper), values = model.jnt_range[joint], qpos[:, model.jnt_qposadr[joint]]
        off = values[(values < lower - _TOLERANCE) | (values > upper + _TOLERANCE)]
        if len(off):
            got = f"joint {model.joint(joint).name or joint} at {off[0]:.3g}"
            expected = f"{lower:.3g} to {upper:.3g}, its range in the MJCF"
            raise _wrong(got, expected, where, "Begin episodes within the ranges of the joints.")


def _wrong(got: str, expected: str, where: str, next_step: str) -> ScenarioError:
    return ScenarioError(got=got, expected=expected, where=where, next_step=next_step)
