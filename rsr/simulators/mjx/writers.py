"""How each field that a scenario's YAML may name enters an MJX model, as `rsr.scenarios.bindings` does it in C."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from mujoco import mjx

Writer = Callable[[mjx.Model, mujoco.MjModel, np.ndarray, jax.Array], dict[str, jax.Array]]
"""Leaves of the model that change: (model, the MJCF's own model, element ids [N], values [N]) -> name -> new leaf."""


def _columns(leaf: str, *columns: int) -> Writer:
    """One value an element, written to one or more columns of its row."""

    def write(model: mjx.Model, base: mujoco.MjModel, ids: np.ndarray, values: jax.Array) -> dict[str, jax.Array]:
        return {leaf: getattr(model, leaf).at[ids[:, None], np.array(columns)].set(values[:, None])}

    return write


def _joint(leaf: str) -> Writer:
    """One value a joint, written to all its degrees of freedom."""

    def write(model: mjx.Model, base: mujoco.MjModel, ids: np.ndarray, values: jax.Array) -> dict[str, jax.Array]:
        dofs = np.flatnonzero(np.isin(base.dof_jntid, ids))
        position = {joint: index for index, joint in enumerate(ids.tolist())}
        owners = np.array([position[joint] for joint in base.dof_jntid[dofs].tolist()])
        return {leaf: getattr(model, leaf).at[dofs].set(values[owners])}

    return write


def _mass(model: mjx.Model, base: mujoco.MjModel, ids: np.ndarray, values: jax.Array) -> dict[str, jax.Array]:
    inertia = base.body_inertia[ids] * (values / base.body_mass[ids])[:, None]
    return {
        "body_mass": model.body_mass.at[ids].set(values),
        "body_inertia": model.body_inertia.at[ids].set(inertia),
    }


def _inertia(model: mjx.Model, base: mujoco.MjModel, ids: np.ndarray, values: jax.Array) -> dict[str, jax.Array]:
    factors = values / base.body_inertia[ids].max(axis=1)
    return {"body_inertia": model.body_inertia.at[ids].set(base.body_inertia[ids] * factors[:, None])}


def _com_distance(model: mjx.Model, base: mujoco.MjModel, ids: np.ndarray, values: jax.Array) -> dict[str, jax.Array]:
    direction = base.body_ipos[ids] / np.linalg.norm(base.body_ipos[ids], axis=1, keepdims=True)
    return {"body_ipos": model.body_ipos.at[ids].set(direction * values[:, None])}


def _size(model: mjx.Model, base: mujoco.MjModel, ids: np.ndarray, values: jax.Array) -> dict[str, jax.Array]:
    factors = values / base.geom_size[ids, 0]
    return {
        "geom_size": model.geom_size.at[ids].set(base.geom_size[ids] * factors[:, None]),
        "geom_rbound": model.geom_rbound.at[ids].set(base.geom_rbound[ids] * factors),
    }


def _corner_radius(model: mjx.Model, base: mujoco.MjModel, ids: np.ndarray, values: jax.Array) -> dict[str, jax.Array]:
    inward = np.sign(base.geom_pos[ids]) * (values - base.geom_size[ids, 0])[:, None]
    moved = {"geom_pos": model.geom_pos.at[ids].set(base.geom_pos[ids] - inward)}
    return moved | _size(model, base, ids, values)


def _gravity(model: mjx.Model, base: mujoco.MjModel, ids: np.ndarray, values: jax.Array) -> dict[str, jax.Array]:
    return {"opt.gravity": base.opt.gravity * (values[0] / np.linalg.norm(base.opt.gravity))}


def _position_gain(model: mjx.Model, base: mujoco.MjModel, ids: np.ndarray, values: jax.Array) -> dict[str, jax.Array]:
    return {
        "actuator_gainprm": model.actuator_gainprm.at[ids, 0].set(values),
        "actuator_biasprm": model.actuator_biasprm.at[ids, 1].set(-values),
    }


WRITERS: dict[tuple[str, str], Writer] = {
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
    ("geom", "size"): _size,
    ("geom", "corner_radius"): _corner_radius,
    ("body", "mass"): _mass,
    ("body", "inertia"): _inertia,
    ("body", "com_distance"): _com_distance,
    ("body", "com_x"): _columns("body_ipos", 0),
    ("body", "com_y"): _columns("body_ipos", 1),
    ("body", "com_z"): _columns("body_ipos", 2),
    ("joint", "damping"): _joint("dof_damping"),
    ("joint", "armature"): _joint("dof_armature"),
    ("joint", "friction_loss"): _joint("dof_frictionloss"),
    ("actuator", "position_gain"): _position_gain,
    ("option", "gravity_strength"): _gravity,
}
"""(element, field) -> its writer."""

CHANGES_INERTIA = {
    *(("body", field) for field in ("mass", "inertia", "com_distance", "com_x", "com_y", "com_z")),
    ("joint", "armature"),
}
"""Fields after which derived constants must be refreshed."""


def spread(value: jax.Array, base_values: np.ndarray, mode: str) -> jax.Array:
    """What is written for each element: the value itself, or the MJCF's numbers [N] times the factor."""
    return value * base_values if mode == "scale" else jnp.broadcast_to(value, base_values.shape)
