"""Accuracy and speed of an adapted surrogate of collisions, on stand-ins that obey another law than MuJoCo.

    accuracy_<shape>               share of 100 other strikes predicted within 10 %, mean over the judging stand-ins
    accuracy_<shape>_std           spread over the stand-ins
    accuracy_<shape>_<method>      the same of other methods; accuracy_mujoco_grid is their mean over the shapes
    accuracy_raw_<shape>           with m/s and rad/s in one norm, as they stand
    curve_<shape>_<n>              accuracy after 3, 5, 10, 20, 50 strikes
    inside_90_<shape>              share of measured components inside their 90 % intervals
    control_<shape>_*              accuracy where MuJoCo is right: adapted, identified alone, and what adapting loses
    base_accuracy_<shape>          of the surrogate on simulated strikes that it did not see, ranges of Table I
    data_cpu_seconds_<shape>, base_cpu_seconds_<shape>, same_bytes_<shape>
    speedup_strike_single          one strike, impact to rest: MuJoCo as anyone would write it over the hybrid
    speedup_strike_batched         60 strikes: MuJoCo at its best (fine steps for the impact only) over the hybrid
    speedup_planning, _fast        wall time of one CMA-ES plan, 12 x 30: both kinds of MuJoCo over the hybrid
    plan_position_mm_<shape>_*     distance from the target when plans are carried out on stand-ins, with their scatter
    plan_position_ratio_<shape>    hybrid over MuJoCo at its best; _low, _high: its 95 % interval over the stand-ins;
                                   _our_sliding: over MuJoCo's impact with the hybrid's own sliding model; all kinds of
                                   reality alike; plan_position_ratio_<kind> over all shapes
    planning_ratio_worst_shape     the largest of these ratios
    plan_orientation_rad_<shape>_* the turn by which those plans missed

By kind of reality (`--parts kinds`, see `_strike_kinds.py`; rigid and compliant are of the law's own family, patch and
flexible are not), intervals `_low` and `_high` are 95 %, over the stand-ins:

    accuracy_<arm>_<kind>_<shape>  every arm: with and without the surrogate, with MuJoCo's own scene in its place;
                                   after_3, after_5, after_20, after_50: adapted to so many strikes
    accuracy_unseen_kinds          adapted, semi-cylinder, patch and flexible; accuracy_material_*, accuracy_surface_*
    gain_unseen_kinds              the same less MuJoCo with a grid search
    glitch_loss, error_loss        what 15 % glitches cost, and normals and points that err by 1 degree and 0.7 mm
    surrogate_gain_<kind>          with the surrogate less without it; _errors: on recordings that err, patch and
                                   flexible; surrogate_gain is the largest of the five
    coverage_<kind>                share of components in their 90 % intervals; coverage_worst_kind is farthest from 0.9

Against an expert's MuJoCo (`--parts speed`, see `_strike_simulators.py`), in CPU time:

    hybrid_simulator_speedup       60 windows: MujocoSimulator over HybridSimulator; *_rest_mm is how far both are off
    speedup_single_over_expert     a two-step loop, the faster of 2 and 4 ms beside 0.25 ms, over the hybrid
    speedup_population_over_expert the same, 60 strikes

On contacts that no round nose makes (`--parts contacts`, see `_strike_contacts.py`; flat, corner, wall, free):

    contact_kinds_error_ratio      mean velocity error of the adapted scene over that of MuJoCo fitted by CMA-ES, both
                                   with the right geometry, from ten impacts; contact_error_ratio_<kind>
    contact_kinds_rms_ratio        the same of root mean squares, which a few impacts that strike twice decide
    contact_error_<arm>_<kind>     m/s: adapted, mujoco_cmaes, fitted (without the residual), nominal
    contact_coverage_<kind>        share of components in their 90 % intervals

`--parts` takes some of methods, control, plans, speed, kinds and contacts; what was not measured is -1. With
`--pairs 0` nothing is distilled: kinds then leave out the arms that have a surrogate.

With `--keep FOLDER`, where surrogates and figures of each stand-in are kept, an interrupted run goes on where it was.
All stand-ins are simulated. MuJoCo's level on them is a calibration (their ranges were frozen when MuJoCo with a grid
search came to about 0.6 on tuning seeds); how methods compare is the result. Nothing is tuned on the judging seeds.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from _common import Figure, kept, run
from _strike_contacts import KEYS as CONTACT_KEYS, contact_figures
from _strike_kinds import KEYS as KIND_KEYS, kind_rows, kinds_summary, worlds_of
from _strike_planning import planned_on, planning_summary, speed_figures
from _strike_simulators import KEYS as SPEED_KEYS, simulator_figures
from baselines.strikes.control import StrikeControl
from baselines.strikes.methods import METHODS, MethodInputs
from baselines.strikes.paper import (
    RECIPES,
    STEPS as PAPER_STEPS,
    PaperSurrogate,
    distil_as_paper,
    load_paper_surrogate,
    save_paper_surrogate,
)

from rsr.common import Advance, bar, sha256
from rsr.learned.clash import (
    CURVE,
    STEPS,
    TOLERANCE,
    Blended,
    StruckBlock,
    Surrogate,
    adapt,
    distil,
    fit_sliding,
    generate_pairs,
    load_pairs,
    load_surrogate,
    relative_errors,
    save_surrogate,
)
from rsr.realities import StrikeStandIn
from rsr.realities.strikes import JUDGING_SEEDS, TUNING_SEEDS
from rsr.scenarios.built_in.strike import SHAPES, RecordedStrikes, Shape, load_shape

FITTED, RESERVED, JUDGED = 10, 50, 100
TARGETS = 3
PARTS = ("methods", "control", "plans", "speed", "kinds", "contacts")
DISTILLED = {"methods", "control", "kinds"}
"""Parts that compare with a surrogate; the product itself needs none."""
NOT_MEASURED: dict[str, Figure] = dict.fromkeys(
    (*KIND_KEYS, *SPEED_KEYS, *CONTACT_KEYS, "planning_ratio_worst_shape"), -1
)


@dataclass(frozen=True)
class Networks:
    """The product's surrogate, and those of the paper's recipes by name."""

    surrogate: Surrogate
    papers: dict[str, PaperSurrogate]


def measure(quick: bool, pairs: int, stand_ins: int, targets: int, parts: str, keep: Path | None) -> dict[str, Figure]:
    """Go through the shapes; `quick`: one shape, two tuning stand-ins, a tenth of the training."""
    wanted = chosen_parts(parts)
    shapes, targets = (SHAPES[:1], 1) if quick else (SHAPES, targets)
    if wanted == ("contacts",):
        shapes = ()
    if pairs == 0 and {"methods", "control"} & set(wanted):
        raise SystemExit("got --pairs 0; methods and control compare with a surrogate: expected some thousands")
    pairs, seeds = (3000, TUNING_SEEDS[:2]) if quick else (pairs, JUDGING_SEEDS[:stand_ins])
    figures: dict[str, Figure] = {}
    kinds: list[dict[str, Figure]] = []
    planned: list[dict[str, Figure]] = []
    for name in shapes:
        shape = load_shape(name)
        networks = None
        if DISTILLED & set(wanted) and pairs:
            networks, cost = distilled(shape, pairs, quick, keep, papers="methods" in wanted)
            figures |= cost
        rows: dict[str, list[dict[str, Figure]]] = {"methods": [], "control": []}
        with bar(name) as advance:
            for place, seed in enumerate(seeds, start=1):
                for part in [part for part in rows if part in wanted]:
                    judge = partial(stand_in_figures, quick=quick) if part == "methods" else control_figures
                    rows[part].append(kept(keep, f"{name}-{seed}-{part}", partial(judge, shape, networks, seed)))
                advance(place / len(seeds), f"stand-in {seed}")
        for part, summary in {"methods": summed_up, "control": control_summary}.items():
            figures |= summary(name, rows[part]) if part in wanted else {}
        if "plans" in wanted:
            with bar(f"plans, {name}") as advance:
                planned += plan_rows(shape, quick, stand_ins, targets, keep, advance)
            figures |= planning_summary(name, [row for row in planned if row["shape"] == name])
        if "kinds" in wanted:
            with bar(f"kinds, {name}") as advance:
                surrogate = None if networks is None else networks.surrogate
                kinds += kind_rows(shape, surrogate, quick, stand_ins, keep, advance)
        if name == shapes[0] and "speed" in wanted:
            figures |= speed_figures(shape)
            figures |= simulator_figures(shape, JUDGING_SEEDS[0])
    if "methods" in wanted:
        grids = [figures[f"accuracy_{name}_mujoco_grid"] for name in shapes]
        figures["accuracy_mujoco_grid"] = float(np.mean(grids))
    if "plans" in wanted:
        for kind in dict.fromkeys(str(row["kind"]) for row in planned):
            figures |= planning_summary(kind, [row for row in planned if row["kind"] == kind])
        figures["planning_ratio_worst_shape"] = max(
            float(figures[f"plan_position_ratio_{name}{arm}"]) for name in shapes for arm in ("", "_our_sliding")
        )
    figures |= kinds_summary(kinds, shapes) if kinds else {}
    if "contacts" in wanted:
        with bar("contacts") as advance:
            figures |= contact_figures(quick, stand_ins, keep, advance)
    return NOT_MEASURED | figures | {"stand_ins": len(seeds), "pairs": pairs}


def plan_rows(
    shape: Shape,
    quick: bool,
    stand_ins: int,
    targets: int,
    keep: Path | None,
    advance: Advance,
) -> list[dict[str, Figure]]:
    """Plans on stand-ins of all kinds, as many of each."""
    rows = []
    worlds = worlds_of(quick, stand_ins, stand_ins // 2)
    for place, (kind, seed) in enumerate(worlds, start=1):
        make = partial(planned_on, shape, kind, seed, targets)
        rows.append(kept(keep, f"{shape.name}-{kind}-{seed}-plans", make) | {"shape": shape.name})
        advance(place / len(worlds), f"{kind} {seed}")
    return rows


def chosen_parts(parts: str) -> tuple[str, ...]:
    """Names of the parts to run, from words with commas between them."""
    chosen = PARTS if parts == "all" else tuple(parts.split(","))
    if unknown := [part for part in chosen if part not in PARTS]:
        raise SystemExit(f"got --parts {','.join(unknown)}; expected all, or some of {','.join(PARTS)}")
    return chosen


def distilled(
    shape: Shape, pairs: int, quick: bool, keep: Path | None, papers: bool
) -> tuple[Networks, dict[str, Figure]]:
    """Distil the product's network, with `papers` those of the paper's recipes too, and measure the cost."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) if keep is None else keep
        figures = kept(keep, f"{shape.name}-surrogate", partial(distil_own, shape, pairs, quick, folder))
        found: dict[str, PaperSurrogate] = {}
        if papers:
            figures |= kept(keep, f"{shape.name}-papers", partial(distil_papers, shape, pairs, quick, folder))
            found = {name: load_paper_surrogate(folder / f"{shape.name}-{name}") for name in RECIPES}
        return Networks(load_surrogate(folder / f"{shape.name}-default"), found), figures


def distil_own(shape: Shape, pairs: int, quick: bool, folder: Path) -> dict[str, Figure]:
    """Write the product's surrogate; figures of data and surrogate."""
    with tempfile.TemporaryDirectory() as made:
        start_s = time.process_time()
        data = generate_pairs(shape, Path(made) / "strikes", pairs)
        data_s = time.process_time() - start_s
        first, again = Path(made) / "first", Path(made) / "again"
        same = sha256(generate_pairs(shape, first, 2000)) == sha256(generate_pairs(shape, again, 2000, threads=1))
        known = load_pairs(data)
    start_s = time.process_time()
    learnt = distil(shape, known, STEPS // 10 if quick else STEPS)
    base_s = time.process_time() - start_s
    save_surrogate(folder / f"{shape.name}-default", learnt.surrogate)
    return {
        f"base_accuracy_{shape.name}": learnt.table_one.scaled,
        f"data_cpu_seconds_{shape.name}": data_s,
        f"base_cpu_seconds_{shape.name}": base_s,
        f"same_bytes_{shape.name}": same,
    }


def distil_papers(shape: Shape, pairs: int, quick: bool, folder: Path) -> dict[str, Figure]:
    """Write the networks of the paper's recipes, from the same strikes as the product's."""
    found = {}
    with tempfile.TemporaryDirectory() as made:
        known = load_pairs(generate_pairs(shape, Path(made) / "strikes", pairs))
    for recipe in RECIPES:
        paper, found[recipe] = distil_as_paper(shape, known, recipe, PAPER_STEPS // 10 if quick else PAPER_STEPS)
        save_paper_surrogate(folder / f"{shape.name}-{recipe}", paper)
    return {f"base_accuracy_{shape.name}_paper": found["paper"].scaled}


def stand_in_figures(shape: Shape, networks: Networks, seed: int, quick: bool) -> dict[str, float]:
    """Judge every method after ten strikes on one stand-in, and the learning curve."""
    recorded = StrikeStandIn(shape, seed).record(RESERVED + JUDGED)
    held_out = recorded.take(slice(RESERVED, None))
    figures = dict(method_figures(shape, networks, recorded.take(slice(0, FITTED)), held_out, seed))
    figures[f"curve_{shape.name}_{FITTED}"] = figures[f"accuracy_{shape.name}"]
    for count in CURVE[:2] if quick else set(CURVE) - {FITTED}:
        block = StruckBlock(shape, networks.surrogate.definition)
        model = adapt(block, recorded.take(slice(0, count)), seed)
        figures[f"curve_{shape.name}_{count}"] = accuracy_of(shape, model(held_out.strikes), held_out)
    return figures


def method_figures(
    shape: Shape, networks: Networks, few: RecordedStrikes, held_out: RecordedStrikes, seed: int
) -> Iterator[tuple[str, float]]:
    sliding = fit_sliding(shape, few)
    friction = None if sliding is None else sliding.friction
    inputs = MethodInputs(networks.surrogate, networks.papers, few, friction, seed)
    for name, method in METHODS.items():
        model = method(inputs)
        predicted = model(held_out.strikes)
        ending = "" if name == "adapted" else f"_{name}"
        yield f"accuracy_{shape.name}{ending}", accuracy_of(shape, predicted, held_out)
        if name == "adapted" and isinstance(model, Blended):
            yield f"accuracy_raw_{shape.name}", accuracy_of(shape, predicted, held_out, raw=True)
            yield f"inside_90_{shape.name}", float(model.inside(held_out).mean())


def accuracy_of(shape: Shape, predicted: np.ndarray, measured: RecordedStrikes, raw: bool = False) -> float:
    errors = relative_errors(predicted, measured.after, 1.0 if raw else shape.gyration_m)
    return float((errors < TOLERANCE).mean())


def summed_up(name: str, rows: list[dict[str, float]]) -> dict[str, Figure]:
    """Mean over the stand-ins of every figure; spread of the two that matter most."""
    figures: dict[str, Figure] = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
    for key in (f"accuracy_{name}", f"accuracy_{name}_mujoco_grid"):
        figures[f"{key}_std"] = float(np.std([row[key] for row in rows]))
    gains = [row[f"accuracy_{name}"] - row[f"accuracy_{name}_mujoco_grid"] for row in rows]
    return figures | {f"gain_over_mujoco_grid_{name}": float(np.mean(gains))}


def control_figures(shape: Shape, networks: Networks, seed: int) -> dict[str, Figure]:
    """Judge adapted and identified alone where MuJoCo is right."""
    recorded = StrikeControl(shape, seed).record(FITTED + JUDGED)
    few, held_out = recorded.take(slice(0, FITTED)), recorded.take(slice(FITTED, None))
    inputs = MethodInputs(networks.surrogate, networks.papers, few, None, seed)
    return {
        name: accuracy_of(shape, METHODS[name](inputs)(held_out.strikes), held_out)
        for name in ("adapted", "identified")
    }


def control_summary(name: str, rows: list[dict[str, Figure]]) -> dict[str, Figure]:
    adapted, identified = (float(np.mean([row[key] for row in rows])) for key in ("adapted", "identified"))
    shares = {f"control_{name}_adapted": adapted, f"control_{name}_identified": identified}
    return shares | {f"control_{name}_loss": identified - adapted}


if __name__ == "__main__":
    run(measure, __doc__, pairs=100_000, stand_ins=len(JUDGING_SEEDS), targets=TARGETS, parts="all", keep=None)
