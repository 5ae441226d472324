"""Calibration methods side by side on the same residuals, and what one Jacobian costs in MJX and in C.

Recordings of the stand-in for reality: 32 episodes, and as many windows of 0.6 s, and as large a budget, as a fit takes
by default. `mjx` runs with its programs compiled. A Jacobian counts for the steps of the trajectories it is taken
along, its seconds count in full. Ratios above 1 speak for `mjx`; those of the methods are medians over three stand-ins:

- steps_ratio_cmaes_over_mjx, wall_ratio_cmaes_over_mjx: what `cmaes` spends in all, over what `mjx` spends until it
  reaches the loss that `cmaes` ends at; 0 if it never does.
- wall_ratio_sysid_over_mjx: time to equal loss, the higher of the two that the methods end at.
- ..._within_5_percent, ..._within_1_percent: the same for a loss so much higher, reached by either: how fast a method
  gets near. Contact makes the loss rough by about a percent, and in which local minimum a method ends is luck.
- jacobian_ratio_c_over_mjx_SCENARIO: a Jacobian by central differences in C, two threads, over one by MJX, on 32
  windows. `contact_stage` is push_cube without its arm: the fingertip follows its recorded path (`contact_stage/`).
- jacobian_ratio_c_over_mjx: the smaller of those of `contact_stage` and `cube_toss`, where contact is what costs.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from _common import Figure, best_seconds_in_turn, run

from rsr.calibration import (
    MOVED_NOISES,
    Effort,
    Loss,
    Search,
    SearchResult,
    Windows,
    choose,
    choose_jacobian,
    cut,
    mjx_simulator,
    motion,
    search_cmaes,
    search_mjx,
    search_sysid,
    start_prior,
)
from rsr.common import ignore
from rsr.realities import CollectionPlan, StandIn
from rsr.scenarios import Scenario, load_scenario
from rsr.scenarios.built_in.pushing import tool_plane
from rsr.sessions import Episode
from rsr.simulators import MujocoSimulator

BUDGET = Effort().budget
WINDOW_STEPS = 12
STAND_INS = 3
CONTACT_STAGE = Path(__file__).parent / "contact_stage" / "scenario.yaml"


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


def measure(quick: bool, first: int = 1) -> dict[str, Figure]:
    """Run everything; the stand-ins' seeds count up from `first`."""
    figures: dict[str, Figure] = {}
    ratios = [methods(seed, figures, quick) for seed in range(first, first + (1 if quick else STAND_INS))]
    for name in ratios[0]:
        figures[name] = float(np.median([each[name] for each in ratios]))
    jacobians = jacobian_ratios(first, 3 if quick else 9)
    figures |= {f"jacobian_ratio_c_over_mjx_{name}": ratio for name, ratio in jacobians.items()}
    return figures | {"jacobian_ratio_c_over_mjx": min(jacobians["contact_stage"], jacobians["cube_toss"])}


def methods(seed: int, figures: dict[str, Figure], quick: bool) -> dict[str, float]:
    """Run all methods on one stand-in's recordings; the median over stand-ins is reported."""
    scenario = load_scenario("push_cube")
    count = 16 if quick else Effort().max_windows
    with MujocoSimulator(scenario) as simulator:
        recorded = windows(scenario, episodes(scenario, seed, 8 if quick else 32), count, seed)
        loss = Loss(scenario, simulator, recorded, start_prior(scenario))
        choose_jacobian(scenario, "mjx")[1](loss, loss.first)  # compiled from here on
        found = {name: course(loss, search) for name, search in SEARCHES.items()}
    for name, each in found.items():
        figures[f"final_loss_{name}_stand_in_{seed}"] = each.final
        figures[f"wall_{name}_stand_in_{seed}_s"] = each.seconds
    cmaes, sysid, mjx = found["cmaes"], found["sysid"], found["mjx"]
    return {
        f"{name}{suffix}": ratio
        for suffix, slack in (("", 1.0), ("_within_1_percent", 1.01), ("_within_5_percent", 1.05))
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


def episodes(scenario: Scenario, seed: int, count: int) -> list[Episode]:
    plan = CollectionPlan("session-001", episodes=count, seed=seed)
    return list(StandIn(scenario, seed).collect(Pusher(), plan, ignore).episodes)  # pyright: ignore[reportArgumentType]


def windows(scenario: Scenario, recorded: list[Episode], count: int, seed: int) -> Windows:
    every = cut(scenario, recorded, WINDOW_STEPS, WINDOW_STEPS // 2)
    return choose(scenario, every, count, np.random.default_rng(seed))


def course(loss: Loss, search: Search) -> Course:
    """Run a search and note when it had spent what: its progress tells the time, its trace steps and loss."""
    start, shares, seconds = time.perf_counter(), [0.0], [0.0]

    def note(share: float, _: str) -> None:
        shares.append(share)
        seconds.append(time.perf_counter() - start)

    found: SearchResult = search(loss, BUDGET, 0, note)
    spent = found.trace[:, 0] / (loss.steps_per_point * BUDGET)
    places = np.minimum(np.searchsorted(shares, spent - 1e-9), len(seconds) - 1)
    rows = np.stack([found.trace[:, 0], np.array(seconds)[places], found.trace[:, 1]], axis=1)
    return Course(np.concatenate([rows, [[rows[-1, 0], time.perf_counter() - start, rows[-1, 2]]]]))


def jacobian_ratios(seed: int, rounds: int) -> dict[str, float]:
    """Seconds of a Jacobian by differences in C over seconds of one by MJX, scenario by scenario."""
    push, stage = load_scenario("push_cube"), load_scenario(str(CONTACT_STAGE))
    recorded = episodes(push, seed, 8)
    pushed = touching(push, recorded, seed)
    staged = touching(stage, [without_arm(episode) for episode in recorded], seed)
    toss, pendulum = load_scenario("cube_toss"), load_scenario("double_pendulum")
    return {
        "contact_stage": jacobian_ratio(stage, staged.starts, staged.commands, rounds),
        "cube_toss": jacobian_ratio(toss, *tosses(toss), rounds),
        "push_cube": jacobian_ratio(push, pushed.starts, pushed.commands, rounds),
        "double_pendulum": jacobian_ratio(pendulum, *swings(pendulum), rounds),
    }


def jacobian_ratio(scenario: Scenario, states: np.ndarray, actions: np.ndarray, rounds: int) -> float:
    space, mjx = scenario.space, mjx_simulator(scenario)
    params = np.clip(space.nominal, space.lower + 0.01 * (space.upper - space.lower), space.upper)
    offsets = 1e-4 * np.concatenate([np.eye(len(space)), -np.eye(len(space))])
    points = space.to_values(space.to_coordinates(params) + offsets)
    many = (np.tile(states, (len(points), 1)), np.tile(actions, (len(points), 1, 1)), np.repeat(points, len(states), 0))
    with MujocoSimulator(scenario, threads=2) as simulator:
        in_c, in_mjx = best_seconds_in_turn(
            [lambda: simulator.rollout(*many), lambda: mjx.sensitivities(states, actions, params)], rounds
        )
    return in_c / in_mjx


def touching(scenario: Scenario, recorded: list[Episode], seed: int, count: int = 32) -> Windows:
    """Windows in which the cube is moved, that is touched or sliding."""
    every = windows(scenario, recorded, 3 * count, seed)
    moved = np.flatnonzero(motion(scenario, every)["block_position"] > MOVED_NOISES)
    return every.take(moved[:count])


def without_arm(episode: Episode) -> Episode:
    """What the contact stage's channels show of a recording of push_cube."""
    tip = episode["tip_position"]
    kept = {name: episode[name] for name in ("tip_position", "block_position", "block_orientation")}
    return replace(episode, values={**kept, "tip_next": np.concatenate([tip[1:], tip[-1:]])})


def tosses(scenario: Scenario, count: int = 32) -> tuple[np.ndarray, np.ndarray]:
    """Starts just above the board, and commands of 15 frames."""
    rng, states, actions = _anywhere(scenario, count)
    turned = rng.normal(size=(count, 4))
    states[:, 2], states[:, 3:7] = 0.092, turned / np.linalg.norm(turned, axis=1, keepdims=True)
    states[:, 7:] = rng.normal(size=(count, 6)) * [0.5, 0.5, 0.2, 3, 3, 3] - [0, 0, 0.6, 0, 0, 0]
    return states, actions


def swings(scenario: Scenario, count: int = 32) -> tuple[np.ndarray, np.ndarray]:
    """Starts anywhere, and random torques."""
    rng, states, actions = _anywhere(scenario, count)
    return states + rng.normal(size=states.shape), actions


def _anywhere(scenario: Scenario, count: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray]:
    rng, model = np.random.default_rng(0), scenario.base_model
    states = np.tile(np.concatenate([model.qpos0, np.zeros(model.nv)]), (count, 1))
    return rng, states, rng.normal(size=(count, scenario.history_steps + 15, model.nu))


if __name__ == "__main__":
    run(measure, __doc__, first=1)
