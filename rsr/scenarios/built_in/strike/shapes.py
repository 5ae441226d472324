"""Blocks that are struck: the three of the paper, or a prism from a mesh file."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import mujoco
import numpy as np
from scipy.spatial import ConvexHull, QhullError

from rsr.common import ScenarioError
from rsr.scenarios.built_in.strike.outline import Face, distances, faces_of, fold_of, mirror_axes, moments

SHAPES = ("semi_cylinder", "square", "triangle")

_HEIGHT_M = 0.04
_MASS_KG = 0.12
_SAME_M = 0.0003
_SHORTEST_FACE_M = 0.008
_LARGEST_M = 0.5


@dataclass(frozen=True)
class Shape:
    """A prism that stands on a table. Its frame: origin in the centre of mass, z up.

    Args:
        outline: [N, 2], counter-clockwise, m, about the centre of mass.
        struck: the faces that are struck, as places in `faces`.
        measured_gyration_m: radius of gyration about the vertical axis, of a block that is not homogeneous.
    """

    name: str
    outline: np.ndarray = field(repr=False)
    struck: tuple[int, ...]
    height_m: float = _HEIGHT_M
    mass_kg: float = _MASS_KG
    measured_gyration_m: float | None = None

    @cached_property
    def faces(self) -> tuple[Face, ...]:
        return faces_of(self.outline)

    @property
    def struck_faces(self) -> tuple[Face, ...]:
        return tuple(self.faces[index] for index in self.struck)

    @cached_property
    def gyration_m(self) -> float:
        """Radius of gyration about the vertical axis: what turns an angular velocity into one of the same weight."""
        if self.measured_gyration_m is not None:
            return self.measured_gyration_m
        return float(np.sqrt(moments(self.outline)[2].sum()))

    @cached_property
    def inertia(self) -> np.ndarray:
        """Principal inertia [3], kg m2, of a homogeneous prism."""
        xx, yy = moments(self.outline)[2]
        upright = self.height_m**2 / 12
        return self.mass_kg * np.array([yy + upright, xx + upright, self.gyration_m**2])

    @cached_property
    def fold(self) -> int:
        return fold_of(self.outline, _SAME_M)

    @cached_property
    def axis_rad(self) -> float | None:
        """Direction of the mirror's axis nearest to the middle of the first struck face; None without a mirror."""
        middle = self._middle_rad()
        return min(
            mirror_axes(self.outline, _SAME_M),
            key=lambda axis: abs(self.wrap(np.asarray(middle - axis)).item()),
            default=None,
        )

    def facing(self, normal: np.ndarray) -> np.ndarray:
        """Directions [N], rad, of inward normals [N, 2] from the mirror's axis, equal for equal faces."""
        outward = np.arctan2(-normal[:, 1], -normal[:, 0])
        return self.wrap(outward - (self._middle_rad() if self.axis_rad is None else self.axis_rad))

    def distances(self, points: np.ndarray) -> np.ndarray:
        """Distance of points [N, 2] from the outline, m."""
        return distances(points, self.outline)

    def wrap(self, angle_rad: np.ndarray) -> np.ndarray:
        """Turn angles into the sector about zero that the symmetry leaves."""
        sector = 2 * np.pi / self.fold
        return (angle_rad + sector / 2) % sector - sector / 2

    def _middle_rad(self) -> float:
        normal = self.struck_faces[0].at(np.zeros(1))[1][0]
        return float(np.arctan2(-normal[1], -normal[0]))


def load_shape(name: str, mass_kg: float = _MASS_KG, mesh_unit_m: float = 1.0) -> Shape:
    """Take a built-in shape by name, or a prism from a mesh file (STL, OBJ) that stands on its base, z up."""
    if name in SHAPES:
        return prism(name, _built_in(name), _HEIGHT_M, mass_kg)
    path = Path(name)
    if path.is_file():
        outline, height_m = _silhouette(path, mesh_unit_m)
        return prism(path.stem, outline, height_m, mass_kg)
    raise ScenarioError(
        got=f"shape '{name}'",
        expected=f"one of {', '.join(SHAPES)}, or a mesh file (.stl, .obj)",
        where="shape of the struck block",
        next_step="Correct the name, or the path of the mesh.",
    )


def prism(name: str, outline: np.ndarray, height_m: float, mass_kg: float, centre_m: np.ndarray | None = None) -> Shape:
    """Make a shape from an outline [N, 2], counter-clockwise; the longer of its faces are struck.

    Args:
        centre_m: [2], centre of mass in the outline's frame; that of a homogeneous prism by default.
    """
    if not 0 < mass_kg < np.inf:
        raise ScenarioError(
            got=f"a mass of {mass_kg:g} kg",
            expected="more than nothing",
            where=f"struck block '{name}'",
            next_step="Weigh the block.",
        )
    # Shape's frame has its origin in the centre of mass, of a homogeneous prism the centroid.
    centred = outline - (moments(outline)[1] if centre_m is None else centre_m)
    lengths = [face.length_m for face in faces_of(centred)]
    equal = {"semi_cylinder": 1, "square": 1, "triangle": 1}.get(
        name
    )  # the others look like the first, or are not struck
    struck = [index for index in np.argsort(lengths, kind="stable")[::-1] if lengths[index] > _SHORTEST_FACE_M]
    return Shape(name, centred, tuple(int(index) for index in struck[:equal]), height_m, mass_kg)


def _built_in(name: str) -> np.ndarray:
    """Outlines of the paper's blocks, in sizes that are printed in 3-D."""
    if name == "semi_cylinder":
        angle = np.linspace(0, np.pi, 49)
        return 0.04 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    corners = 4 if name == "square" else 3
    radius_m = 0.035 * np.sqrt(2) if name == "square" else 0.045
    angle = np.pi / 2 + np.pi / corners * (corners % 2 == 0) + 2 * np.pi * np.arange(corners) / corners
    return radius_m * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _silhouette(path: Path, unit_m: float) -> tuple[np.ndarray, float]:
    """Outline and height of a mesh that is a convex prism."""
    vertices, volume = _vertices(path, unit_m)
    spans = np.ptp(vertices, axis=0)
    if spans.max() > _LARGEST_M:
        raise _refused(
            path, f"a block of {spans.max():.3g} m", "at most 0.5 m", "Is it in mm? Then give --mesh-unit 0.001."
        )
    try:
        hull = ConvexHull(vertices[:, :2])
    except QhullError as error:
        raise _refused(path, "a mesh that is flat", "a block", "Turn it so that z is up.") from error
    outline, height_m = vertices[hull.vertices, :2], float(spans[2])
    # An upright convex prism fills its own silhouette; a pyramid or a hollow block does not.
    filled = volume / (hull.volume * height_m)
    if not 0.97 < filled < 1.03:
        found = f"a mesh that fills {filled:.0%} of the prism over its outline"
        raise _refused(path, found, "a convex prism that stands upright", "Turn it so that z is up, or simplify it.")
    return outline, height_m


def _vertices(path: Path, unit_m: float) -> tuple[np.ndarray, float]:
    """Vertices [N, 3] in m in the file's own frame, and the volume of their convex hull's mesh."""
    spec = mujoco.MjSpec()
    spec.add_mesh(name="block", file=str(path.resolve()), scale=[unit_m] * 3)
    spec.worldbody.add_body().add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="block", density=1.0)
    try:
        model = spec.compile()
    except ValueError as error:
        raise _refused(path, str(error).splitlines()[0], "a closed mesh", "Export it again as STL or OBJ.") from error
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, model.mesh_quat[0])
    return model.mesh_vert @ turn.reshape(3, 3).T + model.mesh_pos[0], float(model.body_mass[1])


def _refused(path: Path, got: str, expected: str, next_step: str) -> ScenarioError:
    return ScenarioError(got=got, expected=expected, where=str(path), next_step=next_step)
