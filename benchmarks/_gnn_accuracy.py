"""How near networks come to their teacher and to a stand-in for reality, and how far they generalise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from _common import Figure
from _gnn_networks import USUAL, Reality, carried_over, fine_tuned, taught

from rsr.gnn.contract import ContactNetwork
from rsr.gnn.evaluation import Predict, judge
from rsr.gnn.rotations import angle_between
from rsr.gnn.scaling import Scaling, generate_trajectories, load_scaled
from rsr.gnn.simulator import GnnSimulator, predict, predict_in_mujoco
from rsr.gnn.storage import load_network
from rsr.gnn.trajectories import Trajectory
from rsr.gnn.velocities import Steady
from rsr.realities.cubes import CubesStandIn
from rsr.scenarios import load_scenario
from rsr.scenarios.two_cubes import ContactParameters
from rsr.simulators import MujocoSimulator, Simulator, evaluate_recording

FRAMES = 28
BOWLING_FRAMES = 60
JUDGING_SEED = 1001
"""Of the teacher's trajectories that nothing was trained on."""
JUDGES = {
    "cubes": (Scaling("cubes", frames=FRAMES + 2), 200),
    "varied": (Scaling("varied", 2, FRAMES + 2), 100),
    "bowling": (Scaling("bowling", 11, BOWLING_FRAMES + 2), 20),
}


def by(network: ContactNetwork) -> Predict:
    return lambda trajectories: predict(network, trajectories)


def teacher(contact: ContactParameters) -> Predict:
    return lambda trajectories: predict_in_mujoco(contact, trajectories)


def on_teacher(folder: Path, quick: bool) -> dict[str, Figure]:
    """Against the teacher's own trajectories: two cubes, other sizes and masses, and ten cubes struck by one."""
    network, cpu_s = taught("impulse", folder, quick)
    cubes, varied, ten = (judge(by(network), _judges(folder, kind, quick)) for kind in JUDGES)
    return {
        "position_error_mm": cubes.position_mm(FRAMES),
        "rotation_error_deg": cubes.rotation_deg(FRAMES),
        "varied_error_fraction": varied.mean_fraction(FRAMES),
        "varied_median_error_fraction": varied.median_fraction(FRAMES),
        "varied_rotation_error_deg": varied.rotation_deg(FRAMES),
        "ten_cubes_median_error_fraction": ten.median_fraction(BOWLING_FRAMES),
        "ten_cubes_mean_error_fraction": ten.mean_fraction(BOWLING_FRAMES),
        "ten_cubes_stable": ten.stable,
        "training_cpu_s": cpu_s,
    }


def fignet_on_teacher(folder: Path, quick: bool) -> dict[str, Figure]:
    network, cpu_s = taught("fignet", folder, quick)
    cubes = judge(by(network), _judges(folder, "cubes", quick))
    return {
        "position_error_mm_fignet": cubes.position_mm(FRAMES),
        "rotation_error_deg_fignet": cubes.rotation_deg(FRAMES),
        "training_cpu_s_fignet": cpu_s,
    }


def _judges(folder: Path, kind: str, quick: bool) -> list[Trajectory]:
    scaling, count = JUDGES[kind]
    count = max(1, count // 20) if quick else count
    return load_scaled(generate_trajectories(USUAL, folder / "judges" / kind, count, scaling, JUDGING_SEED))


def on_reality(folder: Path, real: Reality, contact: ContactParameters, quick: bool) -> dict[str, Figure]:
    """Against the stand-in's test trajectories: Eq. (1), millimetres and degrees over all frames."""
    carried, carrying_cpu_s = carried_over(folder, contact, quick)
    tuned, tuning_cpu_s = fine_tuned(folder, carried, real, quick)
    simulators: Mapping[str, Predict] = {
        "defaults": teacher(ContactParameters()),
        "identified": teacher(contact),
        "carried_over": by(carried),
        "fine_tuned": by(tuned),
    }
    figures: dict[str, Figure] = {"carrying_over_cpu_s": carrying_cpu_s, "fine_tuning_cpu_s": tuning_cpu_s}
    for name, simulator in simulators.items():
        for figure, value in compared(simulator, real.judge.recorded).items():
            figures[f"stand_in_{figure}_{name}"] = value
    return figures


def beside_mjx(folder: Path, real: Reality, contact: ContactParameters) -> dict[str, Figure]:
    """MuJoCo in C and MJX with the identified contacts, and the network, all from the recordings' first frames."""
    from rsr.simulators.mjx import MjxSimulator  # sets up JAX, which a quick look does without

    scenario, session = load_scenario("two_cubes"), CubesStandIn(real.seed).test()
    values = np.array([contact.mu, *contact.solimp, *contact.solref])
    simulators: Mapping[str, Simulator] = {
        "mujoco": MujocoSimulator(scenario),
        "mjx": MjxSimulator(scenario),
        "carried_over": GnnSimulator(scenario, load_network(folder / "carried_over")),
    }
    figures: dict[str, Figure] = {}
    for name, simulator in simulators.items():
        judged = evaluate_recording(scenario, session, values, "first", simulator=simulator)
        figures |= {f"from_first_frame_{each.name}_{name}": judged[each.name] for each in scenario.evaluation.metrics}
    return figures


def compared(simulator: Predict, judges: Sequence[Steady]) -> dict[str, float]:
    """Means over trajectories; frames in which a tag jumped are left out."""
    trajectories = [each.trajectory for each in judges]
    rows = []
    for recorded, poses in zip(judges, simulator(trajectories), strict=True):
        seen = ~recorded.jumped[2:]
        truth = recorded.trajectory.poses[2:]
        distance = np.linalg.norm(poses[2:, :, :3] - truth[..., :3], axis=-1)
        angle = angle_between(poses[2:, :, 3:], truth[..., 3:])
        error = (seen * (distance / recorded.trajectory.sizes_m + angle)).sum()  # Eq. (1) of the paper
        rows.append((error, 1e3 * distance[seen].mean(), np.rad2deg(angle[seen].mean())))
    return dict(zip(("error", "position_mm", "rotation_deg"), np.mean(rows, axis=0).tolist(), strict=True))
