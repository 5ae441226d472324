from __future__ import annotations

import numpy as np
import pytest

from benchmarks.baselines.gnn_scenes import uniform_body
from rsr.common.errors import ConfigError
from rsr.learned.gnn.bodies import Mesh, MeshError, RigidBody, RigidWorld, box_mesh, hull_mesh
from rsr.learned.gnn.graph import scenes_of

BOX = box_mesh((0.02, 0.03, 0.05))


def test_inertia_of_a_box_is_the_known_one() -> None:
    x, y, z = 0.02, 0.03, 0.05
    expected = 0.3 / 3 * np.diag([y * y + z * z, x * x + z * z, x * x + y * y])
    np.testing.assert_allclose(uniform_body("box", BOX, 0.3).inertia_kg_m2, expected, atol=1e-15)


def test_centroid_and_volume_of_a_moved_box_are_found() -> None:
    moved = BOX.moved(np.array([0.1, -0.2, 0.3]))
    assert moved.volume_m3 == pytest.approx(8 * 0.02 * 0.03 * 0.05)
    np.testing.assert_allclose(uniform_body("box", moved, 1.0).mesh.vertices_m, BOX.vertices_m, atol=1e-12)


def test_a_hull_drops_inner_points_and_looks_outward() -> None:
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(30, 3)), np.zeros((1, 3))])
    mesh = hull_mesh(points)
    normals, offsets = mesh.planes
    assert not (mesh.vertices_m == 0).all(axis=1).any()
    assert (points @ normals.T <= offsets + 1e-9).all()


def test_a_box_has_six_sides_and_twelve_sharp_edges() -> None:
    scenes = scenes_of([RigidWorld((RigidBody("box", BOX, 0.1), RigidBody("hull", hull_mesh(np.eye(4, 3)), 0.1)))])
    assert (scenes.offsets_m < 1).sum(1).tolist() == [6, 4]
    assert scenes.real_edges.sum(1).tolist() == [12, 6]


def _with(vertices: np.ndarray, faces: np.ndarray = BOX.faces) -> Mesh:
    return Mesh(vertices, faces)


def _dented() -> np.ndarray:
    dented = BOX.vertices_m.copy()
    dented[0] *= 0.2
    return dented


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: _with(BOX.vertices_m, BOX.faces[:-1]), "expected a watertight mesh. Close its holes"),
        (lambda: _with(BOX.vertices_m, np.concatenate([BOX.faces, BOX.faces[:1]])), "expected a watertight mesh"),
        (lambda: _with(_dented()), "got a mesh that is not convex: a vertex stands"),
        (lambda: _with(BOX.vertices_m, BOX.faces[:, ::-1]), "got faces that look inward; expected outward faces"),
        (lambda: _with(BOX.vertices_m * [1, 1, 0]), "got faces without area"),
        (lambda: _with(np.where(BOX.vertices_m > 0, np.nan, 0)), "NaN or infinity among the vertices"),
        (lambda: _with(np.concatenate([BOX.vertices_m, np.zeros((1, 3))])), "got 1 vertices of no face"),
        (lambda: _with(BOX.vertices_m, BOX.faces + 1), "vertex indices from 0 to 7"),
        (lambda: _with(BOX.vertices_m[:, :2]), "expected vertices [V, 3] and triangles [F, 3]"),
        (lambda: hull_mesh(np.eye(3)), "expected four or more points not in a plane"),
        (lambda: box_mesh((0.1, -0.1, 0.1)), "expected three positive lengths"),
    ],
)
def test_a_mesh_that_is_no_convex_solid_is_refused(make, words: str) -> None:
    with pytest.raises(MeshError) as refused:
        make()
    assert words in str(refused.value)


def test_bodies_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigError, match="expected a positive mass"):
        RigidBody("box", BOX, 0.0)
    with pytest.raises(ConfigError, match="expected a symmetric, positive 3 x 3 matrix"):
        RigidBody("box", BOX, 0.1, np.diag([1.0, 1.0, -1.0]))
    with pytest.raises(ConfigError, match="a world without bodies"):
        RigidWorld(())
