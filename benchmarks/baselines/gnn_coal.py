"""Contact detection by Coal, as the paper has it: the reference that detection in torch is checked against.

GJK and EPA between convex meshes, and pairs of triangles within a margin; one pair of bodies at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import coal
import numpy as np
import torch
from torch import Tensor

from rsr.learned.gnn import Mesh, Scenes

from .gnn_faces import FacePairs

_MOST_PAIRS = 10_000


@dataclass(frozen=True)
class Nearest:
    """Nearest points of two convex bodies, in the world's frame; where they overlap, those that part them soonest.

    Args:
        distance_m: negative where the bodies overlap.
        normal: [3], unit, from the first body to the second.
    """

    point_first_m: np.ndarray
    point_second_m: np.ndarray
    normal: np.ndarray
    distance_m: float


def nearest_of_meshes(
    first: Mesh, pose_first: tuple[np.ndarray, np.ndarray], second: Mesh, pose_second: tuple[np.ndarray, np.ndarray]
) -> Nearest:
    """Ask Coal for the nearest points of two convex meshes (GJK), or their penetration (EPA).

    Args:
        pose_first, pose_second: place [3] and rotation matrix [3, 3].
    """
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    request.enable_signed_distance = True
    request.gjk_tolerance = request.epa_tolerance = 1e-10
    shapes = [_convex(mesh) for mesh in (first, second)]
    places = [_transform(*pose) for pose in (pose_first, pose_second)]
    distance = coal.distance(shapes[0], places[0], shapes[1], places[1], request, result)
    points = np.array(result.getNearestPoint1()), np.array(result.getNearestPoint2())
    return Nearest(*points, np.array(result.normal), float(distance))


@torch.no_grad()
def coal_face_pairs(scenes: Scenes, positions_m: Tensor, turns: Tensor, margin_m: float) -> FacePairs:
    """Find pairs of faces within a margin, as `face_pairs` does in torch."""
    models = [_triangles(scenes, row) for row in range(len(scenes.scene))]
    places = [
        _transform(place.double().numpy(), turn.double().numpy())
        for place, turn in zip(positions_m, turns, strict=True)
    ]
    request = coal.CollisionRequest()
    request.num_max_contacts, request.security_margin, request.enable_contact = _MOST_PAIRS, margin_m, True
    rows: list[tuple[int, int, int, int]] = []
    points: list[np.ndarray] = []
    for one, two in scenes.pairs.tolist():
        result = coal.CollisionResult()
        coal.collide(models[one], places[one], models[two], places[two], request, result)
        for contact in result.getContacts():
            rows.append((one, two, contact.b1, contact.b2))
            points.append(np.stack([contact.getNearestPoint1(), contact.getNearestPoint2()]))
    first, second, *faces = torch.tensor(rows, dtype=torch.long).reshape(-1, 4).unbind(1)
    world = torch.as_tensor(np.array(points).reshape(-1, 2, 3)).to(positions_m)
    local = [
        ((world[:, index] - positions_m[body])[:, None] @ turns[body])[:, 0]
        for index, body in enumerate((first, second))
    ]
    return FacePairs(first, second, *faces, *local)


def _convex(mesh: Mesh) -> Any:
    return coal.Convex(*_lists(mesh.vertices_m, mesh.faces))


def _triangles(scenes: Scenes, row: int) -> Any:
    faces = scenes.faces[row][scenes.real_faces[row]].numpy()
    points, triangles = _lists(scenes.vertices_m[row].double().numpy(), faces)
    model = coal.BVHModelOBBRSS()
    model.beginModel(len(triangles), len(points))
    model.addSubModel(points, triangles)
    model.endModel()
    return model


def _lists(vertices: np.ndarray, faces: np.ndarray) -> tuple[Any, Any]:
    points, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    for vertex in vertices:
        points.append(vertex)
    for face in faces.tolist():
        triangles.append(coal.Triangle(*face))
    return points, triangles


def _transform(place: np.ndarray, turn: np.ndarray) -> Any:
    return coal.Transform3s(np.ascontiguousarray(turn), np.ascontiguousarray(place))
