from __future__ import annotations

import numpy as np
import pytest
import torch
from convex_pairs import as_poses, random_pair

from benchmarks.baselines.gnn_faces import nearest_of_triangles
from rsr.learned.gnn.bodies import RigidWorld
from rsr.learned.gnn.detection import detect
from rsr.learned.gnn.graph import scenes_of
from rsr.learned.gnn.nearest import nearest_of_segments, nearest_on_convex, nearest_points
from rsr.learned.gnn.rigid import exponential, matrix, product

coal = pytest.importorskip("benchmarks.baselines.gnn_coal", reason="needs coal: pip install coal", exc_type=ImportError)
STEP = 1e-5


def _shifted(places: torch.Tensor, turns: torch.Tensor, by: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both bodies moved by [12]: places, then rotation vectors in the world's frame."""
    return places + by[:6].reshape(2, 3), product(exponential(by[6:].reshape(2, 3)), turns)


def _true(world: RigidWorld, places: torch.Tensor, turns: torch.Tensor, by: np.ndarray) -> np.ndarray:
    """The nearest points [6] of two meshes as Coal's GJK finds them."""
    first, second = as_poses(*_shifted(places, turns, torch.as_tensor(by)))
    found = coal.nearest_of_meshes(world.bodies[0].mesh, first, world.bodies[1].mesh, second)
    return np.concatenate([found.point_first_m, found.point_second_m])


def _differences(world: RigidWorld, places: torch.Tensor, turns: torch.Tensor, step: float) -> np.ndarray:
    steps = step * np.eye(12)
    ways = [_true(world, places, turns, by) - _true(world, places, turns, -by) for by in steps]
    return np.stack(ways, axis=1) / (2 * step)


def _found(world: RigidWorld, places: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """The nearest of the contacts that the batched detection finds: both points [6]."""
    contacts = detect(scenes_of([world], torch.float64), places, matrix(turns), 0.1)
    best = int(contacts.gaps_m.argmin())
    points = torch.zeros(2, 3, dtype=torch.float64)
    for body, arm in ((contacts.first, contacts.arms_first_m), (contacts.second, contacts.arms_second_m)):
        points = points.index_put((body[best : best + 1],), (places[body[best]] + arm[best])[None])
    return points.reshape(6)


def _cases(count: int) -> list[tuple]:
    """Pairs of bodies apart from each other, with the differences of their true nearest points; away from switches.

    Near a switch from one feature to another, the true nearest points jump or bend: there differences over two steps
    disagree, whatever any gradient says.
    """
    rng, cases = np.random.default_rng(3), []
    while len(cases) < count:
        world, places, turns = random_pair(rng)
        first, second = as_poses(places, turns)
        apart_m = coal.nearest_of_meshes(world.bodies[0].mesh, first, world.bodies[1].mesh, second).distance_m
        if not 0.004 < apart_m < 0.08:
            continue
        points = _true(world, places, turns, np.zeros(12))
        differences, finer = (_differences(world, places, turns, step) for step in (STEP, STEP / 2))
        if np.linalg.norm(differences - finer) < 1e-5 * np.linalg.norm(differences):
            cases.append((world, places, turns, points, differences))
    return cases


def test_gradients_are_those_of_the_true_nearest_points() -> None:
    kinds = set()
    for world, places, turns, points, differences in _cases(30):
        found = _found(world, places, turns)
        np.testing.assert_allclose(found.numpy(), points, atol=1e-7)
        jacobian = torch.autograd.functional.jacobian(
            lambda by, w=world, p=places, t=turns: _found(w, *_shifted(p, t, by)), torch.zeros(12, dtype=torch.float64)
        )
        assert np.linalg.norm(jacobian.numpy() - differences) < 1e-3 * np.linalg.norm(differences)
        # How far a point follows its own body's shift tells vertices (all the way) from edges and faces.
        kinds.add(tuple(round(float(np.trace(differences[rows, rows]))) for rows in (slice(0, 3), slice(3, 6))))
    assert len(kinds) >= 3


def _pair(rng: np.random.Generator, tangents: int) -> tuple:
    orientations = torch.tensor(rng.normal(size=(2, 5, 4)))
    turns = matrix(orientations / orientations.norm(dim=-1, keepdim=True))
    local = torch.tensor(rng.normal(size=(2, 5, 3)) * 0.03)
    along = torch.linalg.qr(torch.tensor(rng.normal(size=(2, 5, 3, 2))))[0][..., :tangents]
    return torch.tensor(rng.normal(size=(2, 5, 3)) * 0.1), turns, local, along


def test_without_tangents_it_is_the_contact_jacobian_of_the_paper() -> None:
    """Eqs. (5) to (7): dp = dx + w x r, for the body the point is on, and nothing for the other."""
    places, turns, local, _ = _pair(np.random.default_rng(0), 0)
    by = torch.zeros(2, 5, 6, dtype=torch.float64, requires_grad=True)
    turned = matrix(exponential(by[..., 3:])) @ turns
    first, second = nearest_points(
        (places[0] + by[0, :, :3], places[1] + by[1, :, :3]), (turned[0], turned[1]), (local[0], local[1])
    )
    pull = torch.tensor(np.random.default_rng(1).normal(size=(2, 5, 3)))
    (gradient,) = torch.autograd.grad((first * pull[0]).sum() + (second * pull[1]).sum(), by)
    arms = (turns @ local[..., None])[..., 0]
    torch.testing.assert_close(gradient, torch.cat([pull, torch.linalg.cross(arms, pull)], dim=-1))


@pytest.mark.parametrize("tangents", [1, 2])
def test_points_on_parallel_features_keep_finite_gradients(tangents: int) -> None:
    places, turns, local, along = _pair(np.random.default_rng(2), tangents)
    turns[1], along[1] = turns[0], along[0]
    leaf = places.requires_grad_()
    first, second = nearest_points((leaf[0], leaf[1]), (turns[0], turns[1]), (local[0], local[1]), (along[0], along[1]))
    (gradient,) = torch.autograd.grad((first - second).square().sum(), leaf)
    assert torch.isfinite(gradient).all()
    torch.testing.assert_close(gradient[0], -gradient[1])


def test_the_nearest_point_of_a_box_is_the_clamped_one() -> None:
    rng = np.random.default_rng(0)
    world, *_ = random_pair(np.random.default_rng(2))
    box = next(body for body in world.bodies if len(body.mesh.vertices_m) == 8 and len(body.mesh.faces) == 12)
    scenes = scenes_of([RigidWorld((box,))], torch.float64)
    half = torch.as_tensor(box.mesh.vertices_m.max(0))
    points = torch.tensor(rng.normal(size=(200, 3)) * 0.1)
    points = points[(points.abs() > half).any(1)]
    segments = scenes.vertices_m[0][scenes.edges[0]].expand(len(points), -1, -1, -1)
    found = nearest_on_convex(points, scenes.normals.expand(len(points), -1, -1), scenes.offsets_m, segments)
    torch.testing.assert_close(found.points_m, points.clamp(-half, half))


def test_nearest_points_of_segments_and_triangles_are_the_least_of_a_dense_search() -> None:
    rng = np.random.default_rng(5)
    segments = torch.tensor(rng.normal(size=(2, 40, 2, 3)))
    grid = torch.linspace(0, 1, 101, dtype=torch.float64)
    share, partner = nearest_of_segments(segments[0], segments[1])
    points = [
        ends[:, 0] + at[:, None] * (ends[:, 1] - ends[:, 0])
        for ends, at in zip(segments, (share, partner), strict=True)
    ]
    dense = [ends[:, :1] + grid[:, None] * (ends[:, 1:] - ends[:, :1]) for ends in segments]
    least = (dense[0][:, :, None] - dense[1][:, None]).norm(dim=3).amin((1, 2))
    assert ((points[0] - points[1]).norm(dim=1) < least + 1e-9).all()
    triangles = torch.tensor(rng.normal(size=(2, 40, 3, 3)))
    triangles[1] += 2.5
    one, other, apart = nearest_of_triangles(triangles[0], triangles[1])
    s, t = torch.meshgrid(grid[::4], grid[::4], indexing="ij")
    weights = torch.stack([1 - s - t, s, t], dim=-1)[s + t <= 1 + 1e-12]
    dense = [weights @ corners for corners in triangles]
    least = (dense[0][:, :, None] - dense[1][:, None]).norm(dim=3).amin((1, 2))
    between = ((one[:, :, None] * triangles[0]).sum(1) - (other[:, :, None] * triangles[1]).sum(1)).norm(dim=1)
    torch.testing.assert_close(between, apart)
    assert (apart < least + 1e-9).all()
    assert (apart > least - 0.15).all()
