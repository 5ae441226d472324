"""Calibration methods side by side on the same residuals, and what one Jacobian costs in MJX and in C.

Recordings of the stand-in for reality, 64 windows of 0.6 s. `mjx` runs with its programs compiled. Ratios above 1 speak
for `mjx`:

- steps_ratio_cmaes_over_mjx, wall_ratio_cmaes_over_mjx: what `cmaes` spends in all, over what `mjx` spends until it
  reaches the loss that `cmaes` ends at; 0 if it never does.
- wall_ratio_sysid_over_mjx: time to equal loss, the higher of the two that the methods end at.
- ..._within_5_percent: the same for a loss 5 % higher, reached by either: how fast a method gets near.
- jacobian_ratio_c_over_mjx_SCENARIO: a Jacobian by central differences in C, two threads, over one by MJX;
  jacobian_ratio_c_over_mjx: the smallest of them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from _common import Figure, median_seconds, run

from rsr.calibration import start_prior
from rsr.calibration.cmaes import search_cmaes
from rsr.calibration.gradient import search_mjx
from rsr.calibration.loss import Loss
from rsr.calibration.search import Found, Search
from rsr.calibration.sensitivity import choose_slopes, mjx_simulator
from rsr.calibration.sysid import search_sysid
from rsr.calibration.windows import Windows, choose, cut
from rsr.policies import tool_plane
from rsr.progress import ignore
from rsr.realities import CollectionPlan, Twin
from rsr.scenarios import Scenario, built_in_scenarios, load_scenario
from rsr.simulators import MujocoSimulator

BUDGET = 480
WINDOW_STEPS = 12


class Pusher:
    """Pushes the cube a little beside its middle."""

    def act(self, observation: np.ndarray) -> np.ndarray:
        tip, block = observation[:, 6:8], observation[:, 12:14]
        return tool_plane.displacements(observation, 10 * (block - tip + np.array([0.0, 0.01])))


@dataclass(frozen=True)
class Course:
    """A search's course: at each improvement the steps simulated, the seconds passed and the loss; [N, 3]."""

    rows: np.ndarray

    @property
    def final(self) -> float:
        return float(self.rows[-1, 2])

    @property
    def steps(self) -> float:
        """Simulated in all."""
        return float(self.rows[-1, 0])

    @property
    def seconds(self) -> float:
        """Passed in all."""
        return float(self.rows[-1, 1])

    def until(self, loss: float) -> tuple[float, float]:
        """Steps and seconds until a loss is reached; infinite if it never is."""
        reached = self.rows[self.rows[:, 2] <= loss * (1 + 1e-9)]
        return (float(reached[0, 0]), float(reached[0, 1])) if len(reached) else (np.inf, np.inf)


def measure(quick: bool) -> dict[str, Figure]:
    scenario = load_scenario("push_cube")
    seeds = (1,) if quick else (1, 2, 3)
    figures: dict[str, Figure] = {}
    ratios = [methods(scenario, seed, figures, quick) for seed in seeds]
    for name in ratios[0]:
        figures[name] = float(np.median([each[name] for each in ratios]))
    jacobians = {name: jacobian_ratio(load_scenario(name), 3 if quick else 7) for name in built_in_scenarios()}
    figures |= {f"jacobian_ratio_c_over_mjx_{name}": ratio for name, ratio in jacobians.items()}
    return figures | {"jacobian_ratio_c_over_mjx": min(jacobians.values())}


def methods(scenario: Scenario, seed: int, figures: dict[str, Figure], quick: bool) -> dict[str, float]:
    """Run all methods on one twin's recordings; the median over twins is reported."""
    with MujocoSimulator(scenario) as simulator:
        loss = Loss(scenario, simulator, windows(scenario, seed, quick), start_prior(scenario))
        choose_slopes(scenario, "mjx")[1](loss, loss.first)  # compiled from here on
        found = {name: course(loss, search) for name, search in SEARCHES.items()}
    for name, each in found.items():
        figures[f"final_loss_{name}_twin_{seed}"] = each.final
        figures[f"wall_{name}_twin_{seed}_s"] = each.seconds
    cmaes, sysid, mjx = found["cmaes"], found["sysid"], found["mjx"]
    return {
        f"{name}{suffix}": ratio
        for suffix, slack in (("", 1.0), ("_within_5_percent", 1.05))
        for name, ratio in _ratios(cmaes, sysid, mjx, slack).items()
    }


def _ratios(cmaes: Course, sysid: Course, mjx: Course, slack: float) -> dict[str, float]:
    steps, seconds = mjx.until(slack * cmaes.final)
    equal = slack * max(sysid.final, mjx.final)
    steps_of_cmaes, seconds_of_cmaes = cmaes.until(slack * cmaes.final) if slack > 1 else (cmaes.steps, cmaes.seconds)
    return {
        "steps_ratio_cmaes_over_mjx": steps_of_cmaes / steps,
        "wall_ratio_cmaes_over_mjx": seconds_of_cmaes / seconds,
        "wall_ratio_sysid_over_mjx": sysid.until(equal)[1] / mjx.until(equal)[1],
    }


SEARCHES: dict[str, Search] = {"cmaes": search_cmaes, "sysid": search_sysid, "mjx": search_mjx}


def windows(scenario: Scenario, seed: int, quick: bool) -> Windows:
    plan = CollectionPlan("session-001", episodes=8, seed=seed)
    episodes = list(Twin(scenario, seed).collect(Pusher(), plan, ignore).episodes)  # pyright: ignore[reportArgumentType]
    every = cut(scenario, episodes, WINDOW_STEPS, WINDOW_STEPS // 2)
    return choose(scenario, every, 16 if quick else 64, np.random.default_rng(seed))


def course(loss: Loss, search: Search) -> Course:
    """Run a search and note when it had spent what: its progress tells the time, its trace steps and loss."""
    start, shares, seconds = time.perf_counter(), [0.0], [0.0]

    def note(share: float, _: str) -> None:
        shares.append(share)
        seconds.append(time.perf_counter() - start)

    found: Found = search(loss, BUDGET, 0, note)
    spent = found.trace[:, 0] / (loss.steps_per_point * BUDGET)
    places = np.minimum(np.searchsorted(shares, spent - 1e-9), len(seconds) - 1)
    rows = np.stack([found.trace[:, 0], np.array(seconds)[places], found.trace[:, 1]], axis=1)
    return Course(np.concatenate([rows, [[rows[-1, 0], time.perf_counter() - start, rows[-1, 2]]]]))


def jacobian_ratio(scenario: Scenario, repetitions: int) -> float:
    """Seconds of a Jacobian by differences in C over seconds of one by MJX: 32 windows in which things touch."""
    states, actions, params = motions(scenario)
    space, mjx = scenario.space, mjx_simulator(scenario)
    offsets = 1e-4 * np.concatenate([np.eye(len(space)), -np.eye(len(space))])
    points = space.to_values(space.to_coordinates(params) + offsets)
    many = (np.tile(states, (len(points), 1)), np.tile(actions, (len(points), 1, 1)), np.repeat(points, len(states), 0))
    with MujocoSimulator(scenario, threads=2) as simulator:
        in_c = median_seconds(lambda: simulator.rollout(*many), repetitions)
    return in_c / median_seconds(lambda: mjx.sensitivities(states, actions, params), repetitions)


def motions(scenario: Scenario, count: int = 32) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States, commands and parameters inside their bounds."""
    rng, model, space = np.random.default_rng(0), scenario.base_model, scenario.space
    inside = np.clip(space.nominal, space.lower + 0.01 * (space.upper - space.lower), space.upper)
    if scenario.name == "push_cube":
        pushed = windows(scenario, 1, quick=False).take(np.arange(count))
        return pushed.starts, pushed.commands, inside
    states = np.tile(np.concatenate([model.qpos0, np.zeros(model.nv)]), (count, 1))
    if scenario.name == "cube_toss":
        turned = rng.normal(size=(count, 4))
        states[:, 2], states[:, 3:7] = 0.092, turned / np.linalg.norm(turned, axis=1, keepdims=True)
        states[:, 7:] = rng.normal(size=(count, 6)) * [0.5, 0.5, 0.2, 3, 3, 3] - [0, 0, 0.6, 0, 0, 0]
    else:
        states += rng.normal(size=states.shape)
    return states, rng.normal(size=(count, scenario.history_steps + 15, model.nu)), inside


if __name__ == "__main__":
    run(measure, __doc__)
