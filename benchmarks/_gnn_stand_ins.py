"""What a campaign of `flows/gnn.py` learns from three pushes of a stand-in, kept in a folder, judged by fourteen."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from _common import Figure
from baselines.gnn_augmentation import augment
from baselines.gnn_fignet import new_fignet

from rsr.calibration import Calibration, Effort, calibrator, load_calibration, save_calibration, start_prior
from rsr.common import Advance, bar, part_of, read_json, write_json
from rsr.config import GnnConfig, TuneConfig
from rsr.learned.gnn import (
    RECORD,
    ContactNetwork,
    HeldOutTrajectories,
    LearningProblem,
    fit_gnn,
    freed_of_noise,
    judged_trajectories,
    keep_better,
    load_gnn,
    of_one_length,
    train_network,
)
from rsr.realities import TEST, TRAINING, CubesStandIn
from rsr.realities.cubes import JUDGING_SEEDS, TUNING_SEEDS
from rsr.scenarios import load_scenario
from rsr.simulators import evaluate_recording, unseen_episodes

FRAMES = 42
SEED = 0


def seeds(quick: bool) -> tuple[int, ...]:
    """Stand-ins to judge on; one that methods were written with for a quick look."""
    return TUNING_SEEDS[1:2] if quick else JUDGING_SEEDS[3:]


def problem_of(folder: Path, seed: int, quick: bool) -> LearningProblem:
    """Pushes of a stand-in, and MuJoCo as identified on three of them; read where an earlier run left it."""
    scenario, place = load_scenario("two_cubes"), folder / f"teacher_{seed}"
    recorded = CubesStandIn(seed).record("session-001", 6 if quick else TRAINING + TEST)
    session = freed_of_noise(scenario, recorded)
    if not place.is_dir():
        effort = Effort(budget=24) if quick else Effort()
        fitting = calibrator(TuneConfig(method="cmaes", fit_episodes=TRAINING), effort)
        with bar(f"identify {seed}") as advance:
            save_calibration(fitting.fit(scenario, (session,), start_prior(scenario), SEED, advance), place)
    teacher: Calibration = load_calibration(place)
    settings = GnnConfig(trajectories=12, steps=3, finetune_steps=2) if quick else GnnConfig()
    return LearningProblem(scenario, (session,), teacher.vector(), teacher.evidence.fitted, settings, SEED)


def learnt(folder: Path, seed: int, quick: bool) -> tuple[ContactNetwork, dict]:
    """The network that was chosen, and the record of its fit with the CPU seconds it took."""
    problem, place = problem_of(folder, seed, quick), folder / f"impulse_{seed}"
    record = _fitted_once(place, partial(fit_gnn, problem, place))
    return load_gnn(problem.scenario, place).network, record


def _fitted_once(place: Path, fit: Callable[[Advance], object]) -> dict:
    """The record of a fit, which is made unless an earlier run left it, and the CPU seconds it took."""
    if not (place / "cpu_s.json").is_file():
        with bar(place.name) as advance:
            write_json(place / "cpu_s.json", {"cpu_s": _cpu_s(partial(fit, advance))})
    return read_json(place / RECORD) | read_json(place / "cpu_s.json")


def on_stand_ins(folder: Path, quick: bool) -> dict[str, Figure]:
    """The scenario's metrics on unseen pushes, of each stand-in and their means: teacher, network, fine-tuned."""
    return _means(seeds(quick), lambda seed: _figures(learnt(folder, seed, quick)[1], ""))


def by_fignet(folder: Path, quick: bool) -> dict[str, Figure]:
    """The same of the paper's architecture, on the same trajectories for as many steps."""

    def figures(seed: int) -> dict[str, Figure]:
        problem, place = problem_of(folder, seed, quick), folder / f"fignet_{seed}"

        def fit(advance: Advance) -> object:
            taught = problem.simulated(part_of(advance, 0.0, 0.1))
            untrained = new_fignet(SEED, dt_s=problem.scenario.control_dt_s)
            learning = part_of(advance, 0.1, 0.8)
            network = train_network(
                taught, problem.training, SEED, learning, network=untrained, folder=place / "training"
            )
            return keep_better(network, problem, place, part_of(advance, 0.8, 1.0))

        return _figures(_fitted_once(place, fit), "_fignet")

    return _means(seeds(quick), figures)


def by_augmentation(folder: Path, quick: bool) -> dict[str, Figure]:
    """The same of a network that never had a teacher: the recorded pushes under many headings, as many steps."""

    def figures(seed: int) -> dict[str, Figure]:
        problem = problem_of(folder, seed, quick)
        episodes = [problem.session.episodes[index] for index in problem.fitted]
        recorded = of_one_length(judged_trajectories(problem.scenario, problem.teacher, episodes, FRAMES))
        turned = augment(recorded, problem.settings.trajectories)
        made: list[ContactNetwork] = []
        with bar(f"augmented {seed}") as advance:
            train = partial(train_network, turned, problem.training, SEED, advance)
            cpu_s = _cpu_s(lambda: made.append(train()))
        judges = HeldOutTrajectories(problem.scenario, problem.session, problem.teacher)
        unseen = unseen_episodes(problem.scenario, problem.session, problem.fitted)
        errors = judges.errors({"augmented": made[0]}, unseen)["augmented"]
        return {f"{name}_augmented": value for name, value in errors.items()} | {"cpu_s_augmented": cpu_s}

    return _means(seeds(quick), figures)


def by_mjx(folder: Path, quick: bool) -> dict[str, Figure]:
    """The same of MJX with the teacher's numbers, the differentiable analytic peer."""
    if quick:  # compiling takes longer than all the rest of a quick look
        return {}
    from rsr.simulators.mjx import MjxSimulator

    simulator = MjxSimulator(load_scenario("two_cubes"))

    def figures(seed: int) -> dict[str, Figure]:
        problem = problem_of(folder, seed, quick)
        unseen = unseen_episodes(problem.scenario, problem.session, problem.fitted)
        judged = evaluate_recording(
            problem.scenario, problem.session, problem.teacher, episodes=unseen, simulator=simulator
        )
        return {f"{each.name}_mjx": judged[each.name] for each in problem.scenario.evaluation.metrics}

    return _means(seeds(quick), figures)


def starts(folder: Path, quick: bool) -> dict[str, Figure]:
    """What fitted first frames are worth: the teacher from starts as recorded, and from fitted ones."""

    def figures(seed: int) -> dict[str, Figure]:
        problem = problem_of(folder, seed, quick)
        scenario, found = problem.scenario, {}
        unseen = unseen_episodes(scenario, problem.session, problem.fitted)
        raw = CubesStandIn(seed).record("session-001", len(problem.session.episodes))
        for name, session in (("as_recorded", raw), ("fitted", problem.session)):
            judged = evaluate_recording(scenario, session, problem.teacher, episodes=unseen)
            found |= {f"{each.name}_start_{name}": judged[each.name] for each in scenario.evaluation.metrics}
        return found

    return _means(seeds(quick), figures)


def _figures(record: dict, suffix: str) -> dict[str, Figure]:
    figures: dict[str, Figure] = {f"cpu_s{suffix}": record["cpu_s"], f"chosen{suffix}": record["chosen"]}
    for simulator, errors in record["errors"].items():
        name = simulator.replace("-", "_")
        figures |= {f"{metric}_{name}{suffix}": value for metric, value in errors.items()}
    return figures


def _means(stand_ins: tuple[int, ...], figures: Callable[[int], dict[str, Figure]]) -> dict[str, Figure]:
    """Figures of each stand-in, `NAME_SEED`, and of numbers their means, `NAME`."""
    rows = {seed: figures(seed) for seed in stand_ins}
    found = {f"{name}_{seed}": value for seed, row in rows.items() for name, value in row.items()}
    shared = set.intersection(*(set(row) for row in rows.values()))
    for name in sorted(shared):
        values = [row[name] for row in rows.values()]
        if not isinstance(values[0], str):
            found[name] = float(np.mean(values))
    return found


def _cpu_s(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
