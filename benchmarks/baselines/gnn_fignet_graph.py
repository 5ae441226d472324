"""The graph that `fignet` passes messages over: nodes, edges and their features for a batch of scenes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from rsr.learned.gnn import Scenes, State, conjugate, exponential, matrix, nearest_points, product

from .gnn_faces import FacePairs, face_normals, triangles_of

FEATURES = {"mesh": 9, "object": 9, "mesh_mesh": 8, "mesh_object": 8, "object_mesh": 8, "face_face": 34}
"""Columns of the features of each kind of node and edge."""

_STEP_M = 0.012
_LENGTH_M = 0.05
# What lengths and masses are divided by, so that features are of the order of one.
_MASS_KG = 0.1


@dataclass(frozen=True)
class FaceGraph:
    """Nodes and edges of all scenes. Mesh nodes are the K vertices of all bodies, then three of each scene's floor."""

    features: dict[str, Tensor]
    edges: dict[str, tuple[Tensor, Tensor]]
    """Senders and receivers, [E, k] each: k = 3 for faces, else 1."""
    now_m: Tensor
    """[K, 3], the vertices in the world's frame."""
    before_m: Tensor
    """[K, 3], a frame ago."""
    body_of_node: Tensor
    """[K]"""

    def padded(self, scenes: Scenes, values: Tensor) -> Tensor:
        """Values [K, 3] of vertices as a table [N, V, 3] like the scenes'; what only fills up is zero."""
        table = values.new_zeros(*scenes.real.shape, 3)
        return table.index_put((scenes.real.nonzero(as_tuple=True)), values)


def graph_of(scenes: Scenes, state: State, turns: Tensor, pairs: FacePairs, margin_m: float, dt_s: float) -> FaceGraph:
    """Lay the graph of one frame out."""
    body, vertex = scenes.real.nonzero(as_tuple=True)
    histories = [_vertices(scenes, *pose)[body, vertex] for pose in _poses(state, turns, dt_s)]
    nodes = scenes.real.reshape(-1).cumsum(0).reshape(scenes.real.shape) - 1
    count, bodies, worlds = len(body), len(scenes.scene), len(scenes)
    own = torch.arange(count)
    # The floor takes part as one still triangle and one still object a scene.
    links = _links(scenes, nodes, histories[0])
    faces = _faces(scenes, state, turns, pairs, nodes, count, margin_m)
    floor_nodes, floor_bodies = count + torch.arange(3 * worlds), bodies + torch.arange(worlds).repeat_interleave(3)
    mesh_object = torch.cat([own, floor_nodes]), torch.cat([body, floor_bodies])
    away = torch.cat([histories[0] - state.positions_m[body], histories[0].new_zeros(3 * worlds, 3)])
    reference = torch.cat([scenes.vertices_m[body, vertex], histories[0].new_zeros(3 * worlds, 3)])
    centres = [pose[0] for pose in _poses(state, turns, dt_s)]
    features = {
        "mesh": _nodes(histories, scenes.masses_kg[body], 3 * worlds),
        "object": _nodes(centres, scenes.masses_kg, worlds),
        "mesh_mesh": links[1],
        "mesh_object": torch.cat([_scaled(away), _scaled(reference)], dim=1),
        "object_mesh": torch.cat([_scaled(-away), _scaled(-reference)], dim=1),
        "face_face": faces[1],
    }
    senders, receivers = (rows[:, None] for rows in mesh_object)
    edges = {
        "mesh_mesh": links[0],
        "mesh_object": (senders, receivers),
        "object_mesh": (receivers, senders),
        "face_face": faces[0],
    }
    return FaceGraph(features, edges, histories[0], histories[1], body)


def _poses(state: State, turns: Tensor, dt_s: float) -> list[tuple[Tensor, Tensor]]:
    """Places and turns now, a frame ago, and two frames ago."""
    poses = [(state.positions_m, turns)]
    place, orientation = state.positions_m, state.orientations
    for velocity, spin in (
        (state.velocities_m_s, state.spins_rad_s),
        (state.previous_velocities_m_s, state.previous_spins_rad_s),
    ):
        # Backwards in time by Verlet's velocities, so that nothing but the state is needed.
        place = place - dt_s * velocity
        orientation = product(conjugate(exponential(dt_s * spin)), orientation)
        poses.append((place, matrix(orientation)))
    return poses


def _vertices(scenes: Scenes, places: Tensor, turns: Tensor) -> Tensor:
    return places[:, None] + scenes.vertices_m @ turns.mT


def _nodes(histories: list[Tensor], masses: Tensor, still: int) -> Tensor:
    """Steps of the last two frames, inverse mass, and whether the node can move; then `still` rows for the floor."""
    # Velocities of the last two frames; no absolute place, so that a shifted scene moves alike.
    steps = [(later - earlier) / _STEP_M for later, earlier in pairwise(histories)]
    moves = torch.ones_like(masses)
    movable = torch.cat([*steps, torch.stack([_MASS_KG / masses, moves, 0 * moves], dim=1)], dim=1)
    floor = movable.new_zeros(still, movable.shape[1])
    floor[:, -1] = 1
    return torch.cat([movable, floor])


def _links(scenes: Scenes, nodes: Tensor, points: Tensor) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Edges of the meshes in both directions, and their features."""
    body, edge = scenes.real_edges.nonzero(as_tuple=True)
    ends = scenes.edges[body, edge]
    both, whole = torch.cat([ends, ends.flip(1)]), torch.cat([body, body])
    senders, receivers = nodes[whole[:, None], both].unbind(1)
    one, other = scenes.vertices_m[whole[:, None], both].unbind(1)
    features = torch.cat([_scaled(points[senders] - points[receivers]), _scaled(one - other)], dim=1)
    return (senders[:, None], receivers[:, None]), features


def _faces(
    scenes: Scenes, state: State, turns: Tensor, pairs: FacePairs, nodes: Tensor, count: int, margin: float
) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Pairs of near faces in both directions, with the floor's among them, and their features."""
    bodies = _between_bodies(scenes, state, turns, pairs, nodes)
    floor = _on_floor(scenes, state, turns, nodes, count, margin)
    one, other = (_Side.together(*sides).in_order() for sides in zip(bodies, floor, strict=True))
    features = torch.cat([_face_features(one, other), _face_features(other, one)])
    return (torch.cat([one.nodes, other.nodes]), torch.cat([other.nodes, one.nodes])), features


@dataclass(frozen=True)
class _Side:
    """One side of F pairs of faces."""

    nodes: Tensor
    """[F, 3]"""
    points: Tensor
    """[F, 3], the nearest point."""
    corners: Tensor
    """[F, 3, 3], relative to the nearest point."""
    normals: Tensor
    """[F, 3]"""

    @classmethod
    def together(cls, first: _Side, second: _Side) -> _Side:
        return cls(*(torch.cat([getattr(first, name), getattr(second, name)]) for name in cls.__annotations__))

    def in_order(self) -> _Side:
        """Corners by their distance, so that the order in which a mesh lists them does not matter."""
        # Without an order of its own, the network would have to learn all six.
        order = self.corners.detach().square().sum(2).argsort(dim=1, stable=True)
        corners = self.corners.gather(1, order[..., None].expand(-1, -1, 3))
        return _Side(self.nodes.gather(1, order), self.points, corners, self.normals)


def _between_bodies(
    scenes: Scenes, state: State, turns: Tensor, pairs: FacePairs, nodes: Tensor
) -> tuple[_Side, _Side]:
    # Eqs. (5) to (7): the nearest points ride on their bodies.
    points = nearest_points(
        (state.positions_m[pairs.first], state.positions_m[pairs.second]),
        (turns[pairs.first], turns[pairs.second]),
        (pairs.local_first_m, pairs.local_second_m),
    )
    sides = (
        _side(scenes, state, turns, nodes, body, face, point)
        for body, face, point in zip(
            (pairs.first, pairs.second), (pairs.face_first, pairs.face_second), points, strict=True
        )
    )
    first, second = sides
    return first, second


def _side(
    scenes: Scenes, state: State, turns: Tensor, nodes: Tensor, body: Tensor, face: Tensor, point: Tensor
) -> _Side:
    corner = scenes.faces[body, face]
    world = state.positions_m[body][:, None] + scenes.vertices_m[body[:, None], corner] @ turns[body].mT
    return _Side(nodes[body[:, None], corner], point, world - point[:, None], face_normals(world))


def _on_floor(
    scenes: Scenes, state: State, turns: Tensor, nodes: Tensor, count: int, margin: float
) -> tuple[_Side, _Side]:
    """Faces that look down, within the margin of the floor, and the floor: the lowest corner is the nearest point."""
    triangles = triangles_of(scenes, state.positions_m, turns)
    down = (face_normals(triangles)[..., 2] < 0) & scenes.real_faces & scenes.floor[:, None]
    body, face = (down & (triangles[..., 2].amin(2) < margin)).nonzero(as_tuple=True)
    chosen = triangles[body, face]
    point = chosen[torch.arange(len(body)), chosen[..., 2].argmin(1)]
    above = _Side(nodes[body[:, None], scenes.faces[body, face]], point, chosen - point[:, None], face_normals(chosen))
    up = torch.zeros_like(point)
    up[:, 2] = 1
    # A floor without end has no corners that matter: their places are left at zero.
    floor_nodes = count + 3 * scenes.scene[body][:, None] + torch.arange(3)
    return above, _Side(floor_nodes, point * (1 - up), torch.zeros_like(chosen), up)


def _face_features(sender: _Side, receiver: _Side) -> Tensor:
    corners = [_scaled(side.corners).flatten(1) for side in (sender, receiver)]
    return torch.cat([_scaled(receiver.points - sender.points), *corners, sender.normals, receiver.normals], dim=1)


def _scaled(vectors: Tensor) -> Tensor:
    """Vectors [..., 3] and their lengths, in units of a body."""
    scaled = vectors / _LENGTH_M
    return torch.cat([scaled, (scaled.square().sum(-1, keepdim=True) + 1e-12).sqrt()], dim=-1)
