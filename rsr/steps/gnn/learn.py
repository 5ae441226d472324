"""The stages before evidence: identify MuJoCo, let it simulate, train a network on that, fine-tune it on recordings."""

from __future__ import annotations

import shutil

from rsr.calibration import load_calibration, next_prior, save_calibration, start_calibration
from rsr.gnn.storage import load_network, save_network
from rsr.gnn.training import train_network
from rsr.gnn.trajectories import load_trajectories, save_trajectories
from rsr.gnn.tuning import Lesson, keep_better
from rsr.progress import Advance
from rsr.scenarios import load_scenario
from rsr.steps.gnn.evidence import as_gnn
from rsr.steps.gnn.pieces import (
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
from rsr.workspace import Workspace


def prior(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write calibration/ of iteration 0: what is believed before data."""
    scenario = load_scenario(workspace.config(iteration).scenario)
    save_calibration(start_calibration(scenario), workspace.calibration_dir(iteration))


def identify(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write identified/: the teacher, MuJoCo with the parameters that explain the recordings best."""
    config = workspace.config(iteration)
    scenario, session, _, seed = begin(workspace, iteration)
    believed = next_prior(scenario, load_calibration(workspace.calibration_dir(iteration - 1)))
    found = teacher_by(config.tune, gnn_settings(config)).fit(scenario, (session,), believed, seed, advance)
    save_calibration(found, identified_dir(workspace, iteration))


def scale(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write trajectories/: what the teacher does from varied starts of the recorded ones."""
    save_trajectories(_lesson(workspace, iteration).simulated(advance), data_path(workspace, iteration))


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
    lesson, folder = _lesson(workspace, iteration), workspace.calibration_dir(iteration)
    keep_better(load_network(taught_dir(workspace, iteration)), lesson, folder, advance)
    teacher = teacher_of(workspace, iteration)
    save_calibration(as_gnn(lesson.scenario, lesson.sessions, teacher, folder), folder)


def _lesson(workspace: Workspace, iteration: int) -> Lesson:
    scenario, session, settings, seed = begin(workspace, iteration)
    teacher = teacher_of(workspace, iteration)
    return Lesson(scenario, (session,), teacher.vector(), teacher.evidence.fitted, settings, seed)
