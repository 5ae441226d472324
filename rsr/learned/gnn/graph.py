"""Scenes: a batch of worlds of any number and shape of bodies, as flat tensors that networks compute on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from rsr.learned.gnn.bodies import Mesh, RigidBody, RigidWorld

# How far normals of one flat side may differ.
_SAME_PLANE = 1e-6
# Where the planes that only fill up a table are.
_FAR_M = 1e6


@dataclass(frozen=True)
class Scenes:
    """S worlds with N bodies in all, one body in a row after another. Tables are filled up to the largest mesh."""

    scene: Tensor
    """[N], which world a body is in."""
    masses_kg: Tensor
    """[N]"""
    inertias_kg_m2: Tensor
    """[N, 3, 3], in the bodies' frames."""
    vertices_m: Tensor
    """[N, V, 3], in the bodies' frames."""
    real: Tensor
    """[N, V], false where a vertex only fills the table up."""
    normals: Tensor
    """[N, P, 3], outward, one for each flat side."""
    offsets_m: Tensor
    """[N, P], of the sides from the origin."""
    faces: Tensor
    """[N, F, 3], vertices of the triangles; a triangle that only fills up is the body's first again."""
    real_faces: Tensor
    """[N, F]"""
    edges: Tensor
    """[N, E, 2], vertices of the edges between different flat sides; filled up with the first."""
    real_edges: Tensor
    """[N, E]"""
    radii_m: Tensor
    """[N], of spheres about the origins that hold the meshes."""
    floor: Tensor
    """[N], whether there is a floor under the body."""
    gravity_m_s2: Tensor
    """[N]"""
    pairs: Tensor
    """[M, 2], bodies of one world that may touch, the lower row first."""
    starts: Tensor
    """[S + 1], the first body of each world."""
    pair_starts: Tensor
    """[S + 1], the first pair of each world."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    def select(self, worlds: Tensor) -> Scenes:
        """Some of the worlds, in this order; a world may come twice."""
        rows, counts = _ranges(self.starts, worlds)
        pair_rows, pair_counts = _ranges(self.pair_starts, worlds)
        starts = _cumulated(counts)
        # Pairs name rows of bodies, which moved with their worlds.
        shift = torch.repeat_interleave(starts[:-1] - self.starts[worlds], pair_counts)
        bodies = {name: getattr(self, name)[rows] for name in _BODY_TABLES}
        return Scenes(
            scene=torch.repeat_interleave(torch.arange(len(worlds)), counts),
            **bodies,
            pairs=self.pairs[pair_rows] + shift[:, None],
            starts=starts,
            pair_starts=_cumulated(pair_counts),
        )

    def rows(self, worlds: Tensor) -> Tensor:
        """The rows of the bodies of some worlds, in the order of `select`."""
        return _ranges(self.starts, worlds)[0]

    def repeated(self, times: int) -> Scenes:
        """All worlds, `times` times over."""
        return self.select(torch.arange(len(self)).repeat(times))

    def with_masses(self, masses_kg: Tensor) -> Scenes:
        """The same bodies with other masses [N]; inertias scale with them."""
        # Of unchanged shape and distribution, inertia is proportional to mass.
        ratio = masses_kg / self.masses_kg
        return replace(self, masses_kg=masses_kg, inertias_kg_m2=self.inertias_kg_m2 * ratio[:, None, None])

    @property
    def inverse_inertias(self) -> Tensor:
        """[N, 3, 3], in the bodies' frames."""
        return torch.linalg.inv(self.inertias_kg_m2)


_BODY_TABLES = (
    *("masses_kg", "inertias_kg_m2", "vertices_m", "real", "normals", "offsets_m"),
    *("faces", "real_faces", "edges", "real_edges", "radii_m", "floor", "gravity_m_s2"),
)


def scenes_of(worlds: Sequence[RigidWorld], dtype: torch.dtype = torch.float32) -> Scenes:
    """Lay worlds out as flat tables."""
    bodies = [body for world in worlds for body in world.bodies]
    counts = [len(world.bodies) for world in worlds]
    starts = np.concatenate([[0], np.cumsum(counts)])
    pairs = [np.stack(np.triu_indices(count, 1), axis=1) + start for count, start in zip(counts, starts, strict=False)]
    each = [index for index, count in enumerate(counts) for _ in range(count)]

    def real(values: object) -> Tensor:
        return torch.as_tensor(np.asarray(values, float)).to(dtype)

    return Scenes(
        scene=torch.as_tensor(each),
        masses_kg=real([body.mass_kg for body in bodies]),
        inertias_kg_m2=real([body.inertia_kg_m2 for body in bodies]),
        **_mesh_tables(bodies, real),
        floor=torch.as_tensor([worlds[index].floor for index in each]),
        gravity_m_s2=real([worlds[index].gravity_m_s2 for index in each]),
        pairs=torch.as_tensor(np.concatenate(pairs).astype(int)),
        starts=torch.as_tensor(starts),
        pair_starts=torch.as_tensor(np.concatenate([[0], np.cumsum([len(rows) for rows in pairs])]).astype(int)),
    )


def flat_sides(mesh: Mesh) -> tuple[np.ndarray, np.ndarray]:
    """Which flat side each face lies in [F], and one face of each side [P]."""
    normals, offsets = mesh.planes
    same = (normals @ normals.T > 1 - _SAME_PLANE) & (
        np.abs(offsets[:, None] - offsets) < _SAME_PLANE * 10 * mesh.size_m
    )
    first = same.argmax(1)
    chosen, side = np.unique(first, return_inverse=True)
    return side, chosen


def _mesh_tables(bodies: Sequence[RigidBody], real: Callable[[object], Tensor]) -> dict[str, Tensor]:
    # Thousands of scenes share a few meshes: the tables of each are made once.
    known = {id(body.mesh): _mesh_rows(body.mesh) for body in bodies}
    rows = [known[id(body.mesh)] for body in bodies]
    vertices, real_vertices = _filled([row["vertices"] for row in rows])
    faces, real_faces = _filled([row["faces"] for row in rows])
    normals, real_sides = _filled([row["normals"] for row in rows])
    edges, real_edges = _filled([row["edges"] for row in rows])
    offsets = np.where(real_sides, _filled([row["offsets"] for row in rows])[0], _FAR_M)
    return {
        "vertices_m": real(vertices),
        "real": torch.as_tensor(real_vertices),
        "normals": real(normals),
        "offsets_m": real(offsets),
        "faces": torch.as_tensor(faces),
        "real_faces": torch.as_tensor(real_faces),
        "edges": torch.as_tensor(edges),
        "real_edges": torch.as_tensor(real_edges),
        "radii_m": real([np.linalg.norm(body.mesh.vertices_m, axis=1).max() for body in bodies]),
    }


def _mesh_rows(mesh: Mesh) -> dict[str, np.ndarray]:
    side, chosen = flat_sides(mesh)
    normals, offsets = mesh.planes
    walked = np.concatenate([mesh.faces[:, [0, 1]], mesh.faces[:, [1, 2]], mesh.faces[:, [2, 0]]])
    key, back = walked @ [len(mesh.vertices_m), 1], walked @ [1, len(mesh.vertices_m)]
    sides = np.tile(side, 3)
    order = np.argsort(key)
    # The side across an edge is that of the face which walks it backward.
    other = sides[order][np.searchsorted(key[order], back)]
    # Each edge once, and none that only halves a flat side: those never touch alone.
    sharp = (walked[:, 0] < walked[:, 1]) & (sides != other)
    return {
        "vertices": mesh.vertices_m,
        "faces": mesh.faces,
        "normals": normals[chosen],
        "offsets": offsets[chosen],
        "edges": walked[sharp],
    }


def _filled(tables: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Tables [n_i, ...] as one [N, max n, ...], filled up with each one's first row, and which rows are real."""
    longest = max(len(table) for table in tables)
    index = np.arange(longest)
    lengths = np.array([len(table) for table in tables])
    real = index < lengths[:, None]
    return np.stack([table[np.where(row, index, 0)] for table, row in zip(tables, real, strict=True)]), real


def _ranges(starts: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of the chosen ranges one after another, and how many each has."""
    counts = starts[chosen + 1] - starts[chosen]
    ends = _cumulated(counts)
    within = torch.arange(int(ends[-1])) - torch.repeat_interleave(ends[:-1], counts)
    return torch.repeat_interleave(starts[chosen], counts) + within, counts


def _cumulated(counts: Tensor) -> Tensor:
    return torch.cat([torch.zeros(1, dtype=torch.long), counts.cumsum(0)])
