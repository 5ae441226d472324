"""The task of a scenario: `TASK` in the file task.py beside its YAML file, or the section `task` in it.

`TASK` is a `Task`, or a function that makes one for the scenario: so ranges and widths come from the model, and the
same file serves another robot.
"""

from __future__ import annotations

from dataclasses import replace

from rsr.common import ConfigError, ScenarioError
from rsr.scenarios.finding import TASK_FILE
from rsr.scenarios.python_beside import blamed, load_function
from rsr.scenarios.scenario import Scenario
from rsr.scenarios.tasks.guarded_task import guarded
from rsr.scenarios.tasks.state_columns import default_states
from rsr.scenarios.tasks.stated_task import stated_task
from rsr.scenarios.tasks.task import Task


def has_task(scenario: Scenario) -> bool:
    """True where a policy can be trained in the scenario."""
    return scenario.task is not None or (scenario.folder / TASK_FILE).is_file()


def task_of(scenario: Scenario) -> Task:
    """The task of a scenario.

    Raises:
        ConfigError: the scenario can be calibrated, but there is nothing to learn in it.
        ScenarioError: task.py raises, or has no `TASK` that is one.
    """
    if not has_task(scenario):
        raise ConfigError(
            got=f"scenario {scenario.name}, which has no task to learn",
            expected=f"a {TASK_FILE} beside its YAML file, with a `TASK`, or a section `task` in it",
            where="training",
            next_step="Write one (docs/scenarios.md). Without it the scenario can be calibrated: `rsr calibrate`, or a "
            "campaign on a lab's recordings, `rsr init --reality inbox`.",
        )
    if scenario.task is not None:
        task = guarded(stated_task(scenario, scenario.task), scenario.folder)
    else:
        task = _loaded(scenario)
    return task if task.states.names else replace(task, states=default_states(scenario, task))


def _loaded(scenario: Scenario) -> Task:
    where = f"task of {scenario.name}"
    task = load_function(scenario.folder, f"{TASK_FILE}:TASK", where)
    if callable(task):
        task = blamed(task, scenario.folder, where)(scenario)
    if not isinstance(task, Task):
        raise ScenarioError(
            got=f"a {type(task).__name__}",
            expected="a `rsr.Task`, or a function (scenario) -> `rsr.Task`",
            where=f"{TASK_FILE}: TASK",
            next_step="See docs/scenarios.md for what a task says.",
        )
    return guarded(replace(task, name=scenario.name), scenario.folder)
