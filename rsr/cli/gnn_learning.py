"""Commands of `rsr gnn` that teach a network, judge it, and use it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.table import Table
from tyro.conf import arg

from rsr import progress
from rsr.cli.screen import hint, say, show
from rsr.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from rsr.gnn.contract import ContactNetwork
    from rsr.gnn.evaluation import TrajectoryErrors
    from rsr.gnn.optimisation import Pushes, PushTask
    from rsr.gnn.trajectories import Trajectory

_PATHS = Annotated[tuple[Path, ...], arg(metavar="PATH [PATH ...]")]
_DIR = Annotated[Path, arg(metavar="DIR")]
_FILE = Annotated[Path, arg(metavar="FILE")]
_MAYBE = Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")]
_MAYBE_DIR = Annotated[Path | None, arg(metavar="DIR", help_behavior_hint="")]
_N = Annotated[int, arg(metavar="N")]

_GAP_M = 0.04
_STARTS = 10
_HORIZON = 45


def train(
    data: _PATHS,
    out: _DIR,
    network: Annotated[str | None, arg(metavar="KIND", help_behavior_hint="")] = None,
    steps: Annotated[int | None, arg(metavar="N", help_behavior_hint="")] = None,
    base: _MAYBE_DIR = None,
    teacher: _MAYBE_DIR = None,
    finetune: _MAYBE = None,
    finetune_steps: _N = 25,
    seed: _N = 0,
) -> int:
    """Teach a network what simulated trajectories show, and perhaps what a few recorded ones show too.

    Args:
        data: folders of `rsr gnn data`, or .npz files of trajectories.
        out: folder for the network. Begun again, a training goes on where it was stopped.
        network: impulse, or fignet; by default impulse, or what --base is.
        steps: of training; by default 2000, which take the network impulse about four minutes of one core, or 600
            with --base.
        base: go on from this network, which was taught by data without a teacher, so that it knows many contacts.
        teacher: folder of `rsr gnn identify`; with --base, which contacts that network shall take for its own.
        finetune: recorded trajectories, .npz, to fine-tune on afterwards: not at all, half the way or all of it, as
            helps to predict those of them that are left out, a third at a time.
        finetune_steps: of fine-tuning.
        seed: equal seeds give equal bytes.
    """
    from rsr.gnn.fine_tuning import FEW_SHOTS, fine_tune_as_helps
    from rsr.gnn.storage import save_network
    from rsr.gnn.training import CARRYING, TrainingSettings, fine_tune, train_network

    if teacher is not None and base is None:
        raise ConfigError(
            got="--teacher without --base",
            expected="a network to tell its contacts to",
            where="rsr gnn train",
            next_step="Name the network with --base, or leave --teacher out: the data are the teacher's already.",
        )
    start = None if base is None else _told(base, teacher, network)
    taught = [trajectory for path in data for trajectory in _read(path)]
    with progress.bar("training") as advance:
        if start is None:
            settings = TrainingSettings(steps=2000 if steps is None else steps, network=network or "impulse")
            learnt = train_network(taught, settings, seed, advance, folder=out)
        else:
            carried = CARRYING.steps if steps is None else steps
            settings = replace(CARRYING, steps=carried, network=start.kind)
            learnt = fine_tune(start, taught, settings, seed, advance, folder=out)
    if finetune is not None:
        few = replace(FEW_SHOTS, steps=finetune_steps)
        recorded = _read(finetune)
        with progress.bar("fine-tuning") as advance:
            tuned = fine_tune_as_helps(learnt, recorded, few, seed, advance)
        before, after = tuned.left_out[0.0], tuned.left_out[tuned.share]
        hint(f"fine-tuned {tuned.share:.0%} of the way: error of recordings left out {before:.3g}, then {after:.3g}")
        evidence = {"recordings": len(recorded), "share": tuned.share, "error_before": before, "error_after": after}
        save_network(tuned.network, out, {"trajectories": len(taught), **evidence})
    say(f"{out}: {learnt.kind}, taught by {len(taught)} trajectories")
    hint(f"judge it by others: rsr gnn evaluate --network {out} --trajectories FILE")
    return 0


def _told(base: Path, teacher: Path | None, kind: str | None) -> ContactNetwork:
    """A network to go on from, told the contacts of an identified teacher if there is one."""
    from rsr.gnn.impulse import ImpulseNetwork
    from rsr.gnn.laws import Laws
    from rsr.gnn.storage import load_network
    from rsr.gnn.teachers import load_teacher

    network = load_network(base)
    if kind not in (None, network.kind):
        raise ConfigError(
            got=f"--network {kind}",
            expected=f"{network.kind}, which --base is",
            where=f"rsr gnn train, --base {base}",
            next_step="Leave --network out, or leave --base out and train a network of that kind.",
        )
    if teacher is None:
        return network
    if not isinstance(network, ImpulseNetwork):
        raise ConfigError(
            got=f"--teacher with a network {network.kind}",
            expected="--base of kind impulse: the other one is told nothing of contacts but what the data show",
            where=f"rsr gnn train, --base {base}",
            next_step="Leave --teacher out: the data are the teacher's already.",
        )
    return network.obeying(Laws.same(load_teacher(teacher)))


def evaluate(
    network: _DIR, trajectories: _PATHS, teacher: _MAYBE_DIR = None, report: _MAYBE = None, json: _MAYBE = None
) -> int:
    """Judge a network by trajectories it was not taught with, each predicted from its first two frames.

    Args:
        network: folder of `rsr gnn train`.
        trajectories: .npz files, or folders of `rsr gnn data`.
        teacher: folder of `rsr gnn identify`; MuJoCo with its contacts is then judged beside the network.
        report: write a page here, .html: errors per frame, paths, and a rendered rollout beside the truth.
        json: also write the figures to this file.
    """
    from rsr.files import write_json, write_text
    from rsr.gnn.evaluation import errors_of, standing_still
    from rsr.gnn.simulator import predict, predict_in_mujoco
    from rsr.gnn.storage import load_network
    from rsr.gnn.teachers import load_teacher

    learnt = load_network(network)
    judges = [trajectory for path in trajectories for trajectory in _read(path)]
    predicted = {learnt.kind: predict(learnt, judges)}
    if teacher is not None:
        predicted["MuJoCo, identified"] = predict_in_mujoco(load_teacher(teacher), judges)
    predicted["nothing moves"] = standing_still(judges)
    errors = {name: errors_of(judges, poses) for name, poses in predicted.items()}
    show(_table(errors, len(judges)))
    if report is not None:
        from rsr.reports.rollouts import render_rollouts

        write_text(report, render_rollouts(f"Network {network.name}", judges, predicted, "truth"))
        say(str(report))
    if json is not None:
        write_json(json, {"trajectories": len(judges), **_figures(errors[learnt.kind])})
    return 0


def push(
    network: _DIR,
    target: Annotated[tuple[float, float], arg(metavar="X Y")],
    teacher: _MAYBE_DIR = None,
    steps: _N = 10,
    seed: _N = 0,
    json: _MAYBE = None,
) -> int:
    """Find how to push one cube into another so that this one stops at a target, by gradients through the network.

    The pushed cube of 8 cm lies in the origin, the other one 4 cm in front of it along x.

    Args:
        network: folder of `rsr gnn train`.
        target: where the struck cube shall stop, in m; the cube lies at 0.12 0.
        teacher: folder of `rsr gnn identify`; MuJoCo with its contacts carries the best push out.
        steps: gradient steps from each of ten starts.
        seed: of the starts.
        json: also write the pushes and their course to this file.
    """
    from rsr.files import write_json
    from rsr.gnn.contract import rollout
    from rsr.gnn.optimisation import PushTask, optimise_push, sample_starts
    from rsr.gnn.scenes import cube_world
    from rsr.gnn.storage import load_network
    from rsr.scenarios.two_cubes import SIDE_M

    learnt, world = load_network(network), cube_world()
    task = PushTask.along_x(SIDE_M, _GAP_M, target, learnt.settings.dt_s)
    starts = sample_starts(task, _STARTS, seed)
    with progress.bar("push") as advance:
        found = optimise_push(lambda start: rollout(learnt, world, start, _HORIZON), task, starts, steps, advance)
    show(_pushes(found))
    best = int(found.distance_m.argmin())
    x, y = found.velocity_m_s[best].tolist()
    say(f"push with {x:.3f} m/s along x and {y:.3f} m/s along y: {1e3 * found.distance_m[best]:.1f} mm from the target")
    figures = {name: getattr(found, name).tolist() for name in ("velocity_m_s", "distance_m", "trace_m")}
    if teacher is not None:
        figures["carried_out_m"] = carried_out = _carried_out(teacher, task, found.velocity_m_s[best])
        say(f"carried out by the teacher: {1e3 * carried_out:.1f} mm from the target")
    if json is not None:
        write_json(json, figures)
    return 0


def _carried_out(teacher: Path, task: PushTask, velocity_m_s: Tensor) -> float:
    """How far from the target MuJoCo with identified contacts brings the struck cube."""
    from rsr.gnn.pushes import pushed
    from rsr.gnn.scenes import cube_world
    from rsr.gnn.teacher import teacher_rollout
    from rsr.gnn.teachers import load_teacher

    start = pushed(task.poses[None], task.pusher, velocity_m_s[None], task.dt_s).numpy()
    poses = teacher_rollout(cube_world(), load_teacher(teacher), start, _HORIZON + 2, task.dt_s)
    return math.dist(poses[0, -1, task.struck, :2], task.target_m.tolist())


def _read(path: Path) -> list[Trajectory]:
    from rsr.gnn.scaling import load_scaled
    from rsr.gnn.trajectories import load_trajectories

    found = load_scaled(path) if path.is_dir() else load_trajectories(path)
    if not found:
        raise ConfigError(
            got="no trajectory",
            expected="at least one",
            where=str(path),
            next_step="Make some: `rsr gnn data`.",
        )
    return found


def _figures(errors: TrajectoryErrors) -> dict[str, float | bool]:
    return {
        "position_error_mm": errors.position_mm(),
        "rotation_error_deg": errors.rotation_deg(),
        "median_error_fraction": errors.median_fraction(),
        "position_error_percent": errors.position_percent(),
        "mean_rotation_error_deg": errors.mean_rotation_deg(),
        "stable": errors.stable,
    }


def _table(errors: Mapping[str, TrajectoryErrors], count: int) -> Table:
    table = Table(title=f"{count} trajectories, from their first two frames", title_justify="left")
    table.add_column("figure")
    for name in errors:
        table.add_column(name, justify="right")
    rows = {name: _figures(each) for name, each in errors.items()}
    for figure in next(iter(rows.values())):
        table.add_row(figure.replace("_", " "), *(_word(each[figure]) for each in rows.values()))
    return table


def _word(value: float | bool) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else f"{value:.4g}"


def _pushes(found: Pushes) -> Table:
    table = Table(title="pushes", title_justify="left")
    for name in ("start (m/s)", "at first (mm)", "found (m/s)", "at last (mm)"):
        table.add_column(name, justify="right")
    for start in range(len(found.distance_m)):
        words = [
            f"{x:.3f} {y:.3f}" for x, y in (found.tried_m_s[start, 0].tolist(), found.velocity_m_s[start].tolist())
        ]
        missed = [f"{1e3 * metres:.1f}" for metres in (found.trace_m[start, 0], found.distance_m[start])]
        table.add_row(words[0], missed[0], words[1], missed[1])
    return table
