"""Networks for `benchmarks/gnn.py`: taught by usual contacts or by an identified teacher, kept in a folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rsr.files import read_json, write_json
from rsr.gnn.augmentation import augment
from rsr.gnn.contract import ContactNetwork
from rsr.gnn.fine_tuning import FEW_SHOTS, fine_tune_as_helps
from rsr.gnn.identification import Judge, identify
from rsr.gnn.impulse import ImpulseNetwork
from rsr.gnn.laws import Laws
from rsr.gnn.recorded import from_sessions
from rsr.gnn.scaling import Scaling, generate_trajectories, load_scaled
from rsr.gnn.storage import load_network, save_network
from rsr.gnn.teachers import load_teacher, save_teacher
from rsr.gnn.training import CARRYING, TrainingSettings, fine_tune, train_network
from rsr.gnn.trajectories import Trajectory
from rsr.progress import bar
from rsr.realities.cubes import JUDGING_SEEDS, TUNING_SEEDS, CubesStandIn
from rsr.scenarios import load_scenario
from rsr.scenarios.two_cubes import ContactParameters

USUAL = ContactParameters(0.28, (0.92, 0.97, 0.002, 0.03, 2.5), (0.012, 0.7))
"""The teacher of the long training; a second one shows the network other laws, those that are identified among them."""
LONG = (
    *((Scaling("cubes"), 3000, 0), (Scaling("varied", 4), 1000, 60)),
    *((Scaling("cubes", 4), 600, 61), (Scaling("cubes", 3), 400, 62)),
)
LAWS = ((Scaling("cubes"), 3000, 80), (Scaling("varied", 4), 600, 81), (Scaling("cubes", 4), 300, 82))
"""Kinds of scenes, how many of each, and the seed they are drawn by."""
TRAININGS = {
    "impulse": TrainingSettings(steps=7000, unroll=8, noise_m=5e-5),
    "fignet": TrainingSettings(steps=5000, batch=32, unroll=3, network="fignet"),
}
"""Each is meant to take about ten minutes of one core; `training_cpu_s` says what it took."""
LEARNING_LAWS = TrainingSettings(steps=1100, rate=1e-3, unroll=8, long_from=0.45, noise_m=5e-5)
SHORT = ((Scaling("cubes"), 800, 70), (Scaling("varied", 4), 400, 71))
AUGMENTED, AUGMENTED_TRAINING = 3000, TrainingSettings(steps=400, unroll=8)


@dataclass(frozen=True)
class Reality:
    """A stand-in for reality, the few trajectories of it to learn from, and those to judge by."""

    seed: int
    learnt: Judge
    judge: Judge


def reality(seed: int) -> Reality:
    stand_in, scenario = CubesStandIn(seed), load_scenario("two_cubes")
    learnt, judge = (Judge(from_sessions(scenario, [each])) for each in (stand_in.training(), stand_in.test()))
    return Reality(seed, learnt, judge)


def seeds(quick: bool) -> tuple[int, ...]:
    """Stand-ins to judge on; those that methods were written with for a quick look."""
    return TUNING_SEEDS[:1] if quick else JUDGING_SEEDS[3:]


def identified(folder: Path, real: Reality, quick: bool) -> tuple[ContactParameters, float]:
    """The contacts of a reality, and how many parameter sets were evaluated in a minute; read where they are known."""
    place = folder / f"teacher_{real.seed}"
    if not (place / "rate.json").is_file():
        start = time.perf_counter()
        with bar(f"identify {real.seed}") as advance:
            found = identify(real.learnt, evaluations=96 if quick else 1000, seed=0, advance=advance)
        seconds = time.perf_counter() - start
        save_teacher(place, found, real.learnt.trajectories, "two_cubes", 0)
        write_json(place / "rate.json", {"evaluations_per_minute": 60 * found.evaluations / seconds})
    return load_teacher(place), read_json(place / "rate.json")["evaluations_per_minute"]


def taught(kind: str, folder: Path, quick: bool) -> tuple[ContactNetwork, float]:
    """A network that the usual teacher taught, and the CPU seconds it took; read where an earlier run left it."""
    place, settings = folder / kind, _settings(TRAININGS[kind], quick)
    with bar(kind) as advance:
        cpu_s = _once(
            place, lambda: train_network(_data(folder, LONG, USUAL, quick), settings, 0, advance, folder=place)
        )
    return load_network(place), cpu_s


def knows_laws(folder: Path, quick: bool) -> tuple[ImpulseNetwork, float]:
    """The impulse network after it was shown that contact laws differ, and what that took."""
    place, settings, usual = folder / "laws", _settings(LEARNING_LAWS, quick), folder / "impulse"
    taught("impulse", folder, quick)

    def train() -> ContactNetwork:
        with bar("laws") as advance:
            shown = _data(folder / "laws", LAWS, None, quick)
            return fine_tune(_impulse(usual).widened(), shown, settings, 0, advance, folder=place)

    cpu_s = _once(place, train)
    return _impulse(place), cpu_s


def told(folder: Path, contact: ContactParameters, quick: bool) -> ImpulseNetwork:
    """The network that obeys identified contacts, by being told and no more."""
    return knows_laws(folder, quick)[0].obeying(Laws.same(contact))


def carried_over(
    folder: Path, network: ImpulseNetwork, real: Reality, contact: ContactParameters, quick: bool
) -> tuple[ImpulseNetwork, float]:
    """The network after a short training by the identified teacher."""
    place, settings = folder / f"carried_over_{real.seed}", _settings(CARRYING, quick)
    with bar(f"carry over {real.seed}") as advance:
        cpu_s = _once(place, lambda: fine_tune(network, _data(place, SHORT, contact, quick), settings, 0, advance))
    return _impulse(place), cpu_s


def fine_tuned(
    folder: Path, network: ContactNetwork, real: Reality, quick: bool
) -> tuple[ContactNetwork, dict[str, float]]:
    """The network after it saw the three trajectories that may be learnt from, how far it went, and what that took."""
    place, settings = folder / f"fine_tuned_{real.seed}", replace(FEW_SHOTS, steps=2 if quick else FEW_SHOTS.steps)

    def tune() -> ContactNetwork:
        with bar(f"fine-tune {real.seed}") as advance:
            found = fine_tune_as_helps(network, real.learnt.trajectories, settings, advance=advance)
        errors = {f"left_out_error_{share:.0%}".rstrip("%"): error for share, error in found.left_out.items()}
        write_json(place / "choice.json", {"fine_tuning_share": found.share, **errors})
        return found.network

    cpu_s = _once(place, tune)
    return load_network(place), {"fine_tuning_cpu_s": cpu_s, **read_json(place / "choice.json")}


def augmented(folder: Path, real: Reality, quick: bool) -> tuple[ContactNetwork, float]:
    """A network that never had a teacher: the three trajectories, turned, are all it saw."""
    place, settings = folder / f"augmented_{real.seed}", _settings(AUGMENTED_TRAINING, quick)
    turned = augment(real.learnt.trajectories, 20 if quick else AUGMENTED)
    with bar(f"augmented {real.seed}") as advance:
        cpu_s = _once(place, lambda: train_network(turned, settings, 0, advance, folder=place))
    return load_network(place), cpu_s


def _impulse(folder: Path) -> ImpulseNetwork:
    network = load_network(folder)
    if not isinstance(network, ImpulseNetwork):
        raise TypeError(f"{folder}: {network.kind}, not impulse")
    return network


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
    folder: Path, scenes: Sequence[tuple[Scaling, int, int]], contact: ContactParameters | None, quick: bool
) -> list[Trajectory]:
    found = []
    for scaling, count, seed in scenes:
        place = folder / "data" / f"{scaling.kind}_{scaling.bodies}_{seed}"
        found += load_scaled(generate_trajectories(contact, place, 20 if quick else count, scaling, seed))
    return found
