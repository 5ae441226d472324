"""`HybridSimulator` against `MujocoSimulator`, and single strikes against an expert's loop: a part of `clash.py`.

Times are CPU seconds of one thread, the least of several turns, so that a busy machine disturbs them little.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from _common import Figure
from _strike_planning import mujocos_friction, simulators
from baselines.strikes.mujoco import ExpertRollout

from rsr.common import generator, rotated, yaw_of
from rsr.learned.clash import HybridSimulator, StruckBlock, adapt
from rsr.realities import StrikeStandIn
from rsr.scenarios import load_scenario
from rsr.scenarios.built_in.strike import PARAMETERS, Definition, RecordedStrikes, Shape, sample_strikes
from rsr.simulators import MujocoSimulator, SettledHeights

SCENARIO_OF = {"semi_cylinder": "strike", "square": "strike_square", "triangle": "strike_triangle"}
FITTED, WINDOWS, STEPS, FAR_M = 10, 60, 300, 0.02
KEYS = ("hybrid_simulator_speedup", "speedup_single_over_expert", "speedup_population_over_expert")


def simulator_figures(shape: Shape, seed: int) -> dict[str, Figure]:
    """Time of sixty windows, and distance from where blocks came to rest, with one set of parameters for both."""
    recorded = StrikeStandIn(shape, seed).record(FITTED + WINDOWS)
    few, held_out = recorded.take(slice(0, FITTED)), recorded.take(slice(FITTED, None))
    model = adapt(StruckBlock(shape), few, seed)
    hybrid, _, params = simulators(shape, few, seed)
    params = np.clip(params, PARAMETERS.lower, PARAMETERS.upper)
    params[1] = mujocos_friction(shape, few)
    scenario = load_scenario(SCENARIO_OF[shape.name])
    states, actions = windows(shape, held_out, params)
    with HybridSimulator(scenario, model) as own, MujocoSimulator(scenario, threads=1) as plain:
        rolled = [lambda s=s: s.rollout(states, actions, params) for s in (own, plain)]
        missed = [distance(function(), states, held_out) for function in rolled]
        seconds = cpu_seconds_in_turn(rolled, 3)
    experts = [ExpertRollout(shape, params, step_s) for step_s in (0.002, 0.004)]
    strikes = sample_strikes(shape, WINDOWS, generator(0, "speed"))
    ones = [strikes.take(slice(row, row + 1)) for row in range(20)]
    single = cpu_seconds_in_turn([lambda s=s: [s(one) for one in ones] for s in (hybrid, *experts)], 3)
    population = cpu_seconds_in_turn([lambda s=s: s(strikes) for s in (hybrid, *experts)], 3)
    return {
        "hybrid_simulator_speedup": seconds[1] / seconds[0],
        "hybrid_simulator_seconds": seconds[0],
        "mujoco_simulator_seconds": seconds[1],
        "hybrid_simulator_rest_mm": 1000 * missed[0],
        "mujoco_simulator_rest_mm": 1000 * missed[1],
        "speedup_single_over_expert": min(single[1:]) / single[0],
        "speedup_population_over_expert": min(population[1:]) / population[0],
        "hybrid_strike_cpu_ms_single": 1000 * single[0] / len(ones),
        "hybrid_strike_cpu_ms_population": 1000 * population[0] / WINDOWS,
        "expert_strike_cpu_ms": 1000 * min(single[1:]) / len(ones),
    }


def windows(shape: Shape, recorded: RecordedStrikes, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """States before the strikes [N, 15], and forces on the rail [N, T, 1] that brake the striker from the hit on."""
    strikes, definition = recorded.strikes, Definition()
    states = np.zeros((len(strikes), 15))
    states[:, :2] = rotated(strikes.normal * definition.nose_radius_m - strikes.point_m, strikes.yaw_rad)
    states[:, 2] = SettledHeights(shape, definition)(params[3])
    states[:, 3], states[:, 6] = np.cos(strikes.yaw_rad / 2), np.sin(strikes.yaw_rad / 2)
    states[:, 7], states[:, 14] = -FAR_M, strikes.speed_m_s
    time_s = np.arange(STEPS) * load_scenario(SCENARIO_OF[shape.name]).control_dt_s
    hit_s = FAR_M / strikes.speed_m_s[:, None]
    # As long as stops an arm that has lost some of its speed to the block: one that creeps on would push it again.
    braking = (time_s > hit_s) & (time_s < hit_s + 0.97 * strikes.speed_m_s[:, None] / definition.braking_m_s2)
    force_n = -definition.striker_mass_kg * definition.braking_m_s2
    return states, (force_n * braking)[..., None]


def distance(path: np.ndarray, states: np.ndarray, recorded: RecordedStrikes) -> float:
    """RMS distance, m, of where blocks end from where they came to rest."""
    if recorded.rest is None:
        raise ValueError("stand-ins record where blocks came to rest")
    moved = rotated(path[:, -1, :2] - states[:, :2], -yaw_of(states[:, 3:7]))
    return float(np.sqrt(((moved - recorded.rest[:, :2]) ** 2).sum(axis=1).mean()))


def cpu_seconds_in_turn(functions: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Least CPU time of each call; they take turns, after one call of each to warm up."""
    times: list[list[float]] = [[] for _ in functions]
    for turn in range(rounds + 1):
        for function, own in zip(functions, times, strict=True):
            start_s = time.process_time()
            function()
            if turn:
                own.append(time.process_time() - start_s)
    return [min(own) for own in times]
