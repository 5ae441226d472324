"""How near networks come to their teacher, and how far they generalise."""

from __future__ import annotations

from pathlib import Path

from _common import Figure
from _gnn_networks import USUAL, knows_laws, taught

from rsr.gnn.contract import ContactNetwork
from rsr.gnn.evaluation import Predict, judge
from rsr.gnn.laws import Laws
from rsr.gnn.scaling import Scaling, generate_trajectories, load_scaled
from rsr.gnn.simulator import predict, predict_in_mujoco
from rsr.gnn.trajectories import Trajectory
from rsr.scenarios.two_cubes import ContactParameters

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


def laws_on_teachers(folder: Path, quick: bool) -> dict[str, Figure]:
    """The network that is told laws: against teachers with others each, and against the usual one."""
    network, cpu_s = knows_laws(folder, quick)
    scaling, count = JUDGES["cubes"]
    place = generate_trajectories(None, folder / "judges" / "laws", 10 if quick else count, scaling, JUDGING_SEED)
    errors = judge(by(network), load_scaled(place))
    usual = judge(by(network.obeying(Laws.same(USUAL))), _judges(folder, "cubes", quick))
    return {
        "laws_position_error_mm": errors.position_mm(FRAMES),
        "laws_rotation_error_deg": errors.rotation_deg(FRAMES),
        "laws_median_error_fraction": errors.median_fraction(FRAMES),
        "laws_position_error_mm_usual": usual.position_mm(FRAMES),
        "laws_rotation_error_deg_usual": usual.rotation_deg(FRAMES),
        "laws_training_cpu_s": cpu_s,
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
