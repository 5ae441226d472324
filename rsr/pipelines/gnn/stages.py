"""The stages of a learned simulator: identify MuJoCo, let it simulate, train a network on that, fine-tune it, judge it.

`GnnCalibrator` does all of it in one folder, for whoever has sessions and no campaign.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rsr.calibration import (
    Calibration,
    Calibrator,
    Effort,
    Evidence,
    Prior,
    calibrator,
    channel_rms,
    load_calibration,
    next_prior,
    replay,
    save_calibration,
)
from rsr.common import Advance, derive_seed, part_of, read_json, write_json, write_text
from rsr.config import GnnConfig, LoopConfig, TuneConfig, section_of
from rsr.learned.gnn import (
    RECORD,
    LearningProblem,
    TrainingSettings,
    Trajectory,
    fit_gnn,
    free_bodies,
    freed_of_noise,
    keep_better,
    load_gnn,
    load_network,
    load_trajectories,
    predict,
    recorded_trajectories,
    save_network,
    save_trajectories,
    train_network,
)
from rsr.pipelines import MethodFolders, simulator_of
from rsr.reports import render_rollouts
from rsr.scenarios import Scenario, load_scenario
from rsr.sessions import Episode, Session, join_sessions, read_session
from rsr.simulators import MujocoSimulator, Simulator
from rsr.workspace import Workspace


def identify(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write identified/: the teacher, MuJoCo with the parameters that explain the recordings best."""
    config = workspace.config(iteration)
    scenario, session, _, seed = begin(workspace, iteration)
    before = next_prior(scenario, load_calibration(workspace.calibration_dir(iteration - 1)))
    found = teacher_by(config.tune, gnn_settings(config), (session,)).fit(scenario, (session,), before, seed, advance)
    save_calibration(found, identified_dir(workspace, iteration))


def scale(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write trajectories/: what the teacher does from varied starts of the recorded ones."""
    save_trajectories(_problem(workspace, iteration).simulated(advance), data_path(workspace, iteration))


def train(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write taught/: a network that has learnt the teacher. Killed, it goes on from its last checkpoint."""
    settings, seed = settings_and_seed(workspace, iteration)
    unfinished = unfinished_dir(workspace, iteration, "train")
    taught = load_trajectories(data_path(workspace, iteration))
    network = train_network(taught, TrainingSettings(steps=settings.steps), seed, advance, folder=unfinished)
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
        teacher = teacher_by(self.config.tune, given, sessions).fit(scenario, sessions, prior, seed, identified)
        problem = LearningProblem(scenario, sessions, teacher.vector(), teacher.evidence.fitted, given, seed)
        fit_gnn(problem, folder, part_of(advance, _IDENTIFIED, 1.0))
        return as_gnn(scenario, sessions, teacher, folder)


# Evidence, on episodes that neither teacher nor network was fitted to, and its page.


_NO_BETTER = (
    "the network predicts the held-out episodes no better than MuJoCo with the parameters before; do not rely on it"
)


def as_gnn(scenario: Scenario, sessions: Sequence[Session], teacher: Calibration, folder: Path) -> Calibration:
    """The teacher's calibration with the network's evidence, on the same held-out episodes.

    Args:
        folder: where the network lies.
    """
    episodes = [join_sessions(sessions).episodes[index] for index in teacher.evidence.held_out]
    with load_gnn(scenario, folder) as network:
        after = rms(scenario, network, episodes, teacher.vector())
    before = {channel: pair[0] for channel, pair in teacher.evidence.channels.items()}
    evidence = Evidence(
        gap_before=teacher.evidence.gap_before,
        gap_after=after[scenario.gap_channel],
        gap_unit=teacher.evidence.gap_unit,
        channels={channel: (before[channel], after[channel]) for channel in before},
        fitted=teacher.evidence.fitted,
        held_out=teacher.evidence.held_out,
    )
    better = evidence.gap_after < evidence.gap_before
    status = "converged" if better else "no improvement"
    warnings = teacher.warnings if better else (*teacher.warnings, _NO_BETTER)
    return replace(teacher, method="gnn", evidence=evidence, status=status, warnings=warnings, replays=None)


def rms(scenario: Scenario, simulator: Simulator, episodes: Sequence[Episode], params: np.ndarray) -> dict[str, float]:
    """RMS error of each channel, recordings replayed open loop."""
    return channel_rms(scenario, episodes, replay(scenario, simulator, episodes, params))


def evaluate(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write evaluation/metrics.json: the model before, the teacher and the network, on held-out episodes."""
    scenario = load_scenario(workspace.config(iteration).scenario)
    folder = workspace.calibration_dir(iteration)
    after = load_calibration(folder)
    episodes = _held_out(workspace, iteration, scenario, after)
    before_m = _gap_before(workspace, iteration, scenario, episodes)
    record = read_json(folder / RECORD)
    document: dict[str, Any] = {
        "iteration": iteration,
        "seed": workspace.config(iteration).seed,
        "episodes": len(after.evidence.fitted) + len(episodes),
        "gap_before": before_m,
        "gap_teacher": teacher_of(workspace, iteration).evidence.gap_after,
        "gap_after": after.evidence.gap_after,
        "chosen": record["chosen"],
        "judged": f"fitted to {len(after.evidence.fitted)} episodes, judged on the other {len(episodes)}",
        "params": {name: estimate.value for name, estimate in after.estimates.items()},
        "verdicts": {name: estimate.verdict for name, estimate in after.estimates.items()},
    }
    for name, metrics in record["errors"].items():
        document |= {f"{metric}_{name.replace('-', '_')}": value for metric, value in metrics.items()}
    write_json(workspace.metrics_path(iteration), document)
    advance(1.0, f"{after.evidence.gap_after:.4g} {after.evidence.gap_unit}")


def report(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write report.html: held-out recordings, what the network predicts and what its teacher predicts."""
    scenario = load_scenario(workspace.config(iteration).scenario)
    after = load_calibration(workspace.calibration_dir(iteration))
    episodes = _held_out(workspace, iteration, scenario, after)
    trajectories = recorded_trajectories(scenario, after.vector(), episodes)
    with load_gnn(scenario, workspace.calibration_dir(iteration)) as learnt:
        chosen = read_json(workspace.calibration_dir(iteration) / RECORD)["chosen"]
        predictions = {chosen: predict(learnt.network, trajectories)}
    predictions["teacher"] = _by_mujoco(scenario, after.vector(), episodes, trajectories)
    simulated = read_session(workspace.session_dir(iteration)).card.simulated
    title = f"Iteration {iteration} · {scenario.name}"
    page = render_rollouts(title, trajectories, predictions, "stand-in" if simulated else "recorded")
    write_text(workspace.report_path(iteration), page)
    advance(1.0, "written")


def _held_out(workspace: Workspace, iteration: int, scenario: Scenario, calibration: Calibration) -> list[Episode]:
    session = recorded(workspace, iteration, scenario)
    return [session.episodes[index] for index in calibration.evidence.held_out]


def _gap_before(workspace: Workspace, iteration: int, scenario: Scenario, episodes: Sequence[Episode]) -> float:
    """The gap of the model before: the network of the iteration before, or at first MuJoCo with nominal parameters."""
    folder: Path = workspace.calibration_dir(iteration - 1)
    before = load_calibration(folder)
    with simulator_of(scenario, before.method, folder) as simulator:
        return rms(scenario, simulator, episodes, before.vector())[scenario.gap_channel]


def _by_mujoco(
    scenario: Scenario, params: np.ndarray, episodes: Sequence[Episode], trajectories: Sequence[Trajectory]
) -> list[np.ndarray]:
    """Poses that MuJoCo predicts from the second frame on."""
    bodies, found = free_bodies(scenario, params), []
    with MujocoSimulator(scenario) as simulator:
        for episode, trajectory in zip(episodes, trajectories, strict=True):
            start = scenario.states(episode)[1:2]
            steps = len(episode) - 2
            commands = np.zeros((1, scenario.history_steps + steps, scenario.base_model.nu))
            after = bodies.poses(simulator.rollout(start, commands, params)[0, 1:])
            found.append(np.concatenate([trajectory.poses[:2], after]))
    return found


# Common to the stages: settings, recordings freed of noise, places of unfinished work.


def begin(workspace: Workspace, iteration: int) -> tuple[Scenario, Session, GnnConfig, int]:
    """Scenario, recordings, settings and seed of an iteration's stages."""
    scenario = load_scenario(workspace.config(iteration).scenario)
    return scenario, recorded(workspace, iteration, scenario), *settings_and_seed(workspace, iteration)


def recorded(workspace: Workspace, iteration: int, scenario: Scenario) -> Session:
    """The session of an iteration, as every simulator of it is fitted and judged: from fitted first frames."""
    return freed_of_noise(scenario, read_session(workspace.session_dir(iteration)))


def settings_and_seed(workspace: Workspace, iteration: int) -> tuple[GnnConfig, int]:
    """One seed for all stages, so that they do what `fit_gnn` does."""
    config = workspace.config(iteration)
    return gnn_settings(config), derive_seed(config.seed, iteration, "gnn")


def gnn_settings(config: LoopConfig) -> GnnConfig:
    """The section `gnn`; see `section_of`."""
    return section_of(config.gnn, "gnn", "those of a campaign that learns a simulator")


def teacher_by(tune: TuneConfig, settings: GnnConfig, sessions: Sequence[Session]) -> Calibrator:
    """The calibrator that identifies the teacher, on half of the episodes at most: the others judge the network too."""
    effort = Effort() if settings.teacher_budget is None else Effort(budget=settings.teacher_budget)
    half = (sum(len(session.episodes) for session in sessions) + 1) // 2
    given = {"method": settings.teacher, "fit_episodes": min(tune.fit_episodes, max(1, half))}
    return calibrator(tune.model_copy(update=given), effort)


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
