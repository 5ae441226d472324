"""Robot problems: MJCF scenes, channels, tunable parameters, residuals, metrics. May import `rsr.sessions` only.

A scenario is a YAML file and an MJCF; `docs/scenarios.md` explains every key.
"""

from rsr.scenarios.loading import built_in_scenarios, load_scenario
from rsr.scenarios.metrics import Evaluation, Metric
from rsr.scenarios.parameters import Parameter, ParameterSpace
from rsr.scenarios.residuals import difference, residuals, rms
from rsr.scenarios.scenario import Observed, RecordedVelocity, Scenario
from rsr.scenarios.starts import Start, starts_of
from rsr.scenarios.structure import structured
from rsr.scenarios.tasks import task_named, task_of

__all__ = [
    "Evaluation",
    "Metric",
    "Observed",
    "Parameter",
    "ParameterSpace",
    "RecordedVelocity",
    "Scenario",
    "Start",
    "built_in_scenarios",
    "difference",
    "load_scenario",
    "residuals",
    "rms",
    "starts_of",
    "structured",
    "task_named",
    "task_of",
]
