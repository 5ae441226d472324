"""How near networks come to their teacher and to a stand-in for reality, and how far they generalise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from _common import Figure
from _gnn_networks import Networks, Reality

from rsr.gnn.contract import ContactNetwork
from rsr.gnn.evaluation import Predict, judge
from rsr.gnn.rotations import angle_between
from rsr.gnn.scaling import Scaling, generate_trajectories, load_scaled
from rsr.gnn.simulator import predict, predict_in_mujoco
from rsr.gnn.velocities import Steady
from rsr.scenarios.two_cubes import ContactParameters

FRAMES = 28
BOWLING_FRAMES = 60
JUDGING_SEED = 1
"""Of the teacher's trajectories that nothing was trained on; training has 0."""


def by(network: ContactNetwork) -> Predict:
    return lambda trajectories: predict(network, trajectories)


def teacher(contact: ContactParameters) -> Predict:
    return lambda trajectories: predict_in_mujoco(contact, trajectories)


def on_teacher(networks: Networks, folder: Path, quick: bool) -> dict[str, Figure]:
    """Against the teacher's own trajectories: two cubes, other sizes and masses, and ten cubes struck by one."""
    kinds = {
        "cubes": (Scaling("cubes", frames=FRAMES + 2), 12 if quick else 200),
        "varied": (Scaling("varied", bodies=2, frames=FRAMES + 2), 12 if quick else 100),
        "bowling": (Scaling("bowling", bodies=11, frames=BOWLING_FRAMES + 2), 1 if quick else 20),
    }
    judges = {}
    for kind, (scaling, count) in kinds.items():
        made = generate_trajectories(networks.contact, folder / "judges" / kind, count, scaling, JUDGING_SEED)
        judges[kind] = load_scaled(made)
    cubes, varied, ten = (judge(by(networks.impulse), judges[kind]) for kind in kinds)
    fignet = judge(by(networks.fignet), judges["cubes"])
    return {
        "position_error_mm": cubes.position_mm(FRAMES),
        "rotation_error_deg": cubes.rotation_deg(FRAMES),
        "position_error_mm_fignet": fignet.position_mm(FRAMES),
        "rotation_error_deg_fignet": fignet.rotation_deg(FRAMES),
        "varied_error_fraction": varied.mean_fraction(FRAMES),
        "varied_median_error_fraction": varied.median_fraction(FRAMES),
        "varied_rotation_error_deg": varied.rotation_deg(FRAMES),
        "ten_cubes_median_error_fraction": ten.median_fraction(BOWLING_FRAMES),
        "ten_cubes_mean_error_fraction": ten.mean_fraction(BOWLING_FRAMES),
        "ten_cubes_stable": ten.stable,
        **_training(networks),
    }


def _training(networks: Networks) -> dict[str, Figure]:
    return {f"training_cpu_s_{name}": seconds for name, seconds in networks.cpu_s.items()}


def on_reality(networks: Networks, real: Reality) -> dict[str, Figure]:
    """Against the stand-in's test trajectories: Eq. (1), millimetres and degrees over all frames."""
    simulators: Mapping[str, Predict] = {
        "defaults": teacher(ContactParameters()),
        "identified": teacher(networks.contact),
        "impulse": by(networks.impulse),
        "fine_tuned": by(networks.fine_tuned),
        "fignet": by(networks.fignet),
    }
    figures: dict[str, Figure] = {}
    for name, simulator in simulators.items():
        for figure, value in compared(simulator, real.judge.recorded).items():
            figures[f"stand_in_{figure}_{name}"] = value
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
