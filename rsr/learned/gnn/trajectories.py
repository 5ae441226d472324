"""Trajectories of rigid bodies: what every simulator of this room is taught by, starts from and is judged against.

Nobody pushes while a trajectory lasts: as in the paper's experiment, a push is the velocity a body has at the start, so
all bodies are free and only the floor and the other bodies touch them. A trajectory holds poses alone; its first two
frames are the start (Verlet), and whoever simulates it predicts frames 2 and later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from rsr.common import DAMAGED, SessionError, read_arrays, write_arrays
from rsr.learned.gnn.bodies import Mesh, RigidBody, RigidWorld
from rsr.scenarios.built_in.two_cubes import FRAME_S

START_FRAMES = 2
"""The start; whoever simulates a trajectory predicts the others."""
FEWEST_FRAMES = START_FRAMES + 1

_VERSION = 1


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Recorded or simulated motion of the bodies of a world.

    Args:
        poses: [T, n, 7], x y z of the centre of mass in m and the orientation wxyz, in the world's frame.
        dt_s: from frame to frame.
        name: which one it is, for messages and tables.
    """

    world: RigidWorld
    poses: np.ndarray = field(repr=False)
    dt_s: float = FRAME_S
    name: str = "trajectory"

    def __post_init__(self) -> None:
        poses = np.asarray(self.poses, float)
        object.__setattr__(self, "poses", poses)
        bodies = len(self.world.bodies)
        if poses.ndim != 3 or poses.shape[1:] != (bodies, 7):
            raise self._wrong(f"poses of shape {list(poses.shape)}", f"[T, {bodies}, 7]")
        if len(poses) < FEWEST_FRAMES:
            raise self._wrong(f"{len(poses)} frames", f"at least {FEWEST_FRAMES}: the first two are the start alone")
        if not np.isfinite(poses).all():
            raise self._wrong("NaN or infinity among the poses", "numbers; leave out frames in which no tag was seen")
        # Recordings carry rounding; what is further off is no orientation.
        if (np.abs(np.linalg.norm(poses[..., 3:], axis=2) - 1) > 1e-3).any():
            raise self._wrong("orientations that are no unit quaternions", "unit quaternions, wxyz")
        if not self.dt_s > 0:
            raise self._wrong(f"{self.dt_s:g} s between frames", "a positive time")

    def __len__(self) -> int:
        return len(self.poses)

    @property
    def start(self) -> np.ndarray:
        """The first two frames, [2, n, 7]."""
        return self.poses[:START_FRAMES]

    @property
    def sizes_m(self) -> np.ndarray:
        """The longest edge of each body's bounding box, [n]; for a cube, its side."""
        return np.array([body.mesh.size_m for body in self.world.bodies])

    def with_poses(self, poses: np.ndarray, name: str | None = None) -> Trajectory:
        """The same bodies with another motion."""
        return replace(self, poses=poses, name=self.name if name is None else name)

    def _wrong(self, got: str, expected: str) -> SessionError:
        next_step = "Correct the recording, or leave this trajectory out."
        return SessionError(got=got, expected=expected, where=f"trajectory '{self.name}'", next_step=next_step)


def save_trajectories(trajectories: Sequence[Trajectory], path: Path) -> None:
    """Write trajectories, of any worlds, as one .npz. Equal trajectories give equal bytes."""
    bodies = [body for trajectory in trajectories for body in trajectory.world.bodies]
    meshes, shapes = _distinct([body.mesh for body in bodies])
    worlds = [trajectory.world for trajectory in trajectories]
    arrays = {
        "version": np.array(_VERSION),
        # One flat table a quantity: no pickles, and equal bytes for equal trajectories.
        "names": np.array([trajectory.name for trajectory in trajectories], dtype=str),
        "frames": np.array([len(trajectory) for trajectory in trajectories], int),
        "dt_s": np.array([trajectory.dt_s for trajectory in trajectories], float),
        "poses": _joined([trajectory.poses.reshape(-1, 7) for trajectory in trajectories], 7),
        "floor": np.array([world.floor for world in worlds], bool),
        "gravity_m_s2": np.array([world.gravity_m_s2 for world in worlds], float),
        "bodies": np.array([len(world.bodies) for world in worlds], int),
        "body_names": np.array([body.name for body in bodies], dtype=str),
        "mass_kg": np.array([body.mass_kg for body in bodies], float),
        "inertia_kg_m2": np.array([body.inertia_kg_m2 for body in bodies], float).reshape(-1, 3, 3),
        "mesh": np.array(meshes, int),
        "mesh_names": np.array([mesh.name for mesh in shapes], dtype=str),
        "vertices": np.array([len(mesh.vertices_m) for mesh in shapes], int),
        "faces": np.array([len(mesh.faces) for mesh in shapes], int),
        "vertices_m": _joined([mesh.vertices_m for mesh in shapes], 3),
        "face_corners": _joined([mesh.faces for mesh in shapes], 3).astype(int),
    }
    write_arrays(path, arrays)


def load_trajectories(path: Path) -> list[Trajectory]:
    """Read what `save_trajectories` wrote."""
    try:
        arrays = read_arrays(Path(path))
        if arrays["version"] != _VERSION:
            raise ValueError(f"version {arrays['version']}")
        return _trajectories(arrays)
    except DAMAGED as error:
        raise SessionError(
            got=str(error) or type(error).__name__,
            expected="trajectories that `rsr.learned.gnn.save_trajectories` wrote",
            where=str(path),
            next_step="Correct the path, or make the file again.",
        ) from error


def _trajectories(arrays: dict[str, np.ndarray]) -> list[Trajectory]:
    vertices = _cut(arrays["vertices_m"], arrays["vertices"])
    faces = _cut(arrays["face_corners"], arrays["faces"])
    shapes = [Mesh(*columns) for columns in zip(vertices, faces, arrays["mesh_names"].tolist(), strict=True)]
    columns = zip(
        arrays["body_names"].tolist(), arrays["mesh"], arrays["mass_kg"].tolist(), arrays["inertia_kg_m2"], strict=True
    )
    bodies = [RigidBody(name, shapes[mesh], mass, inertia) for name, mesh, mass, inertia in columns]
    # Ragged tables: all rows in one array, cut by how many each part has.
    ends = np.cumsum(arrays["bodies"])
    worlds = [
        RigidWorld(tuple(bodies[end - count : end]), floor, gravity)
        for end, count, floor, gravity in zip(
            ends, arrays["bodies"], arrays["floor"].tolist(), arrays["gravity_m_s2"].tolist(), strict=True
        )
    ]
    rows = _cut(arrays["poses"], arrays["frames"] * arrays["bodies"])
    return [
        Trajectory(world, poses.reshape(-1, len(world.bodies), 7), dt_s, name)
        for world, poses, dt_s, name in zip(
            worlds, rows, arrays["dt_s"].tolist(), arrays["names"].tolist(), strict=True
        )
    ]


def _distinct(meshes: Sequence[Mesh]) -> tuple[list[int], list[Mesh]]:
    """Which of the distinct meshes each one is, and the distinct ones in order of appearance."""
    places: dict[tuple, int] = {}
    shapes: list[Mesh] = []
    indices = []
    for mesh in meshes:
        # Thousands of trajectories share a few meshes: by content, not identity, so that files do not grow when read
        # back.
        key = (mesh.name, mesh.vertices_m.tobytes(), mesh.faces.tobytes())
        if key not in places:
            places[key] = len(shapes)
            shapes.append(mesh)
        indices.append(places[key])
    return indices, shapes


def _joined(parts: Sequence[np.ndarray], width: int) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros((0, width))


def _cut(rows: np.ndarray, counts: np.ndarray) -> list[np.ndarray]:
    return np.split(rows, np.cumsum(counts)[:-1]) if len(counts) else []
