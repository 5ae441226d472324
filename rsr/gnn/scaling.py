"""Data scaling: teacher trajectories in shards, so that what was interrupted goes on. Equal seeds, equal bytes."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import mujoco
import numpy as np

from rsr.cards import claim, refused
from rsr.errors import CalibrationError, ConfigError, SessionError
from rsr.files import DAMAGED, read_json, sha256, write_json
from rsr.gnn.bodies import World
from rsr.gnn.laws import Laws, sample_laws
from rsr.gnn.rotations import turned
from rsr.gnn.scenes import LEAD_FRAMES, cube_world, sample_bowling, sample_push, varied_world
from rsr.gnn.teacher import THREADS, Job, simulate, teacher_model, with_laws
from rsr.gnn.trajectories import Trajectory, load_trajectories, save_trajectories
from rsr.progress import Advance, ignore
from rsr.randomness import generator
from rsr.scenarios.two_cubes import ContactParameters

COMMAND = "rsr gnn data"
VERSION = 1
SHARD = 250
FRAMES = 30
KINDS = ("cubes", "varied", "bowling")

_OVERLAP_M = 1e-6
_ATTEMPTS = 50
_FASTEST_M_S = 4.0
_STEEPEST_RAD = np.radians(10)


@dataclass(frozen=True)
class Scaling:
    """What the trajectories are drawn over.

    Args:
        kind: "cubes": equal cubes; "varied": two to `bodies` of them, of other shapes and masses; "bowling": one cube
            slides at `bodies` - 1 others that stand like pins.
        frames: of a trajectory, at 60 Hz.
    """

    kind: str = "cubes"
    bodies: int = 2
    frames: int = FRAMES

    def __post_init__(self) -> None:
        if self.kind not in KINDS or self.bodies < 2 or self.frames < 3:
            raise ConfigError(
                got=f"{self.frames} frames of {self.bodies} bodies, kind '{self.kind}'",
                expected=f"at least 3 frames of at least 2 bodies, kind one of {', '.join(KINDS)}",
                where="data scaling",
                next_step="Correct --cubes or --frames.",
            )


def generate_trajectories(
    contact: ContactParameters | None,
    folder: Path,
    trajectories: int,
    scaling: Scaling | None = None,
    seed: int = 0,
    advance: Advance = ignore,
    threads: int = THREADS,
) -> Path:
    """Fill a folder with shards of teacher trajectories; shards that are whole already are kept.

    Args:
        contact: of the teacher; None lets every trajectory obey laws of its own, which it then carries.
    """
    if trajectories < 1:
        raise ConfigError(
            got=f"{trajectories} trajectories",
            expected="at least 1, better thousands",
            where="data scaling",
            next_step="Correct --trajectories.",
        )
    scaling = Scaling() if scaling is None else scaling
    card = _card(contact, scaling, trajectories, seed)
    claim(folder, card, "trajectories", COMMAND)
    shards = range(-(-trajectories // SHARD))
    for shard in shards:
        path = folder / _shard_name(shard)
        if not _is_whole(path):
            numbers = range(shard * SHARD, min((shard + 1) * SHARD, trajectories))
            save_trajectories(_drawn(contact, scaling, seed, numbers, threads), path)
        advance((shard + 1) / len(shards), f"{min((shard + 1) * SHARD, trajectories):,} of {trajectories:,}")
    write_json(folder / "sums.json", {_shard_name(shard): sha256(folder / _shard_name(shard)) for shard in shards})
    return folder


def load_scaled(folder: Path) -> list[Trajectory]:
    """Read all shards of a folder, each compared with its checksum."""
    folder = Path(folder)
    try:
        card, sums = read_json(folder / "card.json"), read_json(folder / "sums.json")
        expected = [_shard_name(shard) for shard in range(-(-card["trajectories"] // SHARD))]
    except DAMAGED as error:
        raise refused(folder, str(error), f"a folder that `{COMMAND}` finished", COMMAND) from error
    whole = [name for name in expected if (folder / name).is_file() and sha256(folder / name) == sums.get(name)]
    if len(whole) < len(expected):
        raise refused(folder, f"{len(whole)} whole shards of {len(expected)}", "all of them", COMMAND)
    return [trajectory for name in whole for trajectory in load_trajectories(folder / name)]


def _drawn(
    contact: ContactParameters | None, scaling: Scaling, seed: int, numbers: range, threads: int
) -> list[Trajectory]:
    """Every trajectory is drawn from its own number, so that neither shards nor threads change it."""
    equal = None if scaling.kind == "varied" else _compiled(cube_world(scaling.bodies), contact)

    def draw(number: int) -> Trajectory:
        for attempt in range(_ATTEMPTS):
            trajectory = _attempt(contact, scaling, equal, seed, number, attempt)
            if _is_planar(trajectory):
                return trajectory
        raise CalibrationError(
            got=f"{_ATTEMPTS} scenes in a row in which a body topples or is thrown off",
            expected="bodies that slide and collide",
            where="data scaling",
            next_step="Look at the teacher's contact parameters: identify them from more recordings.",
        )

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(draw, numbers))


def _attempt(
    contact: ContactParameters | None, scaling: Scaling, equal: _Compiled | None, seed: int, number: int, attempt: int
) -> Trajectory:
    rng = generator(seed, "gnn", scaling.kind, number, attempt)
    if equal is None:
        equal = _compiled(varied_world(rng, int(rng.integers(2, scaling.bodies + 1))), contact)
    if contact is None:
        equal = equal.under(sample_laws(rng))
    if scaling.kind == "bowling":
        scene = sample_bowling(equal.world, rng)
    else:
        scene = sample_push(equal.world, rng, equal.overlap)
    (poses,) = simulate([Job(equal.model, scene.poses[None], scene.velocities[None])], scaling.frames + LEAD_FRAMES)
    return Trajectory(scene.world, poses[0, LEAD_FRAMES:], name=f"{scaling.kind} {number}")


@dataclass(frozen=True)
class _Compiled:
    world: World
    model: mujoco.MjModel

    def under(self, laws: Laws) -> _Compiled:
        return _Compiled(replace(self.world, laws=laws), with_laws(self.model, laws))

    def overlap(self, poses: np.ndarray) -> bool:
        data = mujoco.MjData(self.model)
        data.qpos = poses.ravel()
        mujoco.mj_kinematics(self.model, data)
        mujoco.mj_collision(self.model, data)
        return bool((data.contact.dist < -_OVERLAP_M).any())


def _compiled(world: World, contact: ContactParameters | None) -> _Compiled:
    return _Compiled(world, teacher_model(world, contact or ContactParameters()))


def _is_planar(trajectory: Trajectory) -> bool:
    """A body that topples, or that MuJoCo could not keep out of another, is not what these data are about."""
    up = turned(trajectory.poses[..., 3:], np.array([0.0, 0.0, 1.0]))[..., 2]
    speed = np.linalg.norm(np.diff(trajectory.poses[..., :3], axis=0), axis=-1) / trajectory.dt_s
    return bool(up.min() > np.cos(_STEEPEST_RAD) and speed.max() < _FASTEST_M_S)


def _card(contact: ContactParameters | None, scaling: Scaling, trajectories: int, seed: int) -> dict:
    settings = {
        "version": VERSION,
        "trajectories": trajectories,
        "seed": seed,
        "scaling": asdict(scaling),
        "contact": "any"
        if contact is None
        else {"mu": contact.mu, "solimp": list(contact.solimp), "solref": list(contact.solref)},
        "mujoco": mujoco.__version__,
    }
    text = json.dumps(settings, sort_keys=True)
    return settings | {"settings_sha256": hashlib.sha256(text.encode()).hexdigest()}


def _is_whole(path: Path) -> bool:
    """Shards are written whole or not at all; what is altered later, `load_scaled` finds."""
    try:
        load_trajectories(path)
    except SessionError:
        return False
    return True


def _shard_name(shard: int) -> str:
    return f"shard-{shard:03d}.npz"
