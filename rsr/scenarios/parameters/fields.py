"""The one table of what a parameter may write: for each field, which numbers of a model it is, in C and MJX alike.

A field writes whole groups of elements at once: `write(base, ids, values)` returns, for each leaf of the model that
changes, where and to what. It uses nothing but arithmetic and indexing, so values may be numpy's or JAX's, and the same
line serves a C model and, with its derivatives, an MJX model. What each field means, and its unit: docs/scenarios.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import mujoco
import numpy as np

from rsr.scenarios.parameters import named_numbers
from rsr.scenarios.parameters.inertias import deformed
from rsr.scenarios.parameters.turned_frames import turned_about

Array = Any
"""A numpy array, or one of JAX under a transformation."""

Changes = dict[str, tuple[Any, Array]]
"""Leaf of the model, such as `body_mass` or `opt.gravity` -> (index into it, what to write there)."""


@dataclass(frozen=True)
class ModelField:
    """A number that each element of a kind has.

    Args:
        read: (model, ids [N]) -> values [N].
        write: (the MJCF's own model, ids [N], values [N]) -> changes.
        adds: what is written goes on from what parameters before it made of the element, instead of from the MJCF:
            `write` is given the model as it is by now, C's or MJX's.
        unlock: (C model, ids [N]): let poses count that MuJoCo compiled away, where frames coincide.
        moves_inertia: constants that MuJoCo derives from masses and inertias must be refreshed afterwards.
        fits: (model, ids [N]) -> whether each element has such a number at all; by default all have.
        needs: what an element is that has it, in words.
    """

    read: Callable[[mujoco.MjModel, np.ndarray], np.ndarray]
    write: Callable[[mujoco.MjModel, np.ndarray, Array], Changes]
    moves_inertia: bool = False
    adds: bool = False
    unlock: Callable[[mujoco.MjModel, np.ndarray], None] | None = None
    fits: Callable[[mujoco.MjModel, np.ndarray], np.ndarray] | None = None
    needs: str = ""


def _columns(leaf: str, *columns: int, moves_inertia: bool = False, **others: Any) -> ModelField:
    """One number an element, written to one or more columns of its row; the first one is read."""

    def write(base: mujoco.MjModel, ids: np.ndarray, values: Array) -> Changes:
        return {leaf: ((ids[:, None], np.array(columns)), values[:, None])}

    return ModelField(lambda model, ids: getattr(model, leaf)[ids, columns[0]], write, moves_inertia, **others)


def _turn(leaf: str, axis: int, **others: Any) -> ModelField:
    """An angle about one of an element's own axes, from the orientation in the MJCF: 0 there."""

    def write(now: Any, ids: np.ndarray, values: Array) -> Changes:
        return {leaf: (ids, turned_about(getattr(now, leaf)[ids], axis, values))}

    return ModelField(lambda model, ids: np.zeros(len(ids)), write, adds=True, **others)


def _joint(leaf: str, moves_inertia: bool = False) -> ModelField:
    """One number a joint, written to all its degrees of freedom."""

    def write(base: mujoco.MjModel, ids: np.ndarray, values: Array) -> Changes:
        dofs = np.flatnonzero(np.isin(base.dof_jntid, ids))
        position = {joint: index for index, joint in enumerate(ids.tolist())}
        owners = np.array([position[joint] for joint in base.dof_jntid[dofs].tolist()], int)
        return {leaf: (dofs, values[owners])}

    return ModelField(lambda model, ids: getattr(model, leaf)[model.jnt_dofadr[ids]], write, moves_inertia)


def _columns_of(leaf: str, **fitting: Any) -> ModelField:
    """One number an element, in an array without columns."""
    return ModelField(
        lambda model, ids: getattr(model, leaf)[ids], lambda base, ids, values: {leaf: (ids, values)}, **fitting
    )


def _write_spring_reference(base: mujoco.MjModel, ids: np.ndarray, values: Array) -> Changes:
    return {"qpos_spring": (base.jnt_qposadr[ids], values)}


def _write_force_limit(base: mujoco.MjModel, ids: np.ndarray, values: Array) -> Changes:
    return {
        "actuator_forcerange": ((ids[:, None], np.array([0, 1])), values[:, None] * np.array([-1.0, 1.0])),
    }


# MuJoCo takes the pose of a frame from another where both are one when compiled: what moves since would not count.


def _unlock_sites(model: mujoco.MjModel, ids: np.ndarray) -> None:
    model.site_sameframe[ids] = mujoco.mjtSameFrame.mjSAMEFRAME_NONE


def _unlock_geoms(model: mujoco.MjModel, ids: np.ndarray) -> None:
    model.geom_sameframe[ids] = mujoco.mjtSameFrame.mjSAMEFRAME_NONE


def _unlock_inertia(model: mujoco.MjModel, ids: np.ndarray) -> None:
    """Let the inertial frames of bodies move, and geoms and sites that shared them stay."""
    moving = np.isin(model.body_sameframe[ids], (_BODY_FRAME, mujoco.mjtSameFrame.mjSAMEFRAME_BODYROT))
    model.body_sameframe[ids[moving]] = mujoco.mjtSameFrame.mjSAMEFRAME_NONE
    inertial = (mujoco.mjtSameFrame.mjSAMEFRAME_INERTIA, mujoco.mjtSameFrame.mjSAMEFRAME_INERTIAROT)
    for bodies, frames in ((model.geom_bodyid, model.geom_sameframe), (model.site_bodyid, model.site_sameframe)):
        frames[np.isin(bodies, ids) & np.isin(frames, inertial)] = mujoco.mjtSameFrame.mjSAMEFRAME_NONE


_BODY_FRAME = mujoco.mjtSameFrame.mjSAMEFRAME_BODY


# Whether an element has a number at all: MuJoCo ignores a gain that its type of actuator does not look at.


def _is_position_servo(model: mujoco.MjModel, ids: np.ndarray) -> np.ndarray:
    gain, bias = model.actuator_gainprm[ids, 0], model.actuator_biasprm[ids, 1]
    return _is_affine(model, ids) & (gain > 0) & np.isclose(bias, -gain)


def _is_affine(model: mujoco.MjModel, ids: np.ndarray) -> np.ndarray:
    return model.actuator_biastype[ids] == mujoco.mjtBias.mjBIAS_AFFINE


def _has_filter(model: mujoco.MjModel, ids: np.ndarray) -> np.ndarray:
    return np.isin(model.actuator_dyntype[ids], (mujoco.mjtDyn.mjDYN_FILTER, mujoco.mjtDyn.mjDYN_FILTEREXACT))


def _is_force_limited(model: mujoco.MjModel, ids: np.ndarray) -> np.ndarray:
    return model.actuator_forcelimited[ids] > 0


def _has_one_coordinate(model: mujoco.MjModel, ids: np.ndarray) -> np.ndarray:
    return np.isin(model.jnt_type[ids], (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE))


def _has_spring(model: mujoco.MjModel, ids: np.ndarray) -> np.ndarray:
    return _has_one_coordinate(model, ids) & (model.jnt_stiffness[ids] > 0)


def _is_limited(model: mujoco.MjModel, ids: np.ndarray) -> np.ndarray:
    return _has_one_coordinate(model, ids) & (model.jnt_limited[ids] > 0)


def _tendon_rubs(model: mujoco.MjModel, ids: np.ndarray) -> np.ndarray:
    return model.tendon_frictionloss[ids] > 0


def _tendon_is_limited(model: mujoco.MjModel, ids: np.ndarray) -> np.ndarray:
    return model.tendon_limited[ids] > 0


def _couples(model: mujoco.MjModel, ids: np.ndarray) -> np.ndarray:
    return np.isin(model.eq_type[ids], (mujoco.mjtEq.mjEQ_JOINT, mujoco.mjtEq.mjEQ_TENDON))


def _is_fixed_camera(model: mujoco.MjModel, ids: np.ndarray) -> np.ndarray:
    return model.cam_mode[ids] == mujoco.mjtCamLight.mjCAMLIGHT_FIXED


_FIXED: dict[str, Any] = {"fits": _is_fixed_camera, "needs": "a camera of mode fixed"}


def _write_mass(base: mujoco.MjModel, ids: np.ndarray, values: Array) -> Changes:
    # The shape of the mass distribution stays, so inertia grows with the mass.
    inertia = base.body_inertia[ids] * (values / base.body_mass[ids])[:, None]
    return {"body_mass": (ids, values), "body_inertia": (ids, inertia)}


def _write_inertia(base: mujoco.MjModel, ids: np.ndarray, values: Array) -> Changes:
    # The largest principal inertia; the others in the proportions of the MJCF, so that it stays physical.
    factors = values / base.body_inertia[ids].max(axis=1)
    return {"body_inertia": (ids, base.body_inertia[ids] * factors[:, None])}


def _deformation(row: int, column: int) -> ModelField:
    """A stretch or shear of a body's mass distribution, 0 in the MJCF; see `rsr.scenarios.parameters.inertias`."""

    def write(now: Any, ids: np.ndarray, values: Array) -> Changes:
        inertia, axes = deformed(now.body_inertia[ids], now.body_iquat[ids], row, column, values)
        return {"body_inertia": (ids, inertia), "body_iquat": (ids, axes)}

    has_mass = {"fits": lambda model, ids: model.body_mass[ids] > 0, "needs": "a body with a mass"}
    return ModelField(
        lambda model, ids: np.zeros(len(ids)), write, moves_inertia=True, adds=True, unlock=_unlock_inertia, **has_mass
    )


def _write_com_distance(base: mujoco.MjModel, ids: np.ndarray, values: Array) -> Changes:
    # From the body's frame to its centre of mass, in the direction that the MJCF gives.
    factors = values / np.linalg.norm(base.body_ipos[ids], axis=1)
    return {"body_ipos": (ids, base.body_ipos[ids] * factors[:, None])}


def _write_size(base: mujoco.MjModel, ids: np.ndarray, values: Array) -> Changes:
    # The first of the sizes; the others in proportion, and with them the bounds that collision filters use.
    factors = values / base.geom_size[ids, 0]
    return {
        "geom_size": (ids, base.geom_size[ids] * factors[:, None]),
        "geom_rbound": (ids, base.geom_rbound[ids] * factors),
        "geom_aabb": (ids, base.geom_aabb[ids] * factors[:, None]),
    }


def _write_corner_radius(base: mujoco.MjModel, ids: np.ndarray, values: Array) -> Changes:
    # A ball in the corner of a body: its centre moves along the diagonal, so that it stays flush with the faces.
    inward = np.sign(base.geom_pos[ids]) * (values - base.geom_size[ids, 0])[:, None]
    return {"geom_pos": (ids, base.geom_pos[ids] - inward), **_write_size(base, ids, values)}


def _write_gravity(base: mujoco.MjModel, ids: np.ndarray, values: Array) -> Changes:
    return {"opt.gravity": (..., base.opt.gravity * (values[0] / np.linalg.norm(base.opt.gravity)))}


def _write_position_gain(base: mujoco.MjModel, ids: np.ndarray, values: Array) -> Changes:
    # A position servo pulls with kp (setpoint - q): the gain and the first bias term are one number.
    return {"actuator_gainprm": ((ids, 0), values), "actuator_biasprm": ((ids, 1), -values)}


def _write_velocity_gain(base: mujoco.MjModel, ids: np.ndarray, values: Array) -> Changes:
    return {"actuator_biasprm": ((ids, 2), -values)}


def _option_number(name: str) -> ModelField:
    """A number that the whole world has once."""
    return ModelField(
        lambda model, ids: np.full(len(ids), getattr(model.opt, name)),
        lambda base, ids, values: {f"opt.{name}": (..., values[0])},
    )


def _option_column(name: str, column: int) -> ModelField:
    return ModelField(
        lambda model, ids: np.full(len(ids), getattr(model.opt, name)[column]),
        lambda base, ids, values: {f"opt.{name}": (column, values[0])},
    )


MODEL_FIELDS: dict[tuple[str, str], ModelField] = {
    ("pair", "friction"): _columns("pair_friction", 0, 1),
    ("pair", "torsional_friction"): _columns("pair_friction", 2),
    ("pair", "rolling_friction"): _columns("pair_friction", 3, 4),
    ("pair", "contact_time"): _columns("pair_solref", 0),
    ("pair", "damping_ratio"): _columns("pair_solref", 1),
    ("pair", "impedance_start"): _columns("pair_solimp", 0),
    ("pair", "impedance_end"): _columns("pair_solimp", 1),
    ("pair", "impedance_width"): _columns("pair_solimp", 2),
    ("pair", "impedance_midpoint"): _columns("pair_solimp", 3),
    ("pair", "impedance_power"): _columns("pair_solimp", 4),
    ("geom", "size"): ModelField(lambda model, ids: model.geom_size[ids, 0], _write_size),
    ("geom", "corner_radius"): ModelField(lambda model, ids: model.geom_size[ids, 0], _write_corner_radius),
    ("body", "mass"): ModelField(lambda model, ids: model.body_mass[ids], _write_mass, moves_inertia=True),
    ("body", "inertia"): ModelField(
        lambda model, ids: model.body_inertia[ids].max(axis=1), _write_inertia, moves_inertia=True
    ),
    ("body", "com_distance"): ModelField(
        lambda model, ids: np.linalg.norm(model.body_ipos[ids], axis=1),
        _write_com_distance,
        moves_inertia=True,
        unlock=_unlock_inertia,
    ),
    ("body", "com_x"): _columns("body_ipos", 0, moves_inertia=True, unlock=_unlock_inertia),
    ("body", "com_y"): _columns("body_ipos", 1, moves_inertia=True, unlock=_unlock_inertia),
    ("body", "com_z"): _columns("body_ipos", 2, moves_inertia=True, unlock=_unlock_inertia),
    **{("body", f"stretch_{name}"): _deformation(axis, axis) for axis, name in enumerate("xyz")},
    ("body", "shear_xy"): _deformation(0, 1),
    ("body", "shear_xz"): _deformation(0, 2),
    ("body", "shear_yz"): _deformation(1, 2),
    ("joint", "damping"): _joint("dof_damping"),
    ("joint", "armature"): _joint("dof_armature", moves_inertia=True),
    ("joint", "friction_loss"): _joint("dof_frictionloss"),
    ("option", "gravity_strength"): ModelField(
        lambda model, ids: np.full(len(ids), np.linalg.norm(model.opt.gravity)), _write_gravity
    ),
    ("option", "density"): _option_number("density"),
    ("option", "viscosity"): _option_number("viscosity"),
    ("option", "wind_x"): _option_column("wind", 0),
    ("option", "wind_y"): _option_column("wind", 1),
    ("option", "wind_z"): _option_column("wind", 2),
    ("actuator", "position_gain"): ModelField(
        lambda model, ids: model.actuator_gainprm[ids, 0],
        _write_position_gain,
        fits=_is_position_servo,
        needs="a <position> servo",
    ),
    ("actuator", "velocity_gain"): ModelField(
        lambda model, ids: -model.actuator_biasprm[ids, 2],
        _write_velocity_gain,
        fits=_is_affine,
        needs="a servo: <position>, <velocity>, or <general> with biastype affine",
    ),
    ("actuator", "force_gain"): _columns("actuator_gainprm", 0),
    ("actuator", "time_constant"): _columns(
        "actuator_dynprm", 0, fits=_has_filter, needs="an actuator with a filter, such as <position timeconst>"
    ),
    ("actuator", "gear"): _columns("actuator_gear", 0, moves_inertia=True),
    ("actuator", "force_limit"): ModelField(
        lambda model, ids: model.actuator_forcerange[ids, 1],
        _write_force_limit,
        fits=_is_force_limited,
        needs="an actuator with a forcerange",
    ),
    ("joint", "stiffness"): _columns_of("jnt_stiffness", fits=_has_spring, needs="a hinge or slide with a stiffness"),
    ("joint", "spring_reference"): ModelField(
        lambda model, ids: model.qpos_spring[model.jnt_qposadr[ids]],
        _write_spring_reference,
        fits=_has_spring,
        needs="a hinge or slide with a stiffness",
    ),
    ("joint", "range_lower"): _columns("jnt_range", 0, fits=_is_limited, needs="a hinge or slide with a range"),
    ("joint", "range_upper"): _columns("jnt_range", 1, fits=_is_limited, needs="a hinge or slide with a range"),
    ("body", "x"): _columns("body_pos", 0, moves_inertia=True),
    ("body", "y"): _columns("body_pos", 1, moves_inertia=True),
    ("body", "z"): _columns("body_pos", 2, moves_inertia=True),
    **{("site", name): _columns("site_pos", axis, unlock=_unlock_sites) for axis, name in enumerate("xyz")},
    **{("site", f"turn_{name}"): _turn("site_quat", axis, unlock=_unlock_sites) for axis, name in enumerate("xyz")},
    ("tendon", "stiffness"): _columns_of("tendon_stiffness"),
    ("tendon", "damping"): _columns_of("tendon_damping"),
    ("tendon", "friction_loss"): _columns_of(
        "tendon_frictionloss", fits=_tendon_rubs, needs="a tendon whose frictionloss in the MJCF is not 0"
    ),
    ("tendon", "range_lower"): _columns("tendon_range", 0, fits=_tendon_is_limited, needs="a tendon with a range"),
    ("tendon", "range_upper"): _columns("tendon_range", 1, fits=_tendon_is_limited, needs="a tendon with a range"),
    ("tendon", "rest_length"): _columns("tendon_lengthspring", 0, 1),
    ("equality", "offset"): _columns("eq_data", 0, fits=_couples, needs="an equality of joints or tendons"),
    ("equality", "ratio"): _columns("eq_data", 1, fits=_couples, needs="an equality of joints or tendons"),
    ("equality", "time_constant"): _columns("eq_solref", 0),
    ("equality", "damping_ratio"): _columns("eq_solref", 1),
    **{("camera", name): _columns("cam_pos", axis, **_FIXED) for axis, name in enumerate("xyz")},
    **{("camera", f"turn_{name}"): _turn("cam_quat", axis, **_FIXED) for axis, name in enumerate("xyz")},
    **{("body", f"turn_{name}"): _turn("body_quat", axis, moves_inertia=True) for axis, name in enumerate("xyz")},
}
"""(Kind of element, name of the field in YAML) -> the field."""


@lru_cache(maxsize=256)
def field_of(element: str, name: str) -> ModelField | None:
    """A field of the table, or one by MuJoCo's own name, such as `geom_friction[0]`; None if it is neither."""
    if (element, name) in MODEL_FIELDS:
        return MODEL_FIELDS[element, name]
    found = named_numbers.leaf_and_column(element, name)
    if found is None:
        return None
    leaf, column = found

    def place(model: mujoco.MjModel, ids: np.ndarray) -> Any:
        return named_numbers.index_of(getattr(model, leaf), named_numbers.rows_of(model, leaf, ids), column)

    return ModelField(
        lambda model, ids: getattr(model, leaf)[place(model, ids)],
        lambda base, ids, values: {leaf: (place(base, ids), values)},
        moves_inertia=named_numbers.moves_inertia(leaf),
        unlock=_unlock_geoms if leaf == "geom_pos" else None,
    )


def write_changes(model: mujoco.MjModel, changes: Changes) -> None:
    """Write changes into a C model, in place."""
    for leaf, (index, values) in changes.items():
        owner, name = (model.opt, leaf.removeprefix("opt.")) if leaf.startswith("opt.") else (model, leaf)
        if np.ndim(getattr(owner, name)):
            getattr(owner, name)[index] = values
        else:
            setattr(owner, name, float(values))
