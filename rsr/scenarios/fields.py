"""The one table of what a parameter may write: for each field, which numbers of a model it is, in C and MJX alike.

A field writes whole groups of elements at once: `write(base, ids, values)` returns, for each leaf of the model that
changes, where and to what. It uses nothing but arithmetic and indexing, so values may be numpy's or JAX's, and the same
line serves a C model and, with its derivatives, an MJX model. What each field means, and its unit: docs/scenarios.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

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
        moves_inertia: constants that MuJoCo derives from masses and inertias must be refreshed afterwards.
    """

    read: Callable[[mujoco.MjModel, np.ndarray], np.ndarray]
    write: Callable[[mujoco.MjModel, np.ndarray, Array], Changes]
    moves_inertia: bool = False


def _columns(leaf: str, *columns: int, moves_inertia: bool = False) -> ModelField:
    """One number an element, written to one or more columns of its row; the first one is read."""

    def write(base: mujoco.MjModel, ids: np.ndarray, values: Array) -> Changes:
        return {leaf: ((ids[:, None], np.array(columns)), values[:, None])}

    return ModelField(lambda model, ids: getattr(model, leaf)[ids, columns[0]], write, moves_inertia)


def _joint(leaf: str, moves_inertia: bool = False) -> ModelField:
    """One number a joint, written to all its degrees of freedom."""

    def write(base: mujoco.MjModel, ids: np.ndarray, values: Array) -> Changes:
        dofs = np.flatnonzero(np.isin(base.dof_jntid, ids))
        position = {joint: index for index, joint in enumerate(ids.tolist())}
        owners = np.array([position[joint] for joint in base.dof_jntid[dofs].tolist()], int)
        return {leaf: (dofs, values[owners])}

    return ModelField(lambda model, ids: getattr(model, leaf)[model.jnt_dofadr[ids]], write, moves_inertia)


def _write_mass(base: mujoco.MjModel, ids: np.ndarray, values: Array) -> Changes:
    # The shape of the mass distribution stays, so inertia grows with the mass.
    inertia = base.body_inertia[ids] * (values / base.body_mass[ids])[:, None]
    return {"body_mass": (ids, values), "body_inertia": (ids, inertia)}


def _write_inertia(base: mujoco.MjModel, ids: np.ndarray, values: Array) -> Changes:
    # The largest principal inertia; the others in the proportions of the MJCF, so that it stays physical.
    factors = values / base.body_inertia[ids].max(axis=1)
    return {"body_inertia": (ids, base.body_inertia[ids] * factors[:, None])}


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
        lambda model, ids: np.linalg.norm(model.body_ipos[ids], axis=1), _write_com_distance, moves_inertia=True
    ),
    ("body", "com_x"): _columns("body_ipos", 0, moves_inertia=True),
    ("body", "com_y"): _columns("body_ipos", 1, moves_inertia=True),
    ("body", "com_z"): _columns("body_ipos", 2, moves_inertia=True),
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
    ("actuator", "position_gain"): ModelField(lambda model, ids: model.actuator_gainprm[ids, 0], _write_position_gain),
    ("actuator", "velocity_gain"): ModelField(lambda model, ids: -model.actuator_biasprm[ids, 2], _write_velocity_gain),
    ("actuator", "force_gain"): _columns("actuator_gainprm", 0),
    ("actuator", "time_constant"): _columns("actuator_dynprm", 0),
}
"""(Kind of element, name of the field in YAML) -> the field."""


def write_changes(model: mujoco.MjModel, changes: Changes) -> None:
    """Write changes into a C model, in place."""
    for leaf, (index, values) in changes.items():
        owner, name = (model.opt, leaf.removeprefix("opt.")) if leaf.startswith("opt.") else (model, leaf)
        if np.ndim(getattr(owner, name)):
            getattr(owner, name)[index] = values
        else:
            setattr(owner, name, float(values))
