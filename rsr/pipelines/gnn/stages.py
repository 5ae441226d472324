"""The stages before evidence: identify MuJoCo, let it simulate, train a network on that, fine-tune it on recordings.

`GnnCalibrator` does all of them in one folder, for whoever has sessions and no campaign.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from rsr.calibration import Calibration, Prior, load_calibration, next_prior, save_calibration
from rsr.config import GnnConfig, LoopConfig
from rsr.learned.gnn import (
    LearningProblem,
    fit_gnn,
    freed_of_noise,
    load_network,
    load_trajectories,
    save_network,
    save_trajectories,
    train_network,
)
from rsr.learned.gnn.calibration import keep_better
from rsr.pipelines.gnn.evaluate import as_gnn
from rsr.pipelines.gnn.settings import (
    begin,
    data_path,
    gnn_settings,
    identified_dir,
    settings_and_seed,
    settings_of,
    taught_dir,
    teacher_by,
    teacher_of,
    unfinished_dir,
)
from rsr.pipelines.methods import MethodFolders
from rsr.progress import Advance, part_of
from rsr.scenarios import Scenario
from rsr.sessions import Session
from rsr.workspace import Workspace


def identify(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write identified/: the teacher, MuJoCo with the parameters that explain the recordings best."""
    config = workspace.config(iteration)
    scenario, session, _, seed = begin(workspace, iteration)
    before = next_prior(scenario, load_calibration(workspace.calibration_dir(iteration - 1)))
    found = teacher_by(config.tune, gnn_settings(config)).fit(scenario, (session,), before, seed, advance)
    save_calibration(found, identified_dir(workspace, iteration))


def scale(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write trajectories/: what the teacher does from varied starts of the recorded ones."""
    save_trajectories(_problem(workspace, iteration).simulated(advance), data_path(workspace, iteration))


def train(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write taught/: a network that has learnt the teacher. Killed, it goes on from its last checkpoint."""
    settings, seed = settings_and_seed(workspace, iteration)
    unfinished = unfinished_dir(workspace, iteration, "train")
    taught = load_trajectories(data_path(workspace, iteration))
    network = train_network(taught, settings.training, seed, advance, folder=unfinished)
    save_network(network, taught_dir(workspace, iteration))
    shutil.rmtree(unfinished, ignore_errors=True)


def finetune(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write calibration/: the network, fine-tuned on recordings where that helps on episodes that it did not see."""
    problem, folder = _problem(workspace, iteration), workspace.calibration_dir(iteration)
    keep_better(load_network(taught_dir(workspace, iteration)), problem, folder, advance)
    teacher = teacher_of(workspace, iteration)
    save_calibration(as_gnn(problem.scenario, problem.sessions, teacher, folder), folder)


def _problem(workspace: Workspace, iteration: int) -> LearningProblem:
    scenario, session, settings, seed = begin(workspace, iteration)
    teacher = teacher_of(workspace, iteration)
    return LearningProblem(scenario, (session,), teacher.vector(), teacher.evidence.fitted, settings, seed)


# `gnn` as a method of calibration: teacher, network and evidence in one folder.

_IDENTIFIED = 0.3
"""Share of the progress that a teacher's identification takes."""


@dataclass(frozen=True)
class GnnCalibrator:
    """The `Calibrator` that identifies a teacher, learns from it and from the recordings, and writes the network."""

    config: LoopConfig
    folders: MethodFolders

    def fit(
        self, scenario: Scenario, sessions: tuple[Session, ...], prior: Prior, seed: int, advance: Advance
    ) -> Calibration:
        """See `Calibrator.fit`."""
        sessions = tuple(freed_of_noise(scenario, session) for session in sessions)
        given, folder = self.config.gnn or GnnConfig(), self.folders.out
        identified = part_of(advance, 0.0, _IDENTIFIED)
        teacher = teacher_by(self.config.tune, given).fit(scenario, sessions, prior, seed, identified)
        settings = settings_of(given)
        problem = LearningProblem(scenario, sessions, teacher.vector(), teacher.evidence.fitted, settings, seed)
        fit_gnn(problem, folder, part_of(advance, _IDENTIFIED, 1.0))
        return as_gnn(scenario, sessions, teacher, folder)
