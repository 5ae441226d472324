"""Rollouts and plans of strikes, hybrid against MuJoCo: the second half of `benchmarks/clash.py`.

Both simulators know the same ten strikes: MuJoCo by grid search, the hybrid by adaptation. Targets are where other
strikes came to rest, so they can be reached.
"""

from __future__ import annotations

import time

import numpy as np
from _common import Figure, best_seconds_in_turn
from baselines.strikes.mujoco import PlainRollout, grid_search
from strike_worlds.stand_ins import KINDS, UnseenStandIn

from rsr.common import generator, wrapped
from rsr.learned.clash import HybridStrikes, Rollouts, StruckBlock, adapt, fit_sliding, plan
from rsr.realities import StrikeStandIn
from rsr.realities.strikes import TUNING_SEEDS
from rsr.scenarios.built_in.strike import RecordedStrikes, Shape, Strikes, sample_strikes
from rsr.simulators import Collider, FastRollout, Slide

FITTED, POPULATION, REPEATS = 10, 60, 5


def planned_on(shape: Shape, kind: str, seed: int, targets: int) -> dict[str, Figure]:
    """Plan with both simulators and carry the plans out on one stand-in; means over its targets."""
    stand_in = UnseenStandIn(shape, kind, seed) if kind in KINDS else StrikeStandIn(shape, seed)
    recorded = stand_in.record(FITTED + targets)
    planners = planners_of(shape, recorded.take(slice(0, FITTED)), seed)
    rows = []
    for number in range(targets):
        target = np.asarray(recorded.rest)[FITTED + number]
        for name, rollouts in planners.items():
            start_s = time.perf_counter()
            found = plan(shape, rollouts, target, seed=number)
            took_s = time.perf_counter() - start_s
            far_m, turned_rad = carried_out(stand_in, found.strike, target, seed, number)
            rows.append((name, far_m, turned_rad, took_s, found.cost))
    columns = ("position_m", "orientation_rad", "seconds", "cost")
    return {"kind": kind} | {
        f"{column}_{name}": float(np.mean([row[place] for row in rows if row[0] == name]))
        for name in planners
        for place, column in enumerate(columns, start=1)
    }


def planners_of(shape: Shape, few: RecordedStrikes, seed: int) -> dict[str, Rollouts]:
    """Hybrid, MuJoCo at its best, and MuJoCo's impact with the hybrid's own sliding model; from the same strikes."""
    model = adapt(StruckBlock(shape), few, seed)
    collide = Collider(shape, at_once=POPULATION, threads=1)
    params = grid_search(collide, few, mujocos_friction(shape, few), seed)

    def with_our_sliding(strikes: Strikes) -> np.ndarray:
        impacts = collide(strikes, np.tile(params, (len(strikes), 1)))
        return np.zeros((len(strikes), 3)) if model.sliding is None else model.sliding(impacts.after)

    return {
        "hybrid": HybridStrikes(model),
        "mujoco": FastRollout(shape, params, at_once=POPULATION, threads=1),
        "mujoco_our_sliding": with_our_sliding,
    }


def simulators(shape: Shape, few: RecordedStrikes, seed: int) -> tuple[Rollouts, Rollouts, np.ndarray]:
    """Hybrid and MuJoCo from the same strikes, and MuJoCo's parameters."""
    model = adapt(StruckBlock(shape), few, seed)
    params = grid_search(Collider(shape), few, mujocos_friction(shape, few), seed)
    return HybridStrikes(model), PlainRollout(shape, params), params


def mujocos_friction(shape: Shape, few: RecordedStrikes) -> float:
    """Friction with which MuJoCo's own slides end nearest to where blocks came to rest: distances go as one over it."""
    sliding = fit_sliding(shape, few)
    if sliding is None or few.rest is None:
        raise ValueError("stand-ins record where blocks came to rest")
    slid = Slide(shape, np.array([0.3, sliding.friction, 0.3, 1.0]), threads=1)(few.after)[:, :2]
    return sliding.friction * float((slid**2).sum() / (slid * few.rest[:, :2]).sum())


def carried_out(
    stand_in: StrikeStandIn | UnseenStandIn, strike: Strikes, target: np.ndarray, seed: int, number: int
) -> tuple[float, float]:
    """Mean distance (m) and turn (rad) from the target over some repetitions, each with the stand-in's scatter."""
    again = strike.take(np.zeros(REPEATS, int))
    rests = np.asarray(stand_in.strike(again, generator(seed, "carry out", number)).rest)
    distance = np.linalg.norm(rests[:, :2] - target[:2], axis=1)
    return float(distance.mean()), float(np.abs(wrapped(rests[:, 2] - target[2])).mean())


def planning_summary(name: str, rows: list[dict[str, Figure]]) -> dict[str, Figure]:
    """Means over the stand-ins of one shape, or of one kind, and the ratios of their errors."""
    columns = {key: np.array([float(row[key]) for row in rows]) for key in rows[0] if key not in ("kind", "shape")}
    figures: dict[str, Figure] = {}
    units = {"position_m": ("position_mm", 1e3), "orientation_rad": ("orientation_rad", 1), "cost": ("cost_mm2", 1e6)}
    for simulator in ("hybrid", "mujoco", "mujoco_our_sliding"):
        for column, (unit, scale) in units.items():
            figures[f"plan_{unit}_{name}_{simulator}"] = scale * float(columns[f"{column}_{simulator}"].mean())
    figures[f"speedup_planning_{name}"] = float(columns["seconds_mujoco"].mean() / columns["seconds_hybrid"].mean())
    for ending in ("", "_our_sliding"):
        figures |= ratio_figures(
            f"plan_position_ratio_{name}{ending}", columns["position_m_hybrid"], columns[f"position_m_mujoco{ending}"]
        )
    return figures


def ratio_figures(key: str, ours: np.ndarray, others: np.ndarray) -> dict[str, Figure]:
    """Ratio of means, with its 95 % interval by resampling stand-ins."""
    drawn = generator(0, "bootstrap").integers(len(ours), size=(10_000, len(ours)))
    low, high = np.quantile(ours[drawn].mean(axis=1) / others[drawn].mean(axis=1), [0.025, 0.975])
    return {key: float(ours.mean() / others.mean()), f"{key}_low": float(low), f"{key}_high": float(high)}


def speed_figures(shape: Shape) -> dict[str, Figure]:
    """Wall times of rollouts and plans, taken in turn in one process with one thread."""
    recorded = StrikeStandIn(shape, TUNING_SEEDS[0]).record(FITTED + 1)
    hybrid, plain, params = simulators(shape, recorded.take(slice(0, FITTED)), 0)
    fast = FastRollout(shape, params, at_once=POPULATION, threads=1)
    strikes = sample_strikes(shape, POPULATION, generator(0, "speed"))
    one = [strikes.take(slice(row, row + 1)) for row in range(5)]
    single = best_seconds_in_turn([lambda s=s: [s(strike) for strike in one] for s in (hybrid, plain, fast)], 5)
    batched = best_seconds_in_turn([lambda s=s: s(strikes) for s in (hybrid, plain, fast)], 3)
    target = recorded.rest[FITTED]
    planning = best_seconds_in_turn([lambda s=s: plan(shape, s, target) for s in (hybrid, plain, fast)], 1)
    return {
        "speedup_strike_single": single[1] / single[0],
        "speedup_strike_single_fast": single[2] / single[0],
        "speedup_strike_batched_plain": batched[1] / batched[0],
        "speedup_strike_batched": batched[2] / batched[0],
        "speedup_planning": planning[1] / planning[0],
        "speedup_planning_fast": planning[2] / planning[0],
        "hybrid_strike_ms_single": 1000 * single[0] / len(one),
        "hybrid_strike_ms_batched": 1000 * batched[0] / POPULATION,
        "hybrid_plan_ms": 1000 * planning[0],
    }
