"""MuJoCo on any number of convex bodies, from two frames on: the oracle that contact networks are checked against.

The product's teacher is a scenario's own model. Here a world is made of bodies alone, so that tests and benchmarks may
have one, two or eleven of any shape. All contacts obey the same `ContactParameters`.
"""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
import torch
from mujoco import rollout as mujoco_rollout

from rsr.common import conjugate, product, rotation_vector, turned
from rsr.learned.gnn import START_FRAMES, Mesh, PushTask, RigidBody, RigidWorld, Trajectory, box_mesh, hull_mesh
from rsr.scenarios.built_in.two_cubes import FRAME_S, MASS_KG, SIDE_M, BlockGeometry, ContactParameters, scene_xml

_LONGEST_STEP_S = 1 / 600
_CORRECTIONS = 2
_BOX_M = 1e-9
_EDGE_M = (0.06, 0.10)
_MASSES_KG = (0.08, 0.30)


def contact_of(values: np.ndarray) -> ContactParameters:
    """Contacts from the parameters [8] of scenario two_cubes."""
    mu, d_0, d_width, width, midpoint, power, time_constant, damping_ratio = values.tolist()
    return ContactParameters(mu, (d_0, d_width, width, midpoint, power), (time_constant, damping_ratio))


def cube_world(count: int = 2) -> RigidWorld:
    """The cubes of scenario two_cubes on their table, any number of them."""
    mesh = box_mesh(np.full(3, SIDE_M / 2), "cube")
    return RigidWorld(tuple(RigidBody(f"cube{index + 1}", mesh, MASS_KG) for index in range(count)))


def pair_task(gap_m: float, target_m: Sequence[float], dt_s: float = FRAME_S) -> PushTask:
    """Two cubes in a row along x, the one to push in the origin, faces `gap_m` apart."""
    upright = [SIDE_M / 2, 1.0, 0.0, 0.0, 0.0]
    poses = torch.tensor([[0.0, 0.0, *upright], [SIDE_M + gap_m, 0.0, *upright]])
    return PushTask(poses, torch.tensor([float(each) for each in target_m]), dt_s)


def varied_world(rng: np.random.Generator, count: int) -> RigidWorld:
    """Bodies of different mass and shape: cubes, boxes, and prisms with three to eight sides, some of them tapered."""
    return RigidWorld(
        tuple(uniform_body(f"body{index + 1}", _solid(rng), float(rng.uniform(*_MASSES_KG))) for index in range(count))
    )


def uniform_body(name: str, mesh: Mesh, mass_kg: float) -> RigidBody:
    """Make a body of uniform density; the mesh is moved so that its centroid is the origin."""
    corners = mesh.vertices_m[mesh.faces]
    # A tetrahedron's centroid is a quarter of its corners' sum, one of them the origin: hence 24 = 6 x 4.
    centroid = (np.linalg.det(corners)[:, None] * corners.sum(1)).sum(0) / (24 * mesh.volume_m3)
    return RigidBody(name, mesh.moved(-centroid), mass_kg)


def standing_still(trajectories: Sequence[Trajectory]) -> list[np.ndarray]:
    """Predict that nothing moves after the second frame, which any simulator has to beat: poses [T, n, 7] each."""
    held = [each.poses.copy() for each in trajectories]
    for poses in held:
        poses[START_FRAMES:] = poses[START_FRAMES - 1]
    return held


def rollout_in_mujoco(
    world: RigidWorld, contact: ContactParameters, first_two_poses: np.ndarray, frames: int, dt_s: float = FRAME_S
) -> np.ndarray:
    """Simulate B trajectories of a world from their first two frames.

    Args:
        first_two_poses: [B, 2, n, 7].
        frames: how many the result has, the first two included.

    Returns:
        [B, frames, n, 7]; the first two are the given ones.
    """
    model = compiled(world, contact, dt_s)
    starts = np.asarray(first_two_poses, float)
    poses = simulate(model, starts[:, 0], start_velocities(model, starts, dt_s), frames, dt_s)
    poses[:, :2] = starts[:, :frames]
    return poses


def start_velocities(model: mujoco.MjModel, starts: np.ndarray, dt_s: float) -> np.ndarray:
    """Velocities [B, n, 6] with which MuJoCo leaves the first of two frames [B, 2, n, 7] to reach the second."""
    velocities = difference(starts[:, 0], starts[:, 1], dt_s)
    # A difference of frames is the mean velocity between them; friction and gravity act in between, so it is
    # corrected by what the simulation missed. Tilts are not: the floor holds them, whatever they start with.
    for _ in range(_CORRECTIONS):
        missed = difference(simulate(model, starts[:, 0], velocities, 2, dt_s)[:, 1], starts[:, 1], dt_s)
        up = turned(conjugate(starts[:, 1, :, 3:]), np.array([0.0, 0.0, 1.0]))
        missed[..., 3:] = (missed[..., 3:] * up).sum(axis=-1, keepdims=True) * up
        velocities = velocities + missed
    return velocities


def simulate(
    model: mujoco.MjModel, poses: np.ndarray, velocities: np.ndarray, frames: int, dt_s: float = FRAME_S
) -> np.ndarray:
    """Simulate from poses [B, n, 7] and velocities [B, n, 6]; returns poses [B, frames, n, 7], the start included.

    Velocities are m/s in the world's frame and rad/s in the body's, as MuJoCo's free joints have them.
    """
    batch, bodies = poses.shape[:2]
    start = np.concatenate([np.zeros((batch, 1)), poses.reshape(batch, -1), velocities.reshape(batch, -1)], 1)
    every = substeps(dt_s)
    states, _ = mujoco_rollout.rollout(model, mujoco.MjData(model), start, nstep=max(frames - 1, 1) * every)
    after = states[:, every - 1 :: every, 1 : 1 + 7 * bodies].reshape(batch, -1, bodies, 7)
    return np.concatenate([poses[:, None], after], axis=1)[:, :frames]


def compiled(world: RigidWorld, contact: ContactParameters, dt_s: float = FRAME_S) -> mujoco.MjModel:
    """Compile a world with these contacts."""
    blocks = [block_of(index, body) for index, body in enumerate(world.bodies)]
    xml = scene_xml(blocks, contact, dt_s / substeps(dt_s), world.floor, world.gravity_m_s2)
    return mujoco.MjModel.from_xml_string(xml)


def difference(poses: np.ndarray, later: np.ndarray, dt_s: float) -> np.ndarray:
    """Velocities [..., 6] from poses [..., 7] to later ones, the angular ones in the body's frame."""
    turn = rotation_vector(product(conjugate(poses[..., 3:]), later[..., 3:]))
    return np.concatenate([later[..., :3] - poses[..., :3], turn], axis=-1) / dt_s


def substeps(dt_s: float) -> int:
    """Physics steps to a frame."""
    return max(1, int(np.ceil(dt_s / _LONGEST_STEP_S - 1e-9)))


def block_of(index: int, body: RigidBody) -> BlockGeometry:
    """The body as the scene knows it. A box is told from its corners, because MuJoCo is faster and exact with boxes."""
    vertices, name = body.mesh.vertices_m, f"body{index}"
    half = np.abs(vertices).max(axis=0)
    if len(vertices) == 8 and np.allclose(np.abs(vertices), half, rtol=0, atol=_BOX_M):
        x, y, z = half.tolist()
        return BlockGeometry(name, body.mass_kg, body.inertia_kg_m2, half_sizes_m=(x, y, z))
    return BlockGeometry(name, body.mass_kg, body.inertia_kg_m2, vertices_m=vertices)


def _solid(rng: np.random.Generator) -> Mesh:
    kind = rng.choice(["cube", "box", "prism"], p=[0.25, 0.4, 0.35])
    if kind == "cube":
        return box_mesh(np.full(3, rng.uniform(*_EDGE_M) / 2), "cube")
    if kind == "box":
        return box_mesh(rng.uniform(*_EDGE_M, 3) / 2, "box")
    return _prism(rng)


def _prism(rng: np.random.Generator) -> Mesh:
    # Sides of unequal width, so that no two of these are alike; the top may be smaller than the base.
    sides = int(rng.integers(3, 9))
    angle = 2 * np.pi * (np.arange(sides) + rng.uniform(-0.25, 0.25, sides)) / sides
    outline = rng.uniform(*_EDGE_M) / 2 * 1.15 * np.column_stack([np.cos(angle), np.sin(angle)])
    half_m = rng.uniform(*_EDGE_M) / 2
    top = outline * (rng.uniform(0.7, 1.0) if rng.random() < 0.5 else 1.0)
    levels = [np.column_stack([outline, np.full(sides, -half_m)]), np.column_stack([top, np.full(sides, half_m)])]
    return hull_mesh(np.concatenate(levels), "prism")
