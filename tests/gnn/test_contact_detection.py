from __future__ import annotations

import numpy as np
import pytest
import torch
from convex_pairs import as_poses, random_body, random_pair, random_turns

from benchmarks.baselines.gnn_faces import FacePairs, face_pairs
from rsr.learned.gnn.bodies import RigidBody, RigidWorld, box_mesh
from rsr.learned.gnn.detection import Contacts, detect
from rsr.learned.gnn.graph import Scenes, scenes_of
from rsr.learned.gnn.rigid import exponential, matrix, product, turned

coal = pytest.importorskip("benchmarks.baselines.gnn_coal", reason="needs coal: pip install coal", exc_type=ImportError)
MARGIN_M = 0.035
CUBE = RigidBody("cube", box_mesh((0.04,) * 3), 0.15)


def _detect(worlds: list[RigidWorld], places: torch.Tensor, orientations: torch.Tensor) -> Contacts:
    return detect(scenes_of(worlds, torch.float64), places, matrix(orientations), MARGIN_M)


def test_gaps_are_those_of_gjk_and_epa() -> None:
    rng, seen = np.random.default_rng(0), {"apart": 0, "overlapping": 0}
    for _ in range(250):
        world, places, turns = random_pair(rng)
        first, second = as_poses(places, turns)
        true = coal.nearest_of_meshes(world.bodies[0].mesh, first, world.bodies[1].mesh, second)
        if not -0.001 < true.distance_m < MARGIN_M:
            continue
        contacts = _detect([world], places, turns)
        # Within 2 mm, vertices are judged by the plane between the bodies: off by what a corner sticks out of it.
        exact = true.distance_m > 0.002
        assert float(contacts.gaps_m.min()) == pytest.approx(true.distance_m, abs=2e-4 if exact else 1e-3)
        seen["apart" if exact else "overlapping"] += 1
    assert seen["apart"] > 60
    assert seen["overlapping"] > 3


def test_contacts_lie_on_both_bodies_and_their_normals_look_at_the_first() -> None:
    rng = np.random.default_rng(1)
    for _ in range(40):
        world, places, turns = random_pair(rng, 0.05)
        contacts = _detect([world], places, turns)
        points = [
            places[body] + arm
            for body, arm in ((contacts.first, contacts.arms_first_m), (contacts.second, contacts.arms_second_m))
        ]
        between = points[0] - points[1]
        torch.testing.assert_close(between, contacts.gaps_m[:, None] * contacts.normals, atol=1e-7, rtol=0)
        torch.testing.assert_close(contacts.normals.norm(dim=1), torch.ones_like(contacts.gaps_m))


def test_cubes_of_one_height_push_each_other_sideways_only() -> None:
    """Their top corners lie in one plane, and by a hair above or below: no reason for a normal that looks up."""
    rng = np.random.default_rng(2)
    world = RigidWorld((CUBE, CUBE))
    for gap in (-2e-4, 0.0, 5e-4, 0.005):
        places = torch.tensor([[0.0, 0, 0.04], [0.08 + gap, 0.02, 0.04]]) + torch.tensor(rng.normal(size=(2, 3)) * 1e-6)
        turns = exponential(torch.tensor(rng.normal(size=(2, 3)) * 1e-6))
        contacts = _detect([world], places, turns)
        near = (contacts.second < 2) & (contacts.gaps_m < gap + 0.002)
        assert near.sum() == 4  # two corners of each lie on the other's side
        torch.testing.assert_close(
            contacts.gaps_m[near], torch.full_like(contacts.gaps_m[near], gap), atol=2e-5, rtol=0
        )
        sideways = contacts.normals[near, 0].abs()
        torch.testing.assert_close(sideways, torch.ones_like(sideways), atol=1e-5, rtol=0)


def test_a_standing_cube_touches_the_floor_in_four_corners() -> None:
    contacts = _detect(
        [RigidWorld((CUBE,))], torch.tensor([[0, 0, 0.0399]]).double(), torch.tensor([[1.0, 0, 0, 0]]).double()
    )
    torch.testing.assert_close(contacts.gaps_m, torch.full((4,), -1e-4, dtype=torch.float64))
    assert contacts.second.tolist() == [1] * 4
    assert contacts.normals[:, 2].tolist() == [1.0] * 4
    assert (
        len(_detect([RigidWorld((CUBE,), floor=False)], torch.zeros(1, 3).double(), torch.eye(1, 4).double()).first)
        == 0
    )


def test_edges_that_cross_are_found() -> None:
    """Two cubes balanced on edges, one above the other and across it: no corner is near anything."""
    tilt = exponential(torch.tensor([[np.pi / 4, 0, 0], [0, np.pi / 4, 0]], dtype=torch.float64))
    height = 0.04 * np.sqrt(2)
    places = torch.tensor([[0.003, 0.005, 2 * height + 0.001], [0.0, 0, 0]], dtype=torch.float64)
    contacts = _detect([RigidWorld((CUBE, CUBE), floor=False)], places, tilt)
    best = int(contacts.gaps_m.argmin())
    assert float(contacts.gaps_m[best]) == pytest.approx(0.001, abs=1e-9)
    assert contacts.normals[best].abs().tolist() == pytest.approx([0, 0, 1], abs=1e-9)
    # One edge lies along x at y = 0.005, the other along y at x = 0.
    point = places[contacts.first[best]] + contacts.arms_first_m[best]
    assert point[:2].tolist() == pytest.approx([0, 0.005], abs=1e-9)


def test_a_batch_of_scenes_of_different_size_has_the_contacts_of_each() -> None:
    rng = np.random.default_rng(4)
    worlds = [RigidWorld(tuple(random_body(rng) for _ in range(count))) for count in (1, 3, 2)]
    places, turns = torch.tensor(rng.uniform(-0.05, 0.05, (6, 3))), random_turns(rng, 6)
    places[:, 2] += 0.05
    together = _detect(worlds, places, turns)
    alone = [
        _detect([world], places[rows], turns[rows])
        for world, rows in zip(worlds, (slice(0, 1), slice(1, 4), slice(4, 6)), strict=True)
    ]
    gaps = torch.cat([contacts.gaps_m for contacts in alone]).sort()[0]
    torch.testing.assert_close(together.gaps_m.sort()[0], gaps)
    scene = scenes_of(worlds).scene
    between = together.second < 6
    assert (scene[together.first[between]] == scene[together.second[between]]).all()


def test_chosen_scenes_are_the_scenes_chosen() -> None:
    rng = np.random.default_rng(5)
    worlds = [RigidWorld(tuple(random_body(rng) for _ in range(count))) for count in (1, 3, 2)]
    chosen = scenes_of(worlds).select(torch.tensor([2, 0, 2]))
    again = scenes_of([worlds[2], worlds[0], worlds[2]])
    assert chosen.pairs.tolist() == again.pairs.tolist() == [[0, 1], [3, 4]]
    assert chosen.starts.tolist() == [0, 2, 3, 5]
    torch.testing.assert_close(chosen.masses_kg, again.masses_kg)
    heavier = chosen.with_masses(2 * chosen.masses_kg)
    torch.testing.assert_close(heavier.inertias_kg_m2, 2 * chosen.inertias_kg_m2)


def _distances(scenes: Scenes, places: torch.Tensor, turns: torch.Tensor, pairs: FacePairs) -> dict[tuple, float]:
    points = [
        places[body] + turned(turns[body], local)
        for body, local in ((pairs.first, pairs.local_first_m), (pairs.second, pairs.local_second_m))
    ]
    keys = torch.stack([pairs.first, pairs.second, pairs.face_first, pairs.face_second], dim=1).tolist()
    return dict(zip(map(tuple, keys), (points[0] - points[1]).norm(dim=1).tolist(), strict=True))


def test_pairs_of_faces_are_those_of_coal() -> None:
    rng, compared = np.random.default_rng(6), 0
    for _ in range(10):
        world, places, orientations = random_pair(rng)
        scenes, turns = scenes_of([world], torch.float64), matrix(orientations)
        first, second = as_poses(places, orientations)
        if coal.nearest_of_meshes(world.bodies[0].mesh, first, world.bodies[1].mesh, second).distance_m < 0.001:
            continue
        ours, theirs = (
            _distances(scenes, places, turns, find(scenes, places, turns, 0.03))
            for find in (face_pairs, coal.coal_face_pairs)
        )
        # Coal also lists faces that look the same way, behind one another.
        assert set(ours) <= set(theirs)
        for pair, distance in ours.items():
            assert distance == pytest.approx(theirs[pair], abs=1e-6)
        compared += len(ours)
    assert compared > 50


def test_turning_the_scene_turns_its_contacts() -> None:
    world, places, turns = random_pair(np.random.default_rng(7), 0.04)
    turn = exponential(torch.tensor([[0.0, 0, 0.7]], dtype=torch.float64))
    before, after = _detect([world], places, turns), _detect([world], places @ matrix(turn)[0].T, product(turn, turns))
    torch.testing.assert_close(after.gaps_m, before.gaps_m)
    torch.testing.assert_close(after.normals, before.normals @ matrix(turn)[0].T)
