"""Strikes simulated by the hundred thousand, in shards: what was interrupted goes on. Equal seeds, equal bytes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from rsr.common import (
    DAMAGED,
    Advance,
    ConfigError,
    claim,
    generator,
    ignore,
    is_spread,
    read_arrays,
    read_json,
    refused,
    spread,
    write_arrays,
)
from rsr.scenarios.built_in.strike import PARAMETERS, Definition, Shape, Strikes, sample_strikes
from rsr.simulators import Collider

COMMAND = "rsr clash data"
VERSION = 1
SHARD = 5000
PAIRS = 100_000
FEWEST_PAIRS = 100

_FRICTION = ((0.05, 1.0), (0.02, 1.0))
_DAMPING = (0.1, 3.0)
_DAMPING_LOG = ((0.05, 3.0), (0.1, 3.0))
"""Table I. Uniform damping ratios hardly ever rebound: half of the pairs draws logarithms, and from lower on."""


@dataclass(frozen=True)
class StrikePairs:
    """Simulated strikes with the parameters they were simulated with.

    Args:
        params: [N, 4], in the order of `PARAMETERS`.
        after, moved: [N, 3], see `rsr.simulators.strikes.Impacts`.
        table_one: [N], True where the parameters are drawn as the paper does.
    """

    strikes: Strikes
    params: np.ndarray
    after: np.ndarray
    moved: np.ndarray
    table_one: np.ndarray

    def __len__(self) -> int:
        return len(self.strikes)

    def take(self, rows: np.ndarray | slice) -> StrikePairs:
        rest = (getattr(self, name)[rows] for name in ("params", "after", "moved", "table_one"))
        return StrikePairs(self.strikes.take(rows), *rest)


def generate_pairs(
    shape: Shape,
    folder: Path,
    pairs: int = PAIRS,
    seed: int = 0,
    advance: Advance = ignore,
    definition: Definition | None = None,
    threads: int = 0,
) -> Path:
    """Fill a folder with shards of simulated strikes; shards that are whole already are kept."""
    if pairs < FEWEST_PAIRS:
        raise ConfigError(
            got=f"{pairs} strikes to simulate",
            expected=f"at least {FEWEST_PAIRS}; 20,000 are enough for a surrogate",
            where=str(folder),
            next_step="Ask for more.",
        )
    definition = Definition() if definition is None else definition
    claim(folder, _card(shape, definition, pairs, seed), "strikes", COMMAND)
    shards = range(-(-pairs // SHARD))
    # A shard that was cut short by a kill reads as none, and is simulated again from its own seed.
    missing = [shard for shard in shards if _read(folder / f"shard-{shard:03d}.npz") is None]
    common = {"shape": shape, "definition": definition, "folder": folder.resolve(), "seed": seed}
    common |= {"threads": 1 if is_spread() else threads}
    jobs = [{**common, "shard": shard, "count": min(SHARD, pairs - shard * SHARD)} for shard in missing]
    done = len(shards) - len(missing)
    advance(done / len(shards), f"{done} of {len(shards)} shards are there")

    def forward(share: float, words: str = "") -> None:
        advance((done + share * len(missing)) / len(shards), f"shards of strikes: {words}")

    spread("rsr.learned.clash.generate:fill_shard", jobs, forward)
    return folder


def fill_shard(
    shape: Shape, definition: Definition, folder: Path, seed: int, shard: int, count: int, threads: int
) -> None:
    """One job of `generate_pairs`: simulate a shard and write it, into a folder that all workers share."""
    collide = Collider(shape, definition, threads=threads)
    columns = _simulate(shape, collide, count, generator(seed, "strikes", shard))
    write_arrays(folder / f"shard-{shard:03d}.npz", columns)


def load_pairs(folder: Path) -> StrikePairs:
    """Read all shards of a folder."""
    try:
        card = read_json(folder / "card.json")
        shards = [_read(folder / f"shard-{shard:03d}.npz") for shard in range(-(-card["pairs"] // SHARD))]
    except DAMAGED as error:
        raise refused(folder, str(error), f"a folder that `{COMMAND}` made", COMMAND) from error
    whole = [shard for shard in shards if shard is not None]
    if len(whole) < len(shards):
        raise refused(folder, f"{len(whole)} whole shards of {len(shards)}", "all of them", COMMAND)
    columns = {name: np.concatenate([shard[name] for shard in whole]) for name in whole[0]}
    strikes = Strikes(*(columns.pop(name) for name in Strikes.__annotations__))
    return StrikePairs(strikes, **columns)


def load_shape_of(folder: Path) -> Shape:
    """Read which shape a folder of strikes is about."""
    try:
        return shape_from(read_json(folder / "card.json")["shape"])
    except DAMAGED as error:
        raise refused(folder, str(error), f"a folder that `{COMMAND}` made", COMMAND) from error


def load_definition_of(folder: Path) -> Definition:
    """Read what struck in a folder of strikes."""
    try:
        return definition_from(read_json(folder / "card.json")["definition"])
    except DAMAGED as error:
        raise refused(folder, str(error), f"a folder that `{COMMAND}` made", COMMAND) from error


def _simulate(shape: Shape, collide: Collider, count: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    strikes = sample_strikes(shape, count, rng)
    # Interleaved, so that every shard and every share of the data holds both halves.
    table_one = np.arange(count) % 2 == 0
    params = _draw_params(table_one, rng)
    # A random phase within the time step: half a step earlier or later moves results by a percent, which is then noise
    # that the network averages, not a bias that it learns.
    impacts = collide(strikes, params, phase=rng.uniform(0, 1, count))
    # A pair that never parted has no velocity after; its label would be that of a push.
    kept = impacts.parted
    columns = {name: getattr(strikes, name) for name in Strikes.__annotations__}
    columns |= {"params": params, "after": impacts.after, "moved": impacts.moved, "table_one": table_one}
    return {name: column[kept] for name, column in columns.items()}


def _draw_params(table_one: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    count = len(table_one)
    friction = [rng.uniform(*bounds, count) for bounds in _FRICTION]
    uniform = [rng.uniform(*_DAMPING, count) for _ in range(2)]
    logarithmic = [np.exp(rng.uniform(np.log(low), np.log(high), count)) for low, high in _DAMPING_LOG]
    damping = [np.where(table_one, *pair) for pair in zip(uniform, logarithmic, strict=True)]
    return np.column_stack(friction + damping)


def shape_card(shape: Shape) -> dict:
    """Describe a shape for JSON; `Shape` is made from it again."""
    card = {"name": shape.name, "outline": shape.outline.round(9).tolist(), "struck": list(shape.struck)}
    card |= {"height_m": shape.height_m, "mass_kg": shape.mass_kg}
    # Left out where it is a homogeneous prism's, as in folders of earlier releases.
    return card if (own := shape.measured_gyration_m) is None else card | {"measured_gyration_m": own}


def shape_from(card: dict) -> Shape:
    outline = np.array(card["outline"])
    sizes = (card["height_m"], card["mass_kg"], card.get("measured_gyration_m"))
    return Shape(card["name"], outline, tuple(card["struck"]), *sizes)


def definition_card(definition: Definition) -> dict:
    """Describe a definition for JSON; `Definition` is made from it again."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(definition).items()}


def definition_from(card: dict) -> Definition:
    low, high = card["nose_height_m"]
    return replace(Definition(**card), nose_height_m=(low, high))


def _card(shape: Shape, definition: Definition, pairs: int, seed: int) -> dict:
    return {
        "version": VERSION,
        "pairs": pairs,
        "seed": seed,
        "shape": shape_card(shape),
        "definition": definition_card(definition),
        "parameters": list(PARAMETERS.names),
    }


def _read(path: Path) -> dict[str, np.ndarray] | None:
    try:
        return read_arrays(path)
    except DAMAGED:
        return None
