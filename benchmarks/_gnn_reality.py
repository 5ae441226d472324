"""How near identified MuJoCo, MJX and networks come to stand-ins for reality that no method was written with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from _common import Figure
from _gnn_accuracy import by, teacher
from _gnn_networks import Reality, augmented, carried_over, fine_tuned, identified, reality, seeds, told

from rsr.gnn.evaluation import Predict
from rsr.gnn.rotations import angle_between
from rsr.gnn.simulator import GnnSimulator
from rsr.gnn.teacher import start_velocities, teacher_model
from rsr.gnn.trajectories import GIVEN_FRAMES, Trajectory
from rsr.gnn.velocities import Steady
from rsr.gnn.worlds import free_bodies
from rsr.realities.cubes import CubesStandIn
from rsr.scenarios import Scenario, load_scenario
from rsr.scenarios.two_cubes import ContactParameters
from rsr.simulators import MujocoSimulator, Simulator, evaluate_recording


def on_realities(folder: Path, quick: bool) -> dict[str, Figure]:
    """Against the test trajectories of all stand-ins: Eq. (1), millimetres and degrees over all frames; and means."""
    figures: dict[str, Figure] = {}
    columns: dict[str, list[float]] = {}
    for real in map(reality, seeds(quick)):
        for name, value in _on_reality(folder, real, quick).items():
            figures[f"{name}_{real.seed}"] = value
            columns.setdefault(name, []).append(value)
    return figures | {name: float(np.mean(values)) for name, values in columns.items()}


def _on_reality(folder: Path, real: Reality, quick: bool) -> dict[str, float]:
    contact, _ = identified(folder, real, quick)
    network = told(folder, contact, quick)
    carried, carrying_cpu_s = carried_over(folder, network, real, contact, quick)
    tuned, choice = fine_tuned(folder, carried, real, quick)
    alone, augmented_cpu_s = augmented(folder, real, quick)
    simulators: dict[str, Predict] = {
        "defaults": teacher(ContactParameters()),
        "identified": teacher(contact),
        "told": by(network),
        "carried_over": by(carried),
        "fine_tuned": by(tuned),
        "augmented": by(alone),
    }
    if not quick:  # compiling takes longer than all the rest of a quick look
        simulators["mjx"] = in_mjx(load_scenario("two_cubes"), contact)
    found = {name: compared(simulator, real.judge.recorded) for name, simulator in simulators.items()}
    figures = {f"stand_in_{figure}_{name}": value for name, row in found.items() for figure, value in row.items()}
    costs = {"carrying_over_cpu_s": carrying_cpu_s, "augmented_training_cpu_s": augmented_cpu_s}
    return figures | costs | choice


def in_mjx(scenario: Scenario, contact: ContactParameters) -> Predict:
    """MJX with these contacts, from the same starts as MuJoCo."""
    values = _values(contact)
    bodies, simulator = free_bodies(scenario, values), _mjx(scenario.name)

    def predicted(trajectories: Sequence[Trajectory]) -> list[np.ndarray]:
        starts = np.array([each.start for each in trajectories])
        first = trajectories[0]
        model = teacher_model(first.world, contact, first.dt_s)
        (velocities,) = start_velocities([model], [starts], first.dt_s)
        states = np.zeros((len(starts), scenario.state_size))
        states[:, bodies.qpos] = starts[:, 0]
        states[:, bodies.size[0] + bodies.dofs] = velocities
        actions = np.zeros((len(starts), scenario.history_steps + len(first) - 1, scenario.base_model.nu))
        poses = bodies.poses(simulator.rollout(states, actions, values))
        poses[:, :GIVEN_FRAMES] = starts
        return list(poses)

    return predicted


@cache
def _mjx(scenario: str) -> Simulator:
    """One for all stand-ins: it compiles once."""
    from rsr.simulators.mjx import MjxSimulator  # sets up JAX, which a quick look does without

    return MjxSimulator(load_scenario(scenario))


def from_first_frame(folder: Path, quick: bool) -> dict[str, Figure]:
    """The scenario's own metrics of MuJoCo in C, of MJX and of the network, from the recordings' first frames."""
    if quick:
        return {}
    real = reality(seeds(quick)[0])
    contact, _ = identified(folder, real, quick)
    carried, _ = carried_over(folder, told(folder, contact, quick), real, contact, quick)
    scenario, session = load_scenario("two_cubes"), CubesStandIn(real.seed).test()
    simulators: Mapping[str, Simulator] = {
        "mujoco": MujocoSimulator(scenario),
        "mjx": _mjx(scenario.name),
        "carried_over": GnnSimulator(scenario, carried),
    }
    figures: dict[str, Figure] = {}
    for name, simulator in simulators.items():
        judged = evaluate_recording(scenario, session, _values(contact), "first", simulator=simulator)
        figures |= {f"from_first_frame_{each.name}_{name}": judged[each.name] for each in scenario.evaluation.metrics}
    return figures


def compared(simulator: Predict, judges: Sequence[Steady]) -> dict[str, float]:
    """Means over trajectories; frames in which a tag jumped are left out."""
    trajectories = [each.trajectory for each in judges]
    rows = []
    for recorded, poses in zip(judges, simulator(trajectories), strict=True):
        seen = ~recorded.jumped[GIVEN_FRAMES:]
        truth = recorded.trajectory.poses[GIVEN_FRAMES:]
        distance = np.linalg.norm(poses[GIVEN_FRAMES:, :, :3] - truth[..., :3], axis=-1)
        angle = angle_between(poses[GIVEN_FRAMES:, :, 3:], truth[..., 3:])
        error = (seen * (distance / recorded.trajectory.sizes_m + angle)).sum()  # Eq. (1) of the paper
        rows.append((error, 1e3 * distance[seen].mean(), np.rad2deg(angle[seen].mean())))
    return dict(zip(("error", "position_mm", "rotation_deg"), np.mean(rows, axis=0).tolist(), strict=True))


def _values(contact: ContactParameters) -> np.ndarray:
    """Parameters of the scenario, [8]."""
    return np.array([contact.mu, *contact.solimp, *contact.solref])
