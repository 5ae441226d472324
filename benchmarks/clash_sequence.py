"""Pushing along routes by strikes: policies trained in the hybrid against policies trained in MuJoCo, on stand-ins.

Both simulators know the same ten strikes: MuJoCo by grid search, the hybrid by adaptation, both with the ground
friction that the slides told. On every judging stand-in one policy is trained in each, by the same recipe and seed;
the best checkpoint by success in its own simulator is carried out on the stand-in, whose strikes scatter.
Seeds differ from stand-in to stand-in, so intervals are over both.

    success_<rules>_<route>_<simulator>      share of trials that complete the route
    subgoals_<rules>_<route>_<simulator>     share of segments completed
    success_<rules>_<simulator>              mean over the routes; subgoals_ over the routes of several segments
    gain_<rules>, gain_<rules>_low, _high    success, hybrid minus MuJoCo, with its 95 % interval over the stand-ins
    gain_subgoals_<rules>*                   the same of sub-goals; gain_..._stands: whether zero is outside
    own_success_<rules>_<simulator>          segments that succeed in the policy's own simulator
    failed_<rules>_<simulator>               trainings that never came to half of the segments there; collapsed_: that
                                             lost them again after their best checkpoint (which is what is used)
    training_seconds_<simulator>             CPU time of one training, mean
    literal_*                                under Table V as it stands, in one hybrid: how often a policy arrives

Rules: `paper` (zone 0.08 m wide, sub-goals of 0.04 m radius, five strikes) and `narrow` (0.05 and 0.025 m). All
stand-ins are simulated. `--rules` takes some of them; without `paper`, Table V as it stands is left out too. With
`--keep FOLDER`, where the figures of each stand-in are kept, an interrupted run goes on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from _common import Figure, kept, run
from baselines.strikes.mujoco import grid_search

from rsr.common import bar, generator
from rsr.learned.clash import (
    ROUTES,
    HybridStrikes,
    PushSettings,
    Rollouts,
    SegmentTask,
    StruckBlock,
    TrainedPush,
    adapt,
    push_routes,
    train_push,
)
from rsr.realities import StrikeStandIn
from rsr.realities.strikes import JUDGING_SEEDS, TUNING_SEEDS
from rsr.scenarios.built_in.strike import Shape, Strikes, load_shape
from rsr.simulators import Collider, FastRollout

FITTED = 10
Rules = dict[str, dict[str, float]]
RULES: Rules = {"paper": {}, "narrow": {"half_width_m": 0.025, "reached_m": 0.025}}
SIMULATORS = ("hybrid", "mujoco")
FAILED = 0.5
Row = dict[str, float]


def measure(quick: bool, stand_ins: int, steps: int, trials: int, rules: str, keep: Path | None) -> dict[str, Figure]:
    """Train and carry out on all stand-ins; `quick`: one tuning stand-in, a tenth of everything."""
    wanted = {name: RULES[name] for name in rules.split(",")}
    seeds = TUNING_SEEDS[:1] if quick else JUDGING_SEEDS[:stand_ins]
    if quick:
        steps, trials = 2500, 4
    shape = load_shape("semi_cylinder")
    settings = PushSettings(train_steps=steps)
    rows = []
    with bar("stand-ins") as advance:
        for seed in seeds:
            make = partial(stand_in_figures, shape, seed, settings, trials, wanted)
            rows.append(kept(keep, f"stand-in-{seed}", make))
            advance(len(rows) / len(seeds), f"stand-in {seed}")
    figures = summed_up(rows, wanted) | (literal_figures(shape, settings) if "paper" in wanted else {})
    return figures | {"stand_ins": len(seeds), "training_strikes": steps, "trials": trials}


def stand_in_figures(shape: Shape, seed: int, settings: PushSettings, trials: int, rules: Rules) -> dict[str, Figure]:
    """Both policies under these rules on one stand-in."""
    figures: dict[str, Figure] = {}
    stand_in = StrikeStandIn(shape, seed)

    def reality(strikes: Strikes) -> np.ndarray:
        return np.asarray(stand_in.strike(strikes, rng).rest)

    for name, rollouts in simulators(shape, stand_in, seed).items():
        for rule, changed in rules.items():
            start_s = time.process_time()
            trained = train_push(SegmentTask(shape, **changed), rollouts, settings, seed)
            figures[f"training_seconds_{rule}_{name}"] = time.process_time() - start_s
            rng = generator(seed, "carry out", rule)
            figures |= dict(carried_out(f"{rule}_{{}}{name}", trained, reality, trials, seed))
    return figures


def simulators(shape: Shape, stand_in: StrikeStandIn, seed: int) -> dict[str, Rollouts]:
    """Hybrid and MuJoCo from the same ten strikes, with the same ground friction."""
    few = stand_in.record(FITTED)
    model = adapt(StruckBlock(shape), few, seed)
    friction = None if model.sliding is None else model.sliding.friction
    params = grid_search(Collider(shape), few, friction, seed)
    return {"hybrid": HybridStrikes(model), "mujoco": FastRollout(shape, params, threads=1)}


def carried_out(
    key: str, trained: TrainedPush, reality: Rollouts, trials: int, seed: int
) -> Iterator[tuple[str, float]]:
    """Routes on the stand-in, and what the training came to in its own simulator."""
    runs = push_routes(trained.policy, tuple(ROUTES.values()), reality, trials, seed)
    for done in runs:
        yield "success_" + key.format(f"{done.route.name}_"), done.success
        yield "subgoals_" + key.format(f"{done.route.name}_"), done.segments_completed
    longer = [done for done in runs if len(done.route) > 1]
    yield "success_" + key.format(""), float(np.mean([done.success for done in runs]))
    yield "subgoals_" + key.format(""), float(np.mean([done.segments_completed for done in longer]))
    yield "own_success_" + key.format(""), trained.best.success
    yield "failed_" + key.format(""), float(trained.best.success < FAILED)
    yield "collapsed_" + key.format(""), float(trained.collapsed)


def summed_up(rows: list[Row], rules: Rules) -> dict[str, Figure]:
    """Means over the stand-ins, sums of what went wrong, and gains with their intervals."""
    columns = {key: np.array([row[key] for row in rows]) for key in rows[0]}
    figures: dict[str, Figure] = {}
    for key, values in columns.items():
        counted = key.startswith(("failed", "collapsed"))
        figures[key] = int(values.sum()) if counted else float(values.mean())
    for name in SIMULATORS:
        times = [figures.pop(f"training_seconds_{rule}_{name}") for rule in rules]
        figures[f"training_seconds_{name}"] = float(np.mean(times))
    for rule in rules:
        for kind, title in (("success", f"gain_{rule}"), ("subgoals", f"gain_subgoals_{rule}")):
            hybrid, mujoco = (columns[f"{kind}_{rule}_{name}"] for name in SIMULATORS)
            figures |= interval(title, hybrid - mujoco)
    return figures


def interval(title: str, gains: np.ndarray) -> dict[str, Figure]:
    """Mean and 95 % interval by resampling stand-ins, each with the seed that its policies were trained from."""
    drawn = generator(0, "bootstrap").choice(gains, (10_000, len(gains))).mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    figures = {title: float(gains.mean()), f"{title}_low": float(low), f"{title}_high": float(high)}
    return figures | {f"{title}_stands": bool(low > 0 or high < 0)}


def literal_figures(shape: Shape, settings: PushSettings) -> dict[str, Figure]:
    """Table V as it stands, against the reading under which the task is learnt: same hybrid, same seed."""
    hybrid = simulators(shape, StrikeStandIn(shape, TUNING_SEEDS[0]), 0)["hybrid"]
    found = {
        reward: train_push(SegmentTask(shape, reward=reward), hybrid, settings, 0) for reward in ("literal", "progress")
    }
    return {f"literal_{reward}_own_success": trained.best.success for reward, trained in found.items()}


if __name__ == "__main__":
    run(measure, __doc__, stand_ins=len(JUDGING_SEEDS), steps=16_384, trials=40, rules=",".join(RULES), keep=None)
