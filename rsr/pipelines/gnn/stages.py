"""The stages before evidence: identify MuJoCo, let it simulate, train a network on that, fine-tune it on recordings.

`calibrate` does all of them in one folder, for whoever has sessions and no campaign.
"""

from __future__ import annotations

import shutil

from rsr.calibration import load_calibration, next_prior, save_calibration, start_calibration
from rsr.learned.gnn import load_network, load_trajectories, save_network, save_trajectories, train_network
from rsr.learned.gnn.calibration import LearningProblem, keep_better
from rsr.pipelines.gnn.evaluate import as_gnn
from rsr.pipelines.gnn.settings import (
    begin,
    data_path,
    gnn_settings,
    identified_dir,
    settings_and_seed,
    taught_dir,
    teacher_by,
    teacher_of,
    unfinished_dir,
)
from rsr.progress import Advance
from rsr.scenarios import load_scenario
from rsr.workspace import Workspace


def prior(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write calibration/ of iteration 0: the parameters before any recording."""
    scenario = load_scenario(workspace.config(iteration).scenario)
    save_calibration(start_calibration(scenario), workspace.calibration_dir(iteration))


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
