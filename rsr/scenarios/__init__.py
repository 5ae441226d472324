"""Robot problems: MJCF scenes, channels, tunable parameters, residuals, metrics. May import `rsr.sessions` only.

A scenario is a YAML file and an MJCF; `docs/scenarios.md` explains every key.
"""

from rsr.scenarios.finding import built_in_scenarios, built_in_tasks, scenario_file
from rsr.scenarios.loading import load_scenario, scenario_of
from rsr.scenarios.metrics import ErrorMetric, Evaluation
from rsr.scenarios.observed import Observed, RecordedVelocity
from rsr.scenarios.parameters import Parameter, ParameterSpace
from rsr.scenarios.residuals import difference, residuals, rms
from rsr.scenarios.scenario import Scenario
from rsr.scenarios.starts import Start, starts_of
from rsr.scenarios.structure import structured
from rsr.scenarios.task import Channels, ObservationTerm, ProgressFigure, Starts, Task
from rsr.scenarios.tasks import has_task, task_of

__all__ = [
    "Channels",
    "ErrorMetric",
    "Evaluation",
    "ObservationTerm",
    "Observed",
    "Parameter",
    "ParameterSpace",
    "ProgressFigure",
    "RecordedVelocity",
    "Scenario",
    "Start",
    "Starts",
    "Task",
    "built_in_scenarios",
    "built_in_tasks",
    "difference",
    "has_task",
    "load_scenario",
    "residuals",
    "rms",
    "scenario_file",
    "scenario_of",
    "starts_of",
    "structured",
    "task_of",
]
