"""Common to the stages: settings, recordings freed of noise, places of unfinished work."""

from __future__ import annotations

from pathlib import Path

from rsr.calibration import Calibration, Calibrator, Effort, calibrator, load_calibration
from rsr.config import GnnConfig, LoopConfig, TuneConfig, section_of
from rsr.learned.gnn import GnnSettings, freed_of_noise
from rsr.randomness import derive_seed
from rsr.scenarios import Scenario, load_scenario
from rsr.sessions import Session, read_session
from rsr.workspace import Workspace


def begin(workspace: Workspace, iteration: int) -> tuple[Scenario, Session, GnnSettings, int]:
    """Scenario, recordings, settings and seed of an iteration's stages."""
    scenario = load_scenario(workspace.config(iteration).scenario)
    return scenario, recorded(workspace, iteration, scenario), *settings_and_seed(workspace, iteration)


def recorded(workspace: Workspace, iteration: int, scenario: Scenario) -> Session:
    """The session of an iteration, as every simulator of it is fitted and judged: from fitted first frames."""
    return freed_of_noise(scenario, read_session(workspace.session_dir(iteration)))


def settings_and_seed(workspace: Workspace, iteration: int) -> tuple[GnnSettings, int]:
    """One seed for all stages, so that they do what `fit_gnn` does."""
    config = workspace.config(iteration)
    return settings_of(gnn_settings(config)), derive_seed(config.seed, iteration, "gnn")


def settings_of(config: GnnConfig) -> GnnSettings:
    return GnnSettings(config.network, config.trajectories, config.steps, config.finetune_steps)


def gnn_settings(config: LoopConfig) -> GnnConfig:
    """The section `gnn`; see `section_of`."""
    return section_of(config.gnn, "gnn", "those of a campaign that learns a simulator")


def teacher_by(tune: TuneConfig, settings: GnnConfig) -> Calibrator:
    """The calibrator that identifies the teacher."""
    effort = Effort() if settings.teacher_budget is None else Effort(budget=settings.teacher_budget)
    return calibrator(tune.model_copy(update={"method": settings.teacher}), effort)


def teacher_of(workspace: Workspace, iteration: int) -> Calibration:
    """The identified MuJoCo of an iteration."""
    return load_calibration(identified_dir(workspace, iteration))


def identified_dir(workspace: Workspace, iteration: int) -> Path:
    return workspace.iteration_dir(iteration) / "identified"


def data_path(workspace: Workspace, iteration: int) -> Path:
    return workspace.iteration_dir(iteration) / "trajectories" / "taught.npz"


def taught_dir(workspace: Workspace, iteration: int) -> Path:
    return workspace.iteration_dir(iteration) / "taught"


def unfinished_dir(workspace: Workspace, iteration: int, stage: str) -> Path:
    """Where a training keeps its checkpoints: DVC clears a stage's outputs before it runs again."""
    return workspace.root / ".rsr" / f"{stage}-{iteration:03d}"
