"""Geoms of a scene: which a body has, whether they collide, and points whose hull they are."""

from __future__ import annotations

import mujoco
import numpy as np

from rsr.common import CalibrationError

_ROUND_POINTS = 24


def geoms_of(model: mujoco.MjModel, body: int) -> range:
    return range(model.body_geomadr[body], model.body_geomadr[body] + model.body_geomnum[body])


def collides(model: mujoco.MjModel, geom: int) -> bool:
    paired = geom in model.pair_geom1 or geom in model.pair_geom2
    return bool(model.geom_contype[geom] or model.geom_conaffinity[geom] or paired)


def points_of(model: mujoco.MjModel, data: mujoco.MjData, geom: int) -> np.ndarray:
    """Points [N, 3] on the surface of a geom in the world, whose hull is the geom's."""
    kinds, kind, size = mujoco.mjtGeom, int(model.geom_type[geom]), model.geom_size[geom]
    if kind == kinds.mjGEOM_BOX:
        local = np.array(np.meshgrid(*[(-1, 1)] * 3)).reshape(3, -1).T * size
    elif kind == kinds.mjGEOM_MESH:
        mesh = model.geom_dataid[geom]
        first = model.mesh_vertadr[mesh]
        local = model.mesh_vert[first : first + model.mesh_vertnum[mesh]]
    elif kind == kinds.mjGEOM_CYLINDER:
        ring = _ring(2) * [size[0], size[0], 0]
        local = np.concatenate([ring + np.array([0, 0, end]) for end in (-size[1], size[1])])
    elif kind in map(int, (kinds.mjGEOM_SPHERE, kinds.mjGEOM_ELLIPSOID, kinds.mjGEOM_CAPSULE)):
        radii = size if kind == kinds.mjGEOM_ELLIPSOID else np.full(3, size[0])
        ball = np.concatenate([_ring(axis) for axis in range(3)]) * radii
        ends = (-size[1], size[1]) if kind == kinds.mjGEOM_CAPSULE else (0.0,)
        local = np.concatenate([ball + np.array([0, 0, end]) for end in ends])
    else:
        raise CalibrationError(
            got=f"geom '{model.geom(geom).name}', a plane or a height field, on the struck body",
            expected="boxes, meshes, cylinders, capsules, spheres or ellipsoids",
            where="collision, struck",
            next_step="Model the struck body as one of these; a plane may be the striker.",
        )
    return local @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom]


def _ring(axis: int) -> np.ndarray:
    """Points [N, 3] of the unit circle across an axis."""
    angle = 2 * np.pi * np.arange(_ROUND_POINTS) / _ROUND_POINTS
    return np.insert(np.stack([np.cos(angle), np.sin(angle)], axis=1), axis, 0.0, axis=1)
