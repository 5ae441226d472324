"""Trajectories: stored to the byte, refused where they are none, turned about the vertical."""

import numpy as np
import pytest
from pushes_at_hand import pushed

from benchmarks.baselines.gnn_augmentation import augment, rotated
from benchmarks.baselines.gnn_scenes import cube_world, varied_world
from rsr.common.errors import SessionError
from rsr.common.files import sha256
from rsr.learned.gnn.bodies import RigidWorld
from rsr.learned.gnn.trajectories import Trajectory, load_trajectories, save_trajectories


def mixed() -> list[Trajectory]:
    """Worlds of two, three and one body, boxes and prisms, with and without a floor."""
    rng = np.random.default_rng(0)
    worlds = [
        varied_world(rng, 2),
        cube_world(3),
        RigidWorld(varied_world(rng, 1).bodies, floor=False, gravity_m_s2=1.6),
    ]
    found = []
    for frames, world in enumerate(worlds, 4):
        poses = rng.normal(size=(frames, len(world.bodies), 7))
        poses[..., 3:] /= np.linalg.norm(poses[..., 3:], axis=-1, keepdims=True)
        found.append(Trajectory(world, poses, dt_s=1 / (60 + frames), name=f"numbér {frames}"))
    return found


def test_what_is_stored_comes_back(tmp_path):
    saved = mixed()
    save_trajectories(saved, tmp_path / "a.npz")
    for one, other in zip(saved, load_trajectories(tmp_path / "a.npz"), strict=True):
        np.testing.assert_array_equal(one.poses, other.poses)
        assert (one.name, one.dt_s, one.world.floor) == (other.name, other.dt_s, other.world.floor)
        assert one.world.gravity_m_s2 == other.world.gravity_m_s2
        for body, again in zip(one.world.bodies, other.world.bodies, strict=True):
            assert (body.name, body.mass_kg, body.mesh.name) == (again.name, again.mass_kg, again.mesh.name)
            np.testing.assert_array_equal(body.mesh.vertices_m, again.mesh.vertices_m)
            np.testing.assert_array_equal(body.mesh.faces, again.mesh.faces)
            np.testing.assert_array_equal(body.inertia_kg_m2, again.inertia_kg_m2)
    save_trajectories(mixed(), tmp_path / "b.npz")
    assert sha256(tmp_path / "a.npz") == sha256(tmp_path / "b.npz")


def test_no_trajectory_at_all_can_be_stored(tmp_path):
    save_trajectories([], tmp_path / "none.npz")
    assert load_trajectories(tmp_path / "none.npz") == []


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut", None])
def test_a_damaged_or_absent_file_is_named(tmp_path, content):
    path = tmp_path / "x.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SessionError, match=r"x\.npz: got .*; expected trajectories that"):
        load_trajectories(path)


def test_another_file_of_arrays_is_refused(tmp_path):
    np.savez(tmp_path / "other.npz", poses=np.zeros(3))
    with pytest.raises(SessionError, match="expected trajectories that"):
        load_trajectories(tmp_path / "other.npz")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda poses: poses[:2], "got 2 frames; expected at least 3: the first two are the start alone"),
        (lambda poses: poses[:, :1], r"got poses of shape [20, 1, 7]; expected [T, 2, 7]"),
        (lambda poses: np.where(poses == poses[5, 0, 0], np.nan, poses), "got NaN or infinity among the poses"),
        (lambda poses: poses * 1.01, "got orientations that are no unit quaternions"),
    ],
)
def test_poses_that_are_none_are_refused(change, message):
    good = pushed()
    with pytest.raises(SessionError) as caught:
        good.with_poses(change(good.poses))
    assert message in str(caught.value)
    assert "push at 1 m/s" in str(caught.value)


def test_a_time_step_of_nothing_is_refused():
    with pytest.raises(SessionError, match="got 0 s between frames"):
        Trajectory(pushed().world, pushed().poses, dt_s=0.0)


def test_turned_trajectories_are_the_same_push_elsewhere():
    push = pushed()
    turned = rotated(push, np.pi / 2)
    np.testing.assert_allclose(turned.poses[..., 0], -push.poses[..., 1], atol=1e-12)
    np.testing.assert_allclose(turned.poses[..., 1], push.poses[..., 0], atol=1e-12)
    np.testing.assert_allclose(rotated(turned, -np.pi / 2).poses, push.poses, atol=1e-12)
    many = augment([push, turned], 7, seed=3)
    assert [each.name for each in many[:2]] == ["push at 1 m/s, turned 0", "push at 1 m/s, turned 1"]
    apart = [np.linalg.norm(each.poses[:, 0, :3] - each.poses[:, 1, :3], axis=-1) for each in many]
    np.testing.assert_allclose(apart, np.tile(apart[0], (7, 1)), atol=1e-12)
    for one, other in zip(many, augment([push, turned], 7, seed=3), strict=True):
        np.testing.assert_array_equal(one.poses, other.poses)
    with pytest.raises(SessionError, match="rotation augmentation: got no trajectory"):
        augment([], 3)
