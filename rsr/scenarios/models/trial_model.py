"""The base model without what only cameras see: a trial point copies the whole model, and pictures are most of it.

A copy of an arm from Menagerie takes 15 to 80 ms with its meshes and textures, and about one without them.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable

import mujoco
import numpy as np

_log = logging.getLogger(__name__)

_WORTH = 100_000
"""Bytes of meshes and textures; below them nothing is gained."""
_SAME_SIZES = ("nq", "nv", "na", "nu", "nbody", "njnt", "ngeom", "nsite", "ncam", "nlight", "ntendon", "nwrap", "neq",
               "npair", "nexclude", "nsensor", "nsensordata", "nmocap", "nM", "nD", "nB", "nkey", "nplugin", "nflex",
               "nhfield", "nuserdata")  # fmt: skip
_PHYSICAL = ("body_", "jnt_", "dof_", "geom_", "site_", "tendon_", "wrap_", "actuator_", "eq_", "pair_", "exclude_",
             "sensor_", "key_", "mocap_", "cam_", "qpos", "numeric_")  # fmt: skip
_OWN = ("geom_dataid", "geom_matid", "site_matid", "tendon_matid", "body_bvhadr", "body_bvhnum")
"""Places in what was taken out, which differ."""
_SHAPE = ("geom_type", "geom_size", "geom_aabb", "geom_rbound", "geom_pos", "geom_quat", "geom_sameframe")
_STEPS = 3


def without_pictures(base: mujoco.MjModel, spec: Callable[[], mujoco.MjSpec]) -> mujoco.MjModel:
    """Compile a model that moves exactly as `base`, without its visual meshes, textures and materials.

    Args:
        spec: makes a copy of what `base` was compiled from, to be changed at will.

    Returns:
        `base` itself where that gains nothing, or where the two would not move alike.
    """
    seen = _only_seen(base)
    worth = base.nmeshvert * 24 + base.nmeshface * 12 + base.ntexdata
    if worth < _WORTH or (not seen.any() and not base.ntexdata):
        return base
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what the first compilation has said already
            stripped = _stripped(base, spec(), seen)
    except (ValueError, mujoco.FatalError) as error:  # something refers to what was taken out
        _log.info("trial models keep their pictures: %s", error)
        return base
    return stripped if _alike(base, stripped) else base


def _only_seen(base: mujoco.MjModel) -> np.ndarray:
    """Which geoms [ngeom] are meshes that touch, sense and guide nothing."""
    touching = not base.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_CONTACT
    solid = (base.geom_contype != 0) | (base.geom_conaffinity != 0)
    seen = (base.geom_type == mujoco.mjtGeom.mjGEOM_MESH) & ~(solid & touching)
    seen[np.concatenate([base.pair_geom1, base.pair_geom2])] = False
    for kinds, ids in ((base.sensor_objtype, base.sensor_objid), (base.sensor_reftype, base.sensor_refid)):
        seen[ids[kinds == mujoco.mjtObj.mjOBJ_GEOM]] = False
    around = np.isin(base.wrap_type, (mujoco.mjtWrap.mjWRAP_SPHERE, mujoco.mjtWrap.mjWRAP_CYLINDER))
    seen[base.wrap_objid[around]] = False
    seen[base.geom_fluid[:, 0] > 0] = False  # drag is computed of the shape
    if (base.sensor_type == mujoco.mjtSensor.mjSENS_RANGEFINDER).any():
        seen[:] = False  # a ray meets what is only seen, too
    return seen


def _stripped(base: mujoco.MjModel, spec: mujoco.MjSpec, seen: np.ndarray) -> mujoco.MjModel:
    spec.compile()  # numbers the elements
    spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE
    for body in spec.bodies[1:]:
        body.explicitinertial, body.mass, body.fullinertia = True, base.body_mass[body.id], np.full(6, np.nan)
        body.ipos, body.iquat, body.inertia = (
            base.body_ipos[body.id],
            base.body_iquat[body.id],
            base.body_inertia[body.id],
        )
    for geom in spec.geoms:
        geom.material = ""
        if seen[geom.id]:
            geom.type, geom.size, geom.meshname = mujoco.mjtGeom.mjGEOM_SPHERE, [1e-3, 0.0, 0.0], ""
    for each in (*spec.sites, *spec.tendons):
        each.material = ""
    kept = {geom.meshname for geom in spec.geoms}
    for each in [
        *spec.skins,
        *(mesh for mesh in spec.meshes if mesh.name not in kept),
        *spec.materials,
        *spec.textures,
    ]:
        spec.delete(each)
    stripped = spec.compile()
    if any(getattr(stripped, size) != getattr(base, size) for size in _SAME_SIZES) or stripped.nbvh > base.nbvh:
        raise ValueError("other sizes without them")
    _take_over(base, stripped, seen)
    return stripped


def _take_over(base: mujoco.MjModel, stripped: mujoco.MjModel, seen: np.ndarray) -> None:
    """Copy every physical number: nothing shall differ by rounding of a second compilation, or by a changed option."""
    for name in dir(base):
        if not name.startswith(_PHYSICAL) or name in _OWN:
            continue
        ours, theirs = getattr(stripped, name), getattr(base, name)
        if not isinstance(theirs, np.ndarray) or ours.shape != theirs.shape:
            continue
        ours[...] = np.where(seen.reshape(-1, *[1] * (ours.ndim - 1)), ours, theirs) if name in _SHAPE else theirs
    for name in dir(base.opt):
        value = getattr(base.opt, name)
        if isinstance(value, np.ndarray):
            getattr(stripped.opt, name)[...] = value
        elif isinstance(value, int | float):
            setattr(stripped.opt, name, value)


def _alike(base: mujoco.MjModel, stripped: mujoco.MjModel) -> bool:
    """Whether both move exactly alike from the reference pose and from every key frame."""
    for key in range(-1, base.nkey):
        found = []
        for model in (base, stripped):
            data = mujoco.MjData(model)
            if key >= 0:
                mujoco.mj_resetDataKeyframe(model, data, key)
            data.qvel[:] = 0.1
            mujoco.mj_step(model, data, _STEPS)
            found.append(np.concatenate([data.qpos, data.qvel, data.act]))
        if not np.array_equal(*found, equal_nan=True):
            return False
    return True
