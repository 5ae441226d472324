"""The real steps with the least that they can do with: a loop of seconds, to try what goes on around it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from unittest import mock

from rsr.calibration import calibrator
from rsr.calibration.fitting import Effort
from rsr.common.progress import Advance
from rsr.config import InfoGapConfig, LoopConfig, RealityConfig, RetrainConfig, StartConfig, TuneConfig
from rsr.pipelines import TABLE, WITHOUT_POLICY, StepTable, methods
from rsr.pipelines.loop.stages import tune as real_tune
from rsr.workspace import Workspace

SMALL = LoopConfig(
    reality=RealityConfig(episodes=8),
    start=StartConfig(train_steps=1),
    tune=TuneConfig(method="cmaes", fit_episodes=3),
    infogap=InfoGapConfig(transitions=100),
    retrain=RetrainConfig(train_steps=1),
)
"""Training comes to one rollout."""
_EFFORT = Effort(budget=60, window_steps=8, max_windows=8, threads=1)


def tune(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """The step of this name with a twentieth of the search, for which `params.yaml` has no setting."""
    with mock.patch.object(methods, "calibrator", partial(calibrator, effort=_EFFORT)):
        real_tune(workspace, iteration, advance)


def _small(table: StepTable) -> StepTable:
    return replace(
        table, stages=tuple(replace(s, function="small_steps:tune") if s.name == "tune" else s for s in table.stages)
    )


SMALL_TABLE, SMALL_WITHOUT_POLICY = "small_steps:STEPS", "small_steps:STEPS_WITHOUT_POLICY"
STEPS, STEPS_WITHOUT_POLICY = _small(TABLE), _small(WITHOUT_POLICY)
