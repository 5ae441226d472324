"""Networks for `benchmarks/gnn.py`: taught by one identified teacher, kept in a folder, with what that took."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rsr.files import read_json, write_json
from rsr.gnn.contract import ContactNetwork
from rsr.gnn.identification import Identified, Judge, identify
from rsr.gnn.recorded import from_sessions
from rsr.gnn.scaling import Scaling, generate_trajectories, load_scaled
from rsr.gnn.storage import load_network, save_network
from rsr.gnn.training import TrainingSettings, fine_tune, train_network
from rsr.gnn.trajectories import Trajectory
from rsr.gnn.tuning import GnnSettings
from rsr.progress import bar
from rsr.realities.cubes import JUDGING_SEEDS, TUNING_SEEDS, CubesStandIn
from rsr.scenarios import load_scenario
from rsr.scenarios.two_cubes import ContactParameters

USUAL = ContactParameters(0.28, (0.92, 0.97, 0.002, 0.03, 2.5), (0.012, 0.7))
"""The teacher of the long training; a short one carries the network over to the teacher that was identified."""
LONG = (
    *((Scaling("cubes"), 3000, 0), (Scaling("varied", 4), 1000, 60)),
    *((Scaling("cubes", 4), 600, 61), (Scaling("cubes", 3), 400, 62)),
)
SHORT = ((Scaling("cubes"), 800, 70), (Scaling("varied", 4), 400, 71))
"""Kinds of scenes, how many of each, and the seed they are drawn by."""
LONG_TRAINING = {
    "impulse": TrainingSettings(steps=7000, unroll=8, noise_m=5e-5),
    "fignet": TrainingSettings(steps=2500, unroll=3, network="fignet"),
}
"""Both take less than a quarter of an hour of one core."""
SHORT_TRAINING = {
    "impulse": TrainingSettings(steps=600, rate=5e-4, unroll=8, long_from=0.3, noise_m=5e-5),
    "fignet": TrainingSettings(steps=200, rate=5e-4, unroll=3, long_from=0.3, network="fignet"),
}


@dataclass(frozen=True)
class Reality:
    """A stand-in for reality, the few trajectories of it to learn from, and those to judge by."""

    seed: int
    learnt: Judge
    judge: Judge


@dataclass(frozen=True)
class Networks:
    """What was taught by the identified teacher, and what the recorded trajectories changed.

    Args:
        cpu_s: CPU seconds of each training.
    """

    contact: ContactParameters
    impulse: ContactNetwork
    fignet: ContactNetwork
    fine_tuned: ContactNetwork
    cpu_s: dict[str, float]


def reality(seed: int) -> Reality:
    stand_in, scenario = CubesStandIn(seed), load_scenario("two_cubes")
    learnt, judge = (Judge(from_sessions(scenario, [each])) for each in (stand_in.training(), stand_in.test()))
    return Reality(seed, learnt, judge)


def seeds(quick: bool) -> tuple[int, ...]:
    """Stand-ins to judge on; those that methods were written with for a quick look."""
    return TUNING_SEEDS[:1] if quick else JUDGING_SEEDS[:3]


def identified(real: Reality, quick: bool) -> tuple[Identified, float]:
    """The contacts of a reality, and how many parameter sets were evaluated in a minute."""
    start = time.perf_counter()
    with bar(f"identify {real.seed}") as advance:
        found = identify(real.learnt, evaluations=96 if quick else 1000, seed=0, advance=advance)
    return found, 60 * found.evaluations / (time.perf_counter() - start)


def taught(folder: Path, contact: ContactParameters, real: Reality, quick: bool) -> Networks:
    """Teach both networks and fine-tune one; what an earlier run of the same kind left in the folder is read there."""
    cpu_s: dict[str, float] = {}
    impulse, fignet = (_carried_over(kind, folder, contact, cpu_s, quick) for kind in LONG_TRAINING)
    few = replace(GnnSettings(finetune_steps=3 if quick else 300).fine_tuning, unroll=8)
    place = folder / "fine_tuned"
    cpu_s["fine_tuned"] = _once(place, lambda: fine_tune(impulse, real.learnt.trajectories, few))
    return Networks(contact, impulse, fignet, load_network(place), cpu_s)


def _carried_over(
    kind: str, folder: Path, contact: ContactParameters, cpu_s: dict[str, float], quick: bool
) -> ContactNetwork:
    """A long training by the usual teacher, then a short one by the identified teacher."""
    place, carried = folder / kind, folder / f"{kind}_carried"
    long, short = _settings(LONG_TRAINING[kind], quick), _settings(SHORT_TRAINING[kind], quick)
    with bar(kind) as advance:
        cpu_s[f"{kind}_long"] = _once(
            place, lambda: train_network(_data(folder, LONG, USUAL, quick), long, 0, advance, folder=place)
        )
    usual = load_network(place)
    with bar(f"{kind}, short") as advance:
        cpu_s[f"{kind}_short"] = _once(
            carried, lambda: fine_tune(usual, _data(folder, SHORT, contact, quick), short, 0, advance)
        )
    return load_network(carried)


def _once(folder: Path, train: Callable[[], ContactNetwork]) -> float:
    """CPU seconds that a training took, now or when the network in the folder was made."""
    card = folder / "cpu_s.json"
    if not card.is_file():
        start = time.process_time()
        network = train()
        save_network(network, folder)
        write_json(card, {"cpu_s": time.process_time() - start})
    return read_json(card)["cpu_s"]


def _settings(settings: TrainingSettings, quick: bool) -> TrainingSettings:
    return replace(settings, steps=3, batch=8) if quick else settings


def _data(
    folder: Path, scenes: Sequence[tuple[Scaling, int, int]], contact: ContactParameters, quick: bool
) -> list[Trajectory]:
    found = []
    for scaling, count, seed in scenes:
        place = folder / "data" / f"{scaling.kind}_{scaling.bodies}_{seed}"
        found += load_scaled(generate_trajectories(contact, place, 20 if quick else count, scaling, seed))
    return found
