"""A task's functions, guarded: what raises, has a wrong shape or is not finite is an error that names its line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import wraps
from inspect import unwrap
from pathlib import Path
from typing import Any

import numpy as np

from rsr.common import ScenarioError
from rsr.scenarios.python_beside import blamed
from rsr.scenarios.tasks.task import Channels, ObservationTerm, ProgressFigure, Task, Value


def guarded(task: Task, folder: Path) -> Task:
    """The same task; its functions tell where they are wrong.

    Args:
        folder: of the scenario, whose Python is named in errors.
    """
    where = f"task of {task.name}"

    def plain(function: Callable[..., Any] | None, what: str) -> Any:
        return None if function is None else blamed(function, folder, f"{where}, {what}")

    def value(function: Value | None, what: str, width: int | None = None) -> Any:
        return None if function is None else _checked(plain(function, what), f"{where}, {what}", width)

    def term(each: ObservationTerm) -> ObservationTerm:
        return replace(each, compute=value(each.compute, f"observation term {each.name}", each.size))

    def figure(each: ProgressFigure) -> ProgressFigure:
        return replace(each, compute=value(each.compute, f"figure {each.name}"))

    states, plane, head = task.states, task.plane, task.head
    return replace(
        task,
        terms=tuple(map(term, task.terms)),
        figures=tuple(map(figure, task.figures)),
        reset=plain(task.reset, "reset"),
        reward=value(task.reward, "reward"),
        success=value(task.success, "success"),
        failure=value(task.failure, "failure"),
        potential=value(task.potential, "potential"),
        observation=value(task.observation, "observation", task.observation_size),
        derived=plain(task.derived, "derived"),
        instruction=plain(task.instruction, "instruction"),
        states=replace(states, compute=value(states.compute, "states", len(states.names))) if states.names else states,
        plane=plane and replace(plane, compute=value(plane.compute, "plane", 2)),
        head=head and replace(head, act=plain(head.act, "head")),
    )


def _checked(function: Value, where: str, width: int | None) -> Value:
    """The function, whose values must be [...], or [..., width], and finite where all channels are."""

    @wraps(function)
    def call(channels: Channels) -> np.ndarray:
        try:
            values = np.asarray(function(channels))
        except ScenarioError as error:
            raise _named(error, channels) from error
        leading = next(iter(channels.values())).shape[:-1]
        expected = leading if width is None else (*leading, width)
        if values.shape != expected:
            raise _wrong(
                f"an array of shape {list(values.shape)}",
                f"{list(expected)}, as the channels are {[*leading, 'width']}",
                f"{where}{_line(function)}",
                "Compute along the last axis alone: channels are batches (docs/scenarios.md).",
            )
        if not np.isfinite(values).all() and _all_finite(channels.values()):  # else the simulation has diverged
            raise _wrong(
                f"{values[~np.isfinite(values)][0]} from finite channels",
                "finite numbers",
                f"{where}{_line(function)}",
                "Guard divisions, roots and logarithms there.",
            )
        return values

    return call


def _named(error: ScenarioError, channels: Channels) -> ScenarioError:
    """The error; where a channel was asked for that there is not, with those that there are."""
    cause = error.__cause__
    if not isinstance(cause, KeyError) or cause.args[0] in channels:
        return error
    next_step = "Correct the name there; `velocity:NAME` is there where an observation term lists it."
    return _wrong(f"channel {cause.args[0]!r}", f"one of {', '.join(channels)}", error.where, next_step)


def _all_finite(arrays: Iterable[np.ndarray]) -> bool:
    return all(bool(np.isfinite(each).all()) for each in arrays)


def _line(function: Callable[..., Any]) -> str:
    """Where a function is written, as errors say it: `: task.py, line 12`."""
    code = getattr(unwrap(function), "__code__", None)
    return "" if code is None else f": {Path(code.co_filename).name}, line {code.co_firstlineno}"


def _wrong(got: str, expected: str, where: str, next_step: str) -> ScenarioError:
    return ScenarioError(got=got, expected=expected, where=where, next_step=next_step)
