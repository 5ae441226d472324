"""Accuracy by kind of reality, with recordings that err, and what the surrogate adds: a part of `benchmarks/clash.py`.

Two kinds, `rigid` and `compliant`, are of one family with the product's law; `patch` and `flexible` obey laws that
stand nowhere in it (`strike_worlds`). Every arm is fitted to the same ten strikes and judged on the same hundred.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np
from _common import Figure, kept
from baselines.strikes.mujoco import grid_search, mujoco_base
from strike_worlds.disturbed import with_errors, with_glitches
from strike_worlds.stand_ins import DEVELOPMENT, JUDGED, KINDS, UnseenStandIn

from rsr.common import Advance, generator
from rsr.learned.clash import (
    CURVE,
    TOLERANCE,
    Adapted,
    BaseModel,
    StruckBlock,
    Surrogate,
    adapt,
    blend,
    relative_errors,
)
from rsr.realities import StrikeStandIn
from rsr.realities.strikes import JUDGING_SEEDS, TUNING_SEEDS
from rsr.scenarios.built_in.strike import RecordedStrikes, Shape
from rsr.simulators import Collider

FITTED, RESERVED, JUDGED_STRIKES = 10, 50, 100
FAMILIES = ("rigid", "compliant")
KEYS = (
    "accuracy_unseen_kinds",
    "gain_unseen_kinds",
    "glitch_loss",
    "surrogate_gain",
    "coverage_worst_kind",
)
Row = dict[str, Figure]


def kind_rows(
    shape: Shape, surrogate: Surrogate | None, quick: bool, stand_ins: int, keep: Path | None, advance: Advance
) -> list[Row]:
    """Judge all arms on stand-ins of the four kinds, with one shape, a row each; without a surrogate, not its arms."""
    worlds = worlds_of(quick, stand_ins, stand_ins)
    rows = []
    for place, (kind, seed) in enumerate(worlds, start=1):
        rows.append(kept(keep, f"{shape.name}-{kind}-{seed}", partial(world_row, shape, surrogate, kind, seed)))
        advance(place / len(worlds), f"{kind} {seed}")
    return rows


def worlds_of(quick: bool, of_family: int, unseen: int) -> list[tuple[str, int]]:
    """Kinds and seeds of stand-ins: so many of the law's own family, and so many of each unseen kind."""
    known, judged = (TUNING_SEEDS[:2], DEVELOPMENT[:1]) if quick else (JUDGING_SEEDS[:of_family], JUDGED[:unseen])
    return [(kind, seed) for seed in judged for kind in KINDS] + [(FAMILIES[seed % 2], seed) for seed in known]


def world_row(shape: Shape, surrogate: Surrogate | None, kind: str, seed: int) -> Row:
    """Accuracy of every arm on one stand-in; glitches and errors are tried on the unseen kinds."""
    unseen = kind in KINDS
    world = UnseenStandIn(shape, kind, seed) if unseen else StrikeStandIn(shape, seed)
    recorded = world.record(RESERVED + JUDGED_STRIKES)
    few, held_out = parts(recorded)
    block = StruckBlock(shape)
    model, blended = adapt(block, few, seed), None if surrogate is None else adapt(surrogate, few, seed)
    row: Row = {"kind": kind, "shape": shape.name, "covered": float(model.collision.inside(held_out).mean())}
    row |= {
        f"accuracy_{name}": accuracy(shape, arm, held_out)
        for name, arm in arms(shape, model, blended, few, seed).items()
    }
    for count in sorted({*CURVE} - {FITTED}):
        more = adapt(block, recorded.take(slice(0, count)), seed)
        row[f"accuracy_after_{count}"] = accuracy(shape, more, held_out)
    if isinstance(world, UnseenStandIn):
        row |= {"material": world.material, "surface": world.surface}
        rng = generator(seed, "disturbed", kind, shape.name)
        glitched = adapt(block, with_glitches(few, rng), seed)
        row["accuracy_glitched"] = accuracy(shape, glitched, held_out)
        few, held_out = parts(with_errors(recorded, rng))
        erring = adapt(block, few, seed)
        row["accuracy_errors"] = accuracy(shape, erring, held_out)
        if surrogate is not None:
            row["accuracy_errors_with_surrogate"] = accuracy(shape, adapt(surrogate, few, seed), held_out)
        row["covered_errors"] = float(erring.collision.inside(held_out).mean())
    return row


def arms(
    shape: Shape, model: Adapted, blended: Adapted | None, few: RecordedStrikes, seed: int
) -> dict[str, BaseModel]:
    """Methods on the same strikes. The scene is MuJoCo itself, simulated impact by impact, with no distillation."""
    collide = Collider(shape, model.base.definition, threads=1)
    friction = None if model.sliding is None else model.sliding.friction
    scene = mujoco_base(collide, grid_search(collide, few, friction, seed))
    averaged = blend(shape, (scene, model.law), few)
    distilled: dict[str, BaseModel] = {}
    if blended is not None:
        distilled = {"with_surrogate": blended, "surrogate_residual": blended.collision.members[0]}
    return distilled | {
        "adapted": model,
        "analytic": model.law,
        "mujoco_grid": scene,
        "scene_residual": averaged.members[0],
        "scene_and_law": averaged,
    }


def parts(recorded: RecordedStrikes) -> tuple[RecordedStrikes, RecordedStrikes]:
    return recorded.take(slice(0, FITTED)), recorded.take(slice(RESERVED, None))


def accuracy(shape: Shape, model: BaseModel | Adapted, held_out: RecordedStrikes) -> float:
    errors = relative_errors(model(held_out.strikes), held_out.after, shape.gyration_m)
    return float((errors < TOLERANCE).mean())


def kinds_summary(rows: list[Row], shapes: tuple[str, ...]) -> dict[str, Figure]:
    """Figures by kind, shape, material and surface; intervals are 95 %, by resampling stand-ins."""
    figures: dict[str, Figure] = {}
    distilled = "accuracy_with_surrogate" in rows[0]
    for kind in (*FAMILIES, *KINDS):
        own = [row for row in rows if row["kind"] == kind]
        names = [key for key in own[0] if key.startswith("accuracy_")]
        for shape in shapes:
            there = [row for row in own if row["shape"] == shape]
            figures |= {f"{name}_{kind}_{shape}": float(np.mean(column(there, name))) for name in names if there}
        figures[f"coverage_{kind}"] = float(np.mean(column(own, "covered")))
        if distilled:
            figures |= interval(f"surrogate_gain_{kind}", difference(own, "with_surrogate", "adapted"))
    unseen = [row for row in rows if row["kind"] in KINDS]
    for group, values in (("material", ("resin", "nylon", "petg")), ("surface", ("low", "high"))):
        for value in values:
            there = [row for row in unseen if row[group] == value]
            figures |= {f"accuracy_{group}_{value}": float(np.mean(column(there, "accuracy_adapted")))} if there else {}
    first = [row for row in unseen if row["shape"] == shapes[0]]
    figures |= interval("accuracy_unseen_kinds", column(first, "accuracy_adapted"))
    figures |= interval("gain_unseen_kinds", difference(first, "adapted", "mujoco_grid"))
    figures |= interval("glitch_loss", difference(unseen, "adapted", "glitched"))
    figures |= interval("error_loss", difference(unseen, "adapted", "errors"))
    figures |= interval("scene_gain_unseen", difference(unseen, "scene_and_law", "adapted"))
    figures["coverage_errors"] = float(np.mean(column(unseen, "covered_errors")))
    if distilled:
        figures |= interval("surrogate_gain_errors", difference(unseen, "errors_with_surrogate", "errors"))
        # The best of five means of noise alone would be above zero: read it with its interval, of the same kind.
        gains = (float(figures[f"surrogate_gain_{kind}"]) for kind in (*FAMILIES, *KINDS, "errors"))
        figures["surrogate_gain"] = max(gains)
    coverages = [float(figures[f"coverage_{kind}"]) for kind in (*FAMILIES, *KINDS)]
    return figures | {"coverage_worst_kind": max(coverages, key=lambda share: abs(share - 0.9))}


def column(rows: Iterable[Row], name: str) -> np.ndarray:
    return np.array([float(row[name]) for row in rows])


def difference(rows: list[Row], better: str, worse: str) -> np.ndarray:
    return column(rows, f"accuracy_{better}") - column(rows, f"accuracy_{worse}")


def interval(name: str, values: np.ndarray) -> dict[str, Figure]:
    drawn = generator(0, "bootstrap", name).integers(len(values), size=(10_000, len(values)))
    low, high = np.quantile(values[drawn].mean(axis=1), [0.025, 0.975])
    return {name: float(values.mean()), f"{name}_low": float(low), f"{name}_high": float(high)}
