"""Robot problems: MJCF scenes, channels, tunable parameters, residuals. May import `rsr.sessions` only."""

from rsr.scenarios.loading import built_in_scenarios, load_scenario
from rsr.scenarios.parameters import Parameter, ParameterSpace
from rsr.scenarios.residuals import difference, residuals, rms
from rsr.scenarios.scenario import Observed, Scenario

__all__ = [
    "Observed",
    "Parameter",
    "ParameterSpace",
    "Scenario",
    "built_in_scenarios",
    "difference",
    "load_scenario",
    "residuals",
    "rms",
]
