"""Rigid bodies of the learned simulator: convex triangle meshes, what they weigh, and the world they are in."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from rsr.common import ConfigError

GRAVITY_M_S2 = 9.81
# How far, in sizes of the mesh, a vertex may stand out of a face's plane and still count as lying in it.
_FLAT = 1e-6


class MeshError(ConfigError):
    """A mesh is not the closed, convex, outward surface that contact detection needs."""


@dataclass(frozen=True, eq=False)
class Mesh:
    """The closed surface of a convex solid.

    Args:
        vertices_m: [V, 3], in the body's frame.
        faces: [F, 3] vertex indices of the triangles, anticlockwise seen from outside.
        name: what messages call it; a mesh from a file carries the file's path.
    """

    vertices_m: np.ndarray = field(repr=False)
    faces: np.ndarray = field(repr=False)
    name: str = "mesh"

    def __post_init__(self) -> None:
        object.__setattr__(self, "vertices_m", np.ascontiguousarray(self.vertices_m, float))
        object.__setattr__(self, "faces", np.ascontiguousarray(self.faces, int))
        _check_numbers(self)
        _check_closed(self)
        _check_convex(self)

    @property
    def size_m(self) -> float:
        """The longest edge of the bounding box."""
        return float(np.ptp(self.vertices_m, axis=0).max())

    @cached_property
    def planes(self) -> tuple[np.ndarray, np.ndarray]:
        """Outward unit normals [F, 3] of the faces, and their planes' distances [F] from the origin."""
        first, second, third = self.vertices_m[self.faces].transpose(1, 0, 2)
        # Anticlockwise corners seen from outside: the cross product of two edges points outward.
        normals = np.cross(second - first, third - first)
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        return normals, (normals * first).sum(1)

    @cached_property
    def volume_m3(self) -> float:
        # Each triangle spans a tetrahedron with the origin, of volume det / 6; signs cancel what lies outside.
        return float(np.linalg.det(self.vertices_m[self.faces]).sum() / 6)

    def moved(self, by_m: np.ndarray) -> Mesh:
        return Mesh(self.vertices_m + by_m, self.faces, self.name)


@dataclass(frozen=True, eq=False)
class RigidBody:
    """A rigid body. Its mesh's vertices are relative to its centre of mass.

    Args:
        inertia_kg_m2: [3, 3] about the centre of mass in the body's frame; None takes uniform density.
    """

    name: str
    mesh: Mesh
    mass_kg: float
    inertia_kg_m2: np.ndarray = None  # pyright: ignore[reportAssignmentType]

    def __post_init__(self) -> None:
        if not (np.isfinite(self.mass_kg) and self.mass_kg > 0):
            raise _wrong_body(self.name, f"a mass of {self.mass_kg:g} kg", "a positive mass", "Weigh it.")
        given = uniform_inertia(self.mesh, self.mass_kg) if self.inertia_kg_m2 is None else self.inertia_kg_m2
        inertia = np.array(given, float)
        object.__setattr__(self, "inertia_kg_m2", inertia)
        regular = inertia.shape == (3, 3) and np.isfinite(inertia).all() and np.allclose(inertia, inertia.T)
        if not regular or np.linalg.eigvalsh(inertia)[0] <= 0:
            expected = "a symmetric, positive 3 x 3 matrix"
            raise _wrong_body(self.name, "an inertia that no solid has", expected, "Leave it out for uniform density.")


@dataclass(frozen=True)
class RigidWorld:
    """Bodies, with or without a floor: the plane z = 0."""

    bodies: tuple[RigidBody, ...]
    floor: bool = True
    gravity_m_s2: float = GRAVITY_M_S2

    def __post_init__(self) -> None:
        object.__setattr__(self, "bodies", tuple(self.bodies))
        if not self.bodies:
            raise _wrong_body("(none)", "a world without bodies", "at least one body", "Add a body.")


def box_mesh(half_sizes_m: np.ndarray | tuple[float, float, float], name: str = "box") -> Mesh:
    """Make a box about the origin from half its edges [3]."""
    half = np.asarray(half_sizes_m, float)
    if half.shape != (3,) or not (np.isfinite(half) & (half > 0)).all():
        raise _wrong_mesh(name, f"half sizes {half.tolist()}", "three positive lengths", "Correct them.")
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    sides = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = [triangle for a, b, c, d in sides for triangle in ((a, b, c), (a, c, d))]
    return Mesh(signs * half, np.array(faces), name)


def hull_mesh(points_m: np.ndarray, name: str = "hull") -> Mesh:
    """Make the convex hull of points [N, 3]."""
    points = np.asarray(points_m, float)
    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError) as error:
        next_step = "Give points that span a solid."
        raise _wrong_mesh(name, "points without a hull", "four or more points not in a plane", next_step) from error
    kept = np.sort(hull.vertices)
    faces = np.searchsorted(kept, hull.simplices)
    corners = points[kept][faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    # Qhull orders corners at random; its plane equations do point outward.
    inward = (normals * hull.equations[:, :3]).sum(1) < 0
    faces[inward] = faces[inward][:, ::-1]
    return Mesh(points[kept], faces, name)


def uniform_inertia(mesh: Mesh, mass_kg: float) -> np.ndarray:
    """Inertia [3, 3] about the origin of the mesh's frame at uniform density, summed over tetrahedra."""
    corners = mesh.vertices_m[mesh.faces]
    total = corners.sum(1)
    # Second moments of a tetrahedron with a corner in the origin: det / 120 (sum v v^T + s s^T), s = sum v.
    second = np.einsum("fvi,fvj->fij", corners, corners) + np.einsum("fi,fj->fij", total, total)
    moments = (np.linalg.det(corners)[:, None, None] * second).sum(0) / 120
    moments *= mass_kg / mesh.volume_m3
    # From second moments S to inertia: tr(S) 1 - S.
    return np.trace(moments) * np.eye(3) - moments


def _check_numbers(mesh: Mesh) -> None:
    vertices, faces = mesh.vertices_m, mesh.faces
    if vertices.ndim != 2 or vertices.shape[1:] != (3,) or faces.ndim != 2 or faces.shape[1:] != (3,):
        shapes = f"vertices {list(vertices.shape)} and faces {list(faces.shape)}"
        raise _wrong_mesh(mesh.name, shapes, "vertices [V, 3] and triangles [F, 3]", "Triangulate the mesh.")
    if not np.isfinite(vertices).all():
        raise _wrong_mesh(mesh.name, "NaN or infinity among the vertices", "finite numbers", "Export it again.")
    if faces.size == 0 or faces.min() < 0 or faces.max() >= len(vertices):
        expected = f"vertex indices from 0 to {len(vertices) - 1}"
        raise _wrong_mesh(mesh.name, "faces that name absent vertices, or none", expected, "Export it again.")


def _check_closed(mesh: Mesh) -> None:
    """Every edge is walked once in each direction, and no vertex stands alone."""
    count = len(mesh.vertices_m)
    edges = np.concatenate([mesh.faces[:, [0, 1]], mesh.faces[:, [1, 2]], mesh.faces[:, [2, 0]]])
    # An edge as one number, in the direction it is walked; its neighbour must walk it backward.
    walked, backward = edges @ [count, 1], edges @ [1, count]
    found, times = np.unique(walked, return_counts=True)
    open_edges = len(np.setxor1d(found, backward)) + int((times > 1).sum())
    if open_edges:
        got = f"a surface with {open_edges} edges that do not join exactly two faces of one orientation"
        raise _wrong_mesh(mesh.name, got, "a watertight mesh", "Close its holes and unify its normals.")
    alone = count - len(np.unique(mesh.faces))
    if alone:
        raise _wrong_mesh(mesh.name, f"{alone} vertices of no face", "none", "Remove them.")


def _check_convex(mesh: Mesh) -> None:
    corners = mesh.vertices_m[mesh.faces]
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    if areas.min() <= _FLAT**2 * mesh.size_m**2:
        raise _wrong_mesh(mesh.name, "faces without area", "triangles with area", "Merge its double vertices.")
    normals, offsets = mesh.planes
    heights = mesh.vertices_m @ normals.T - offsets
    deepest = float(heights.min(0).max())
    if mesh.volume_m3 < 0:
        raise _wrong_mesh(mesh.name, "faces that look inward", "outward faces", "Flip its normals.")
    if heights.max() > _FLAT * mesh.size_m:
        got = f"a mesh that is not convex: a vertex stands {heights.max() * 1e3:.3g} mm out of a face's plane"
        raise _wrong_mesh(mesh.name, got, "a convex mesh", "Split it into convex parts, or take its convex hull.")
    if deepest > -_FLAT * mesh.size_m:
        raise _wrong_mesh(mesh.name, "a flat mesh", "a solid", "Give it a thickness.")


def _wrong_mesh(name: str, got: str, expected: str, next_step: str) -> MeshError:
    return MeshError(got=got, expected=expected, where=f"mesh '{name}'", next_step=next_step)


def _wrong_body(name: str, got: str, expected: str, next_step: str) -> ConfigError:
    return ConfigError(got=got, expected=expected, where=f"body '{name}'", next_step=next_step)
