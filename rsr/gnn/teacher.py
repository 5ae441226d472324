"""The teacher: MuJoCo with identified contacts, many trajectories at once. Results do not depend on the threads."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import mujoco
import numpy as np
from mujoco import rollout as mujoco_rollout

from rsr.errors import ScenarioError
from rsr.gnn.bodies import Body, World
from rsr.gnn.laws import Laws
from rsr.gnn.rotations import conjugate, product, rotation_vector, turned
from rsr.scenarios.two_cubes import FRAME_S, Block, ContactParameters, scene_xml

THREADS = 2
_LONGEST_STEP_S = 1 / 600
_CORRECTIONS = 2
_BOX_M = 1e-9


@dataclass(frozen=True)
class Job:
    """Trajectories that share a model.

    Args:
        poses: [B, n, 7], where they start.
        velocities: [B, n, 6], m/s in the world's frame and rad/s in the body's, as MuJoCo's free joints have them.
    """

    model: mujoco.MjModel = field(repr=False)
    poses: np.ndarray = field(repr=False)
    velocities: np.ndarray = field(repr=False)


def teacher_rollout(
    world: World,
    contact: ContactParameters,
    first_two_poses: np.ndarray,
    frames: int,
    dt_s: float = FRAME_S,
    threads: int = THREADS,
) -> np.ndarray:
    """Simulate B trajectories of a world from their first two frames.

    Args:
        first_two_poses: [B, 2, n, 7].
        frames: how many the result has, the first two included.

    Returns:
        [B, frames, n, 7]; the first two are those given.
    """
    model = teacher_model(world, contact, dt_s)
    return rollouts([model], [np.asarray(first_two_poses, float)], [frames], dt_s, threads)[0]


def rollouts(
    models: Sequence[mujoco.MjModel],
    first_two_poses: Sequence[np.ndarray],
    frames: Sequence[int],
    dt_s: float,
    threads: int = THREADS,
) -> list[np.ndarray]:
    """Simulate several groups of trajectories, each with its own model, from their first two frames [B, 2, n, 7]."""
    starts = [np.asarray(poses, float) for poses in first_two_poses]
    velocities = start_velocities(models, starts, dt_s, threads)
    simulated = simulate(_jobs(models, starts, velocities), frames, dt_s, threads)
    for poses, after in zip(starts, simulated, strict=True):
        after[:, :2] = poses[:, : after.shape[1]]
    return simulated


def start_velocities(
    models: Sequence[mujoco.MjModel], starts: Sequence[np.ndarray], dt_s: float, threads: int = THREADS
) -> list[np.ndarray]:
    """Velocities [B, n, 6] with which MuJoCo leaves the first of two frames [B, 2, n, 7] to reach the second.

    Backward differences (frame 1 less frame 0) are the mean velocity between two frames, not that at either. So they
    are corrected by what friction and gravity do in between. Tilts are not: the floor holds them, whatever they start
    with.
    """
    velocities = [difference(poses[:, 0], poses[:, 1], dt_s) for poses in starts]
    for _ in range(_CORRECTIONS):
        reached = simulate(_jobs(models, starts, velocities), [2] * len(starts), dt_s, threads)
        for velocity, poses, after in zip(velocities, starts, reached, strict=True):
            velocity += _correction(after[:, 1], poses[:, 1], dt_s)
    return velocities


def simulate(
    jobs: Sequence[Job], frames: int | Sequence[int], dt_s: float = FRAME_S, threads: int = THREADS
) -> list[np.ndarray]:
    """Simulate groups of trajectories; returns their poses [B, frames, n, 7], the start included."""
    counts = [frames] * len(jobs) if isinstance(frames, int) else list(frames)
    if threads == 1 or len(jobs) == 1:
        return [_simulate(job, count, dt_s) for job, count in zip(jobs, counts, strict=True)]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda job, count: _simulate(job, count, dt_s), jobs, counts))


def teacher_model(world: World, contact: ContactParameters, dt_s: float = FRAME_S) -> mujoco.MjModel:
    """Compile a world with these contacts."""
    xml = scene_xml(
        [block_of(index, body) for index, body in enumerate(world.bodies)],
        contact,
        dt_s / substeps(dt_s),
        world.floor,
        world.gravity_m_s2,
    )
    try:
        return mujoco.MjModel.from_xml_string(xml)
    except ValueError as error:  # MuJoCo's own message names the body
        raise ScenarioError(
            got=str(error).strip(),
            expected="bodies that MuJoCo compiles",
            where="teacher",
            next_step="Correct the masses, the inertias or the meshes of these bodies.",
        ) from error


def with_contact(model: mujoco.MjModel, contact: ContactParameters) -> mujoco.MjModel:
    """A copy of a model with other contacts."""
    changed = copy.copy(model)
    changed.pair_friction[:, :2] = contact.mu
    changed.pair_solimp[:] = contact.solimp
    changed.pair_solref[:] = contact.solref
    return changed


def with_laws(model: mujoco.MjModel, laws: Laws) -> mujoco.MjModel:
    """A copy of a model whose contacts with the floor obey other laws than those between bodies."""
    changed = with_contact(model, laws.bodies)
    types = model.geom_type[np.stack([model.pair_geom1, model.pair_geom2])]
    on_floor = (types == int(mujoco.mjtGeom.mjGEOM_PLANE)).any(axis=0)
    changed.pair_friction[on_floor, :2] = laws.floor.mu
    changed.pair_solimp[on_floor] = laws.floor.solimp
    changed.pair_solref[on_floor] = laws.floor.solref
    return changed


def difference(poses: np.ndarray, later: np.ndarray, dt_s: float) -> np.ndarray:
    """Velocities [..., 6] from poses [..., 7] to later ones, the angular ones in the body's frame."""
    turn = rotation_vector(product(conjugate(poses[..., 3:]), later[..., 3:]))
    return np.concatenate([later[..., :3] - poses[..., :3], turn], axis=-1) / dt_s


def substeps(dt_s: float) -> int:
    """Physics steps to a frame."""
    return max(1, int(np.ceil(dt_s / _LONGEST_STEP_S - 1e-9)))


def block_of(index: int, body: Body) -> Block:
    """The body as the scene knows it. A box is told from its corners, because MuJoCo is faster and exact with boxes."""
    vertices, name = body.mesh.vertices_m, f"body{index}"
    half = np.abs(vertices).max(axis=0)
    box = len(vertices) == 8 and np.allclose(np.abs(vertices), half, rtol=0, atol=_BOX_M)
    x, y, z = half.tolist()
    if box:
        return Block(name, body.mass_kg, body.inertia_kg_m2, half_sizes_m=(x, y, z))
    return Block(name, body.mass_kg, body.inertia_kg_m2, vertices_m=vertices)


def _correction(reached: np.ndarray, wanted: np.ndarray, dt_s: float) -> np.ndarray:
    """What to add to velocities [B, n, 6] that led to poses [B, n, 7] beside the wanted ones."""
    missed = difference(reached, wanted, dt_s)
    up = turned(conjugate(wanted[..., 3:]), np.array([0.0, 0.0, 1.0]))
    missed[..., 3:] = (missed[..., 3:] * up).sum(axis=-1, keepdims=True) * up
    return missed


def _jobs(
    models: Sequence[mujoco.MjModel], starts: Sequence[np.ndarray], velocities: Sequence[np.ndarray]
) -> list[Job]:
    return [Job(*columns) for columns in zip(models, (poses[:, 0] for poses in starts), velocities, strict=True)]


def _simulate(job: Job, frames: int, dt_s: float) -> np.ndarray:
    batch, bodies = job.poses.shape[:2]
    start = np.concatenate([np.zeros((batch, 1)), job.poses.reshape(batch, -1), job.velocities.reshape(batch, -1)], 1)
    poses = np.empty((batch, frames, bodies, 7))
    poses[:, 0] = job.poses
    if frames > 1:
        every = substeps(dt_s)
        data = mujoco.MjData(job.model)
        states, _ = mujoco_rollout.rollout(job.model, data, start, nstep=(frames - 1) * every)
        poses[:, 1:] = states[:, every - 1 :: every, 1 : 1 + 7 * bodies].reshape(batch, frames - 1, bodies, 7)
    return poses
