"""Evidence for a learned simulator, on episodes that neither teacher nor network was fitted to, and its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rsr.calibration import Calibration, Evidence, channel_rms, load_calibration, replay
from rsr.files import read_json, write_json, write_text
from rsr.learned.gnn import Trajectory, free_bodies, predict
from rsr.learned.gnn.calibration import RECORD, load_gnn
from rsr.learned.gnn.recordings import recorded_trajectories
from rsr.pipelines.gnn.settings import recorded, teacher_of
from rsr.pipelines.methods import simulator_of
from rsr.progress import Advance
from rsr.reports.rollouts import render_rollouts
from rsr.scenarios import Scenario, load_scenario
from rsr.sessions import Episode, Session, join_sessions, read_session
from rsr.simulators import MujocoSimulator, Simulator
from rsr.workspace import Workspace

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
