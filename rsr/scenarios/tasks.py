"""Which scenarios come with a task for a policy, and which task."""

from __future__ import annotations

from rsr.errors import ConfigError
from rsr.scenarios.push_cube.task import TASK as PUSH_CUBE
from rsr.scenarios.push_t.task import TASK as PUSH_T
from rsr.scenarios.pushing import Task
from rsr.scenarios.scenario import Scenario

_TASKS = {task.name: task for task in (PUSH_CUBE, PUSH_T)}


def task_of(scenario: Scenario) -> Task:
    """The task of a scenario.

    Raises:
        ConfigError: the scenario can be calibrated, but there is nothing to learn in it.
    """
    return task_named(scenario.name)


def task_named(name: str) -> Task:
    """The task of the scenario of this name; see `task_of`."""
    if name not in _TASKS:
        raise ConfigError(
            got=f"scenario {name}, which has no task to learn",
            expected=f"one of {', '.join(_TASKS)}",
            where="training",
            next_step="Choose one of these; the others can be calibrated (`rsr calibrate`), not yet trained in.",
        )
    return _TASKS[name]
