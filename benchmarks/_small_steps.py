"""The real steps with the least that they can do with: a loop of seconds, for benchmarks of what goes on around it."""

from __future__ import annotations

from dataclasses import replace

from rsr.calibration import calibrator, load_calibration, next_prior, save_calibration
from rsr.calibration.fitting import Effort
from rsr.config import InfoGapConfig, LoopConfig, RealityConfig, RetrainConfig, StartConfig, TuneConfig
from rsr.progress import Advance
from rsr.randomness import derive_seed
from rsr.scenarios import load_scenario
from rsr.sessions import read_session
from rsr.steps import TABLE
from rsr.workspace import Workspace

SMALL = LoopConfig(
    reality=RealityConfig(episodes=8),
    start=StartConfig(train_steps=1),
    tune=TuneConfig(method="cmaes", fit_episodes=3),
    infogap=InfoGapConfig(transitions=100),
    retrain=RetrainConfig(train_steps=1),
)
"""Training comes to one rollout."""
_EFFORT = Effort(budget=100, max_windows=16, threads=1)


def tune(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """The step of this name with a tenth of the search; see `rsr.steps.tune`."""
    config = workspace.config(iteration)
    scenario = load_scenario(config.scenario)
    session = read_session(workspace.session_dir(iteration))
    prior = next_prior(scenario, load_calibration(workspace.calibration_dir(iteration - 1)))
    seed = derive_seed(config.seed, iteration, "tune")
    calibration = calibrator(config.tune, _EFFORT).fit(scenario, (session,), prior, seed, advance)
    save_calibration(calibration, workspace.calibration_dir(iteration))


def _small(name: str) -> str:
    return "_small_steps:tune" if name == "tune" else next(s.function for s in TABLE.stages if s.name == name)


SMALL_TABLE = "_small_steps:STEPS"
STEPS = replace(TABLE, stages=tuple(replace(step, function=_small(step.name)) for step in TABLE.stages))
