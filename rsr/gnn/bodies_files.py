"""Meshes from STL (text or binary) and OBJ files."""

from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path

import numpy as np

from rsr.gnn.bodies import Mesh, MeshError

_HEADER_BYTES, _TRIANGLE_BYTES = 84, 50


def read_mesh(path: Path | str, unit_m: float = 1.0) -> Mesh:
    """Read a convex mesh. Vertices at equal places become one.

    Args:
        unit_m: length of the file's unit, 0.001 for a mesh in mm.
    """
    path = Path(path)
    try:
        corners = _obj_corners(path.read_text()) if path.suffix.lower() == ".obj" else _stl_corners(path.read_bytes())
        if not len(corners):
            raise ValueError("no triangles")
    except (OSError, ValueError, IndexError, struct.error) as error:
        raise MeshError(
            got=str(error).splitlines()[0],
            expected="a triangle mesh as STL or OBJ",
            where=str(path),
            next_step="Correct the path, or export the mesh again.",
        ) from error
    vertices, faces = _merged(corners * unit_m)
    return Mesh(vertices, faces, str(path))


def _merged(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vertices [V, 3] and faces [F, 3] of triangles [F, 3, 3]; corners a millionth of the size apart are one vertex."""
    points = corners.reshape(-1, 3)
    grain = max(float(np.ptp(points, axis=0).max()) * 1e-6, 1e-12)
    _, first, index = np.unique(np.round(points / grain), axis=0, return_index=True, return_inverse=True)
    return points[first], index.reshape(-1, 3)


def _stl_corners(content: bytes) -> np.ndarray:
    if len(content) >= _HEADER_BYTES:
        count = struct.unpack_from("<I", content, _HEADER_BYTES - 4)[0]
        if len(content) == _HEADER_BYTES + count * _TRIANGLE_BYTES:
            rows = np.frombuffer(content, np.uint8, offset=_HEADER_BYTES).reshape(count, _TRIANGLE_BYTES)
            return np.ascontiguousarray(rows[:, 12:48]).view("<f4").reshape(count, 3, 3).astype(float)
    words = content.decode("ascii").split()
    rows = [words[index + 1 : index + 4] for index, word in enumerate(words) if word == "vertex"]
    return np.array(rows, float).reshape(-1, 3, 3)


def _obj_corners(text: str) -> np.ndarray:
    """Triangles [F, 3, 3]; faces with more corners are cut into a fan."""
    vertices: list[list[float]] = []
    triangles: list[tuple[int, int, int]] = []
    for line in text.splitlines():
        kind, *words = line.split() or [""]
        if kind == "v":
            vertices.append([float(word) for word in words[:3]])
        elif kind == "f":
            corners = [int(word.split("/")[0]) for word in words]
            # OBJ counts from one, and backward from the latest vertex where the number is negative.
            corners = [corner - 1 if corner > 0 else len(vertices) + corner for corner in corners]
            triangles += [(corners[0], b, c) for b, c in pairwise(corners[1:])]
    return np.array(vertices, float).reshape(-1, 3)[np.array(triangles, int).reshape(-1, 3)]
