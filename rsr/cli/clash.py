"""Commands: adapt to recorded strikes, with or without a surrogate distilled from simulated ones; learn to push."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import arg

import rsr
from rsr.cli.command import (
    Count,
    Folder,
    Name,
    OptionalCount,
    OptionalFile,
    OptionalFolder,
    OptionalName,
    group,
    hint,
    say,
    show,
)
from rsr.common import ConfigError, progress

if TYPE_CHECKING:
    from rsr.scenarios.built_in.strike import Shape


def data(
    shape: Name, out: Folder, pairs: Count = 100_000, seed: Count = 0, mass: float = 0.12, mesh_unit: float = 1.0
) -> int:
    """Simulate strikes on a shape in MuJoCo. Begun again, it goes on where it was stopped.

    Args:
        shape: semi_cylinder, square, triangle, or a mesh file (.stl, .obj) of a convex prism, z up.
        out: folder for the strikes.
        pairs: how many; 20,000 are enough for a surrogate.
        seed: equal seeds give equal bytes.
        mass: of the struck block, kg.
        mesh_unit: length of one unit of the mesh, m; 0.001 where it is drawn in mm.
    """
    from rsr.scenarios.built_in.strike import load_shape

    with progress.bar("strikes") as advance:
        folder = rsr.learned.clash.generate_pairs(load_shape(shape, mass, mesh_unit), out, pairs, seed, advance)
    say(f"{folder}: {pairs} strikes")
    return 0


def train(data: Folder, out: Folder, steps: Count = 8_000, seed: Count = 0) -> int:
    """Distil simulated strikes into a surrogate and judge it on some it did not see.

    Args:
        data: folder of `rsr clash data`.
        out: folder for the surrogate.
        steps: of training; a tenth will do for a first look.
        seed: equal seeds give equal bytes.
    """
    with progress.bar("surrogate") as advance:
        definition = rsr.learned.clash.load_definition_of(data)
        learnt = rsr.learned.clash.distil(
            rsr.learned.clash.load_shape_of(data), rsr.learned.clash.load_pairs(data), steps, seed, advance, definition
        )
    evidence = {"accuracy": learnt.table_one.scaled, "accuracy_low_damping": learnt.bouncy.scaled}
    rsr.learned.clash.save_surrogate(out, learnt.surrogate, evidence | {"accuracy_raw": learnt.table_one.raw})
    say(f"{out}: predicts {learnt.table_one.scaled:.1%} of unseen simulated strikes within 10 %")
    low, raw = learnt.bouncy.scaled, learnt.table_one.raw
    hint(f"at damping ratios from lower on: {low:.1%}; with rad/s as they stand: {raw:.1%}")
    return 0


def adapt(
    strikes: Annotated[Path, arg(metavar="FILE")],
    out: Folder,
    shape: OptionalName = None,
    scenario: OptionalName = None,
    surrogate: OptionalFolder = None,
    mass: float = 0.12,
    mesh_unit: float = 1.0,
    seed: Count = 0,
) -> int:
    """Adapt a model of collisions to recorded strikes; show what it predicts of others before and after.

    Args:
        strikes: table, .csv or .parquet, SI units. With --shape or --surrogate: pre_vx, pre_vy, point_x, point_y,
            normal_x, normal_y, then post_vx, post_vy, post_wz, or rest_x, rest_y, rest_yaw, or both; in the struck
            block's frame. For a scene: poses and velocities before, and the velocity after; see docs/clash.md.
        out: folder for the adapted model, its picture and its figures.
        shape: struck by a round nose: semi_cylinder, square, triangle, or a mesh file of a convex prism, z up.
        scenario: in its place, a scenario whose collision has the base `scene`: any other impact in a plane.
        surrogate: in its place, a folder of `rsr clash train`; averaged with the law of rigid impact.
        mass, mesh_unit: of --shape, as for `rsr clash data`.
        seed: of everything random.
    """
    given = [
        name
        for name, value in (("--shape", shape), ("--scenario", scenario), ("--surrogate", surrogate))
        if value is not None
    ]
    if len(given) != 1:
        raise ConfigError(
            got=" and ".join(given) or "none of --shape, --scenario and --surrogate",
            expected="one of them",
            where="rsr clash adapt",
            next_step="Give --shape for a round nose on a prism, --scenario for any other impact in a plane.",
        )
    if scenario is not None:
        return _adapt_scene(scenario, strikes, out, seed)

    from rsr.scenarios.built_in.strike import load_shape

    base = (
        rsr.learned.clash.load_surrogate(surrogate)
        if surrogate
        else rsr.learned.clash.StruckBlock(load_shape(str(shape), mass, mesh_unit))
    )
    return _adapt_prism(base, strikes, out, seed)


def _adapt_prism(base: rsr.learned.clash.KnownBlock, strikes: Path, out: Path, seed: int) -> int:
    recorded = rsr.learned.clash.read_strikes(strikes, base.shape)
    with progress.bar("adaptation") as advance:
        compared = rsr.learned.clash.compare(base, recorded, seed=seed, advance=advance)
    model = rsr.learned.clash.adapt(base, recorded, seed)
    rsr.learned.clash.save_adapted(out, model)
    _show_adapted(out, base.shape, compared, rsr.learned.clash.learning_curve(base, recorded, seed=seed))
    say(f"{out}: adapted to {len(recorded) - len(model.rejected)} strikes, {compared.how}")
    if not rsr.learned.clash.velocities_known(recorded):
        hint("no velocities recorded: judged are those from which the fitted slide ends where the block came to rest")
    if isinstance(base, rsr.learned.clash.Surrogate) and (outside := int((~base.knows(recorded.strikes)).sum())):
        hint(f"{outside} strikes lie outside the speeds, angles and faces that the surrogate was trained on: law alone")
    _name_glitches(strikes, model.rejected)
    return 0


def _adapt_scene(scenario: str, strikes: Path, out: Path, seed: int) -> int:
    scene = rsr.learned.clash.ContactScene(rsr.scenarios.load_scenario(scenario))
    recorded = rsr.learned.clash.read_scene_strikes(strikes, scene)
    with progress.bar("adaptation") as advance:
        compared = rsr.learned.clash.compare_scene(scene, recorded, seed=seed, advance=advance)
    model = rsr.learned.clash.adapt_scene(scene, recorded, seed)
    rsr.calibration.save_calibration(rsr.pipelines.scene_calibration(model, compared), out)
    rsr.learned.clash.save_scene(out, model)
    _show_adapted(out, scene.shape, compared, rsr.learned.clash.scene_curve(scene, recorded, seed=seed))
    say(f"{out}: adapted to {len(recorded) - len(model.rejected)} impacts, {compared.how}")
    if recorded.dropped:
        hint(f"left out, since in these the two do not meet: {_rows(recorded.dropped)} of {strikes}")
    kept = sorted(set(range(len(recorded) + len(recorded.dropped))) - set(recorded.dropped))
    _name_glitches(strikes, tuple(kept[row] for row in model.rejected))
    return 0


def _show_adapted(out: Path, shape: Shape, compared: rsr.learned.clash.Comparison, curve: Mapping[int, float]) -> None:
    rsr.learned.clash.write_comparison(out / "comparison.json", compared, curve)
    rsr.common.write_bytes(out / "adaptation.png", rsr.reports.strike_picture(shape, compared, curve))
    show(rsr.reports.comparison_table(compared))


def _name_glitches(strikes: Path, rejected: tuple[int, ...]) -> None:
    if rejected:
        hint(f"left out as glitches: {_rows(rejected)} of {strikes}; the other strikes contradict them")


def _rows(rows: tuple[int, ...]) -> str:
    return "rows " + ", ".join(str(row + 1) for row in rows)


def push(
    adapted: Folder,
    out: Folder,
    simulator: Annotated[Literal["hybrid", "mujoco"], arg(metavar="S")] = "hybrid",
    steps: OptionalCount = None,
    recipe: Annotated[Literal["default", "sb3"], arg(metavar="R")] = "default",
    strikes: Count = 5,
    reward: Annotated[str, arg(metavar="R")] = "progress",
    trials: Count = 50,
    seed: Count = 0,
    json: OptionalFile = None,
) -> int:
    """Learn to push a block along routes, strike by strike, with soft actor-critic; a minute or less in the hybrid.

    Args:
        adapted: folder of `rsr clash adapt`, from strikes that say where the block came to rest.
        out: folder for the policy, its picture and its figures.
        simulator: hybrid, or mujoco: MuJoCo with the identified parameters, for comparison.
        steps: strikes to learn from; by default what the recipe needs.
        recipe: default, or sb3: 200,000 strikes with the defaults of Stable-Baselines3, as in the paper; takes an hour.
        strikes: on each segment, at most.
        reward: progress, or literal: the paper's Table V, under which waiting pays.
        trials: on each route, in the simulator that was trained in.
        seed: of everything random; equal seeds give equal policies.
        json: also write the figures to this file.
    """
    _check_positive(("--trials", trials), ("--steps", steps))
    model = rsr.learned.clash.load_adapted(adapted)
    if simulator == "hybrid":
        rollouts = rsr.learned.clash.HybridStrikes(model)
    elif model.identified is not None:
        rollouts = rsr.simulators.FastRollout(model.shape, model.identified.values, definition=model.base.definition)
    else:
        raise ConfigError(
            got="--simulator mujoco with a model that was adapted without a surrogate",
            expected="one with a surrogate, through which MuJoCo's parameters are identified",
            where="rsr clash push",
            next_step="Adapt with --surrogate, or leave --simulator out.",
        )
    task = rsr.learned.clash.SegmentTask(model.shape, most_strikes=strikes, reward=reward)
    settings = rsr.learned.clash.PushSettings() if recipe == "default" else rsr.learned.clash.SB3_DEFAULTS
    settings = settings if steps is None else replace(settings, train_steps=steps)
    with progress.bar(f"policy in {simulator}") as advance:
        trained = rsr.learned.clash.train_push(task, rollouts, settings, seed, advance)
    pushed = rsr.learned.clash.push_routes(
        trained.policy, tuple(rsr.learned.clash.ROUTES.values()), rollouts, trials, seed
    )
    trained.policy.save(out)
    figures = rsr.learned.clash.push_figures(trained, pushed) | {"simulator": simulator}
    for path in [out / "push.json", *([] if json is None else [json])]:
        rsr.common.write_json(path, figures)
    rsr.common.write_bytes(out / "push.png", rsr.reports.push_picture(task, pushed, {simulator: trained.checkpoints}))
    show(rsr.reports.push_table(pushed, f"in {simulator}, {trials} trials a route"))
    say(f"{out}: best of {len(trained.checkpoints)} checkpoints, trained in {trained.seconds:.0f} s")
    if trained.collapsed:
        hint("the training collapsed later on: try another seed, or fewer steps")
    return 0


def _check_positive(*options: tuple[str, int | None]) -> None:
    for name, value in options:
        if value is not None and value < 1:
            raise ConfigError(
                got=f"{name} {value}",
                expected="at least 1",
                where="rsr clash push",
                next_step="Leave it out: the default will do.",
            )


clash = group(
    "clash",
    "Model collisions: `clash adapt`, `clash push` along routes; `clash data` and `clash train` for a surrogate.",
    (adapt, push, data, train),
)
