"""The oracle of these tests: MuJoCo from two frames to the trajectory they belong to, for boxes and meshes alike."""

import mujoco
import numpy as np
import pytest
from pushes_at_hand import KNOWN, WORLD, pushed

from benchmarks.baselines.gnn_scenes import (
    block_of,
    compiled,
    difference,
    rollout_in_mujoco,
    simulate,
    substeps,
    varied_world,
)
from rsr.common.rotations import (
    about_z,
    angle_between,
    conjugate,
    from_rotation_vector,
    product,
    rotation_vector,
    turned,
)
from rsr.learned.gnn.bodies import RigidBody, RigidWorld, box_mesh, hull_mesh


def test_rotations_are_mujocos():
    rng = np.random.default_rng(0)
    one, other = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in rng.normal(size=(2, 20, 4)))
    vector, small = rng.uniform(-1.7, 1.7, (20, 3)), rng.normal(size=(20, 3)) * 1e-10
    expected = np.empty((20, 4)), np.empty((20, 3))
    for row in range(20):
        mujoco.mju_mulQuat(expected[0][row], one[row], other[row])
        mujoco.mju_rotVecQuat(expected[1][row], vector[row], one[row])
    np.testing.assert_allclose(product(one, other), expected[0], atol=1e-14)
    np.testing.assert_allclose(turned(one, vector), expected[1], atol=1e-14)
    np.testing.assert_allclose(rotation_vector(from_rotation_vector(vector)), vector, atol=1e-12)
    np.testing.assert_allclose(rotation_vector(from_rotation_vector(small)), small, rtol=1e-6, atol=0)
    np.testing.assert_allclose(
        angle_between(one, product(one, from_rotation_vector(vector))), np.linalg.norm(vector, axis=1)
    )
    np.testing.assert_allclose(angle_between(one, -one), 0, atol=1e-7)
    np.testing.assert_allclose(product(about_z(0.3), conjugate(about_z(0.3))), [1, 0, 0, 0], atol=1e-15)


@pytest.mark.parametrize("speed_m_s", [0.4, 0.8, 1.2])
def test_two_frames_of_its_own_give_the_rest(speed_m_s):
    """To 1 mm: how a sliding cube rocks on its edges is not in two frames. A backward difference alone is worse."""
    truth = pushed(speed_m_s)
    found = rollout_in_mujoco(WORLD, KNOWN, truth.start[None], len(truth))[0]
    np.testing.assert_array_equal(found[:2], truth.start)
    off = np.linalg.norm((found - truth.poses)[-1, :, :3], axis=-1).max()
    assert off < 1e-3
    velocities = difference(truth.poses[0], truth.poses[1], truth.dt_s)
    naive = simulate(compiled(WORLD, KNOWN), truth.poses[1:2], velocities[None], len(truth) - 1)
    assert np.linalg.norm((naive[0] - truth.poses[1:])[-1, :, :3], axis=-1).max() > 2 * off


def test_a_thrown_body_follows_its_parabola():
    """Without floor and at another rate, turning about an axis of inertia."""
    world = RigidWorld((RigidBody("brick", box_mesh((0.02, 0.03, 0.05)), 0.4),), floor=False)
    dt_s, frames = 1 / 148, 30
    time_s = np.arange(frames) * dt_s
    poses = np.zeros((1, frames, 1, 7))
    poses[0, :, 0, 0], poses[0, :, 0, 2] = 0.5 * time_s, 1 + 2 * time_s - 0.5 * 9.81 * time_s**2
    poses[0, :, 0, 3:] = about_z(3.0 * time_s)
    found = rollout_in_mujoco(world, KNOWN, poses[:, :2], frames, dt_s)
    np.testing.assert_allclose(found, poses, atol=2e-4)
    assert substeps(dt_s) == 5
    assert substeps(1 / 60) == 10


def test_a_box_as_a_mesh_moves_like_the_box():
    corners = box_mesh((0.04, 0.04, 0.04)).vertices_m
    extra = np.concatenate([corners, [[0.0, 0.0, 0.0402]]])  # a flat pyramid on top, so that it is a mesh for MuJoCo
    meshed = RigidWorld((WORLD.bodies[0], RigidBody("mesh", hull_mesh(extra), 0.15, WORLD.bodies[1].inertia_kg_m2)))
    assert block_of(1, meshed.bodies[1]).vertices_m is not None
    assert block_of(0, meshed.bodies[0]).half_sizes_m == pytest.approx((0.04, 0.04, 0.04))
    truth = pushed()
    found = rollout_in_mujoco(meshed, KNOWN, truth.start[None], 20)[0]
    assert np.linalg.norm(found[-1, :, :3] - truth.poses[-1, :, :3], axis=-1).max() < 3e-3


def test_varied_bodies_rest_on_the_table():
    world = varied_world(np.random.default_rng(3), 6)
    poses = np.zeros((1, 2, 6, 7))
    poses[..., 0], poses[..., 3] = np.arange(6) * 0.3, 1.0
    poses[..., 2] = [-body.mesh.vertices_m[:, 2].min() for body in world.bodies]
    rest = rollout_in_mujoco(world, KNOWN, poses, 30)
    np.testing.assert_allclose(rest[0, -1], poses[0, 0], atol=1e-3)
