"""Where in a MuJoCo model a parameter acts: named elements and named fields, as a scenario's YAML states them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import mujoco
import numpy as np

from rsr.errors import ScenarioError

Write = Callable[[mujoco.MjModel, mujoco.MjModel, int, float], None]
"""Write one element's field: (model to change, the MJCF's own model, element id, value or factor)."""


@dataclass(frozen=True)
class Binding:
    """One field of one or more named elements.

    Args:
        parameter: index into the scenario's parameter space.
        mode: "set" writes the value, "scale" multiplies what the MJCF says.
    """

    parameter: int
    element: str
    ids: tuple[int, ...]
    field: str
    mode: Literal["set", "scale"]

    def apply(self, model: mujoco.MjModel, base: mujoco.MjModel, value: float) -> None:
        read, write = _FIELDS[self.element, self.field]
        for index in self.ids:
            write(model, base, index, value * read(base, index) if self.mode == "scale" else value)

    def read(self, base: mujoco.MjModel) -> np.ndarray:
        """What the MJCF says, one value an element."""
        read, _ = _FIELDS[self.element, self.field]
        return np.array([read(base, index) for index in self.ids])


def bind(base: mujoco.MjModel, parameter: int, mode: Literal["set", "scale"], target: dict, where: str) -> Binding:
    """Resolve one YAML entry such as `{pair: table_cube, field: friction}` against the compiled model."""
    element = next((name for name in target if name != "field"), "")
    field = target.get("field", "")
    if (element, field) not in _FIELDS:
        raise ScenarioError(
            got=f"'{field}' of '{element}'",
            expected="one of " + ", ".join(f"{field} of {element}" for element, field in _FIELDS),
            where=where,
            next_step="Correct the entry in the scenario's YAML file.",
        )
    names = target[element] if isinstance(target[element], list) else [target[element]]
    ids = tuple(element_id(base, element, name, where) for name in names)
    if field.startswith("com_"):
        _check_free_com(base, ids, where)
    return Binding(parameter, element, ids, field, mode)


def _check_free_com(base: mujoco.MjModel, bodies: Sequence[int], where: str) -> None:
    """MuJoCo compiles a body whose centre of mass is its origin to a model that cannot have it elsewhere."""
    for body in bodies:
        if base.body_simple[body] or base.body_sameframe[body] in _COM_AT_ORIGIN:
            raise ScenarioError(
                got=f"body '{base.body(body).name}' with its centre of mass exactly in its origin",
                expected="a centre of mass that can move",
                where=where,
                next_step='Give its <inertial> in the MJCF a small offset, such as pos="0.000001 0.000001 0.000001".',
            )


def in_order(bindings: Sequence[Binding]) -> tuple[Binding, ...]:
    """Masses first: writing a mass scales the inertia, and a parameter that sets the inertia itself must prevail."""
    return tuple(sorted(bindings, key=lambda binding: (binding.element, binding.field) != ("body", "mass")))


def element_id(model: mujoco.MjModel, element: str, name: str, where: str) -> int:
    """Find a named element of the model, or say which names there are."""
    if element == "option":
        return _option(name, where)
    kind = _OBJECTS[element]
    index = mujoco.mj_name2id(model, kind, name)
    if index < 0:
        count = getattr(model, _COUNTS[element])
        known = [mujoco.mj_id2name(model, kind, i) or "(unnamed)" for i in range(count)]
        raise ScenarioError(
            got=f"{element} '{name}'",
            expected=f"one of {', '.join(known) or 'none: the MJCF has no ' + element}",
            where=where,
            next_step="Correct the name in the scenario's YAML file or add it to the MJCF.",
        )
    return index


def _option(name: str, where: str) -> int:
    if name != "gravity":
        raise ScenarioError(
            got=f"option '{name}'",
            expected="gravity",
            where=where,
            next_step="Correct the name in the scenario's YAML file.",
        )
    return 0


def _write_gravity(model: mujoco.MjModel, base: mujoco.MjModel, option: int, strength: float) -> None:
    model.opt.gravity[:] = base.opt.gravity * (strength / np.linalg.norm(base.opt.gravity))


def _write_mass(model: mujoco.MjModel, base: mujoco.MjModel, body: int, mass: float) -> None:
    model.body_mass[body] = mass
    model.body_inertia[body] = base.body_inertia[body] * (mass / base.body_mass[body])


def _write_inertia(model: mujoco.MjModel, base: mujoco.MjModel, body: int, inertia: float) -> None:
    """The largest principal inertia; the others in the proportions of the MJCF, so that it stays physical."""
    model.body_inertia[body] = base.body_inertia[body] * (inertia / base.body_inertia[body].max())


def _write_com_distance(model: mujoco.MjModel, base: mujoco.MjModel, body: int, distance: float) -> None:
    """From the body's frame to its centre of mass, in the direction the MJCF gives."""
    model.body_ipos[body] = base.body_ipos[body] * (distance / np.linalg.norm(base.body_ipos[body]))


def _com(axis: int) -> tuple[Callable[[mujoco.MjModel, int], float], Write]:
    """Read and write one coordinate of the centre of mass, in the body's frame."""

    def write(model: mujoco.MjModel, base: mujoco.MjModel, body: int, value: float) -> None:
        model.body_ipos[body, axis] = value

    return lambda model, body: float(model.body_ipos[body, axis]), write


def _write_size(model: mujoco.MjModel, base: mujoco.MjModel, geom: int, size: float) -> None:
    """The first of the sizes; the others in proportion, and with them the bounds that collision filters use."""
    factor = size / base.geom_size[geom, 0]
    for array in ("geom_size", "geom_rbound", "geom_aabb"):
        getattr(model, array)[geom] = getattr(base, array)[geom] * factor


def _write_corner_radius(model: mujoco.MjModel, base: mujoco.MjModel, geom: int, radius: float) -> None:
    """A ball in the corner of a block: its centre moves along the diagonal, so that it stays flush with the faces."""
    inward = np.sign(base.geom_pos[geom]) * (radius - base.geom_size[geom, 0])
    model.geom_pos[geom] = base.geom_pos[geom] - inward
    _write_size(model, base, geom, radius)


def _write_joint(array: str) -> Write:
    def write(model: mujoco.MjModel, base: mujoco.MjModel, joint: int, value: float) -> None:
        start = model.jnt_dofadr[joint]
        stop = start + _DOFS[model.jnt_type[joint]]
        getattr(model, array)[start:stop] = value

    return write


def _read_joint(array: str) -> Callable[[mujoco.MjModel, int], float]:
    return lambda model, joint: float(getattr(model, array)[model.jnt_dofadr[joint]])


def _write_friction(model: mujoco.MjModel, base: mujoco.MjModel, pair: int, value: float) -> None:
    model.pair_friction[pair, :2] = value


def _write_rolling(model: mujoco.MjModel, base: mujoco.MjModel, pair: int, value: float) -> None:
    model.pair_friction[pair, 3:] = value


def _pair(array: str, column: int) -> tuple[Callable[[mujoco.MjModel, int], float], Write]:
    """Read and write one number of a contact pair."""

    def write(model: mujoco.MjModel, base: mujoco.MjModel, pair: int, value: float) -> None:
        getattr(model, array)[pair, column] = value

    return lambda model, pair: float(getattr(model, array)[pair, column]), write


def _write_position_gain(model: mujoco.MjModel, base: mujoco.MjModel, actuator: int, value: float) -> None:
    model.actuator_gainprm[actuator, 0] = value
    model.actuator_biasprm[actuator, 1] = -value


_COM_AT_ORIGIN = (mujoco.mjtSameFrame.mjSAMEFRAME_BODY, mujoco.mjtSameFrame.mjSAMEFRAME_INERTIA)
_DOFS = {0: 6, 1: 3, 2: 1, 3: 1}  # free, ball, slide, hinge
_OBJECTS = {
    "pair": mujoco.mjtObj.mjOBJ_PAIR,
    "geom": mujoco.mjtObj.mjOBJ_GEOM,
    "body": mujoco.mjtObj.mjOBJ_BODY,
    "joint": mujoco.mjtObj.mjOBJ_JOINT,
    "actuator": mujoco.mjtObj.mjOBJ_ACTUATOR,
}
_COUNTS = {"pair": "npair", "geom": "ngeom", "body": "nbody", "joint": "njnt", "actuator": "nu"}
# What each field is, and in which unit: docs/scenarios.md.
_FIELDS: dict[tuple[str, str], tuple[Callable[[mujoco.MjModel, int], float], Write]] = {
    ("pair", "friction"): (lambda m, i: float(m.pair_friction[i, 0]), _write_friction),
    ("pair", "torsional_friction"): _pair("pair_friction", 2),
    ("pair", "rolling_friction"): (lambda m, i: float(m.pair_friction[i, 3]), _write_rolling),
    ("pair", "contact_time"): _pair("pair_solref", 0),
    ("pair", "damping_ratio"): _pair("pair_solref", 1),
    ("pair", "impedance_start"): _pair("pair_solimp", 0),
    ("pair", "impedance_end"): _pair("pair_solimp", 1),
    ("pair", "impedance_width"): _pair("pair_solimp", 2),
    ("pair", "impedance_midpoint"): _pair("pair_solimp", 3),
    ("pair", "impedance_power"): _pair("pair_solimp", 4),
    ("geom", "size"): (lambda m, i: float(m.geom_size[i, 0]), _write_size),
    ("geom", "corner_radius"): (lambda m, i: float(m.geom_size[i, 0]), _write_corner_radius),
    ("body", "mass"): (lambda m, i: float(m.body_mass[i]), _write_mass),
    ("body", "inertia"): (lambda m, i: float(m.body_inertia[i].max()), _write_inertia),
    ("body", "com_distance"): (lambda m, i: float(np.linalg.norm(m.body_ipos[i])), _write_com_distance),
    ("body", "com_x"): _com(0),
    ("body", "com_y"): _com(1),
    ("body", "com_z"): _com(2),
    ("joint", "damping"): (_read_joint("dof_damping"), _write_joint("dof_damping")),
    ("joint", "armature"): (_read_joint("dof_armature"), _write_joint("dof_armature")),
    ("joint", "friction_loss"): (_read_joint("dof_frictionloss"), _write_joint("dof_frictionloss")),
    ("option", "gravity_strength"): (lambda m, i: float(np.linalg.norm(m.opt.gravity)), _write_gravity),
    ("actuator", "position_gain"): (lambda m, i: float(m.actuator_gainprm[i, 0]), _write_position_gain),
}


def refresh_constants(model: mujoco.MjModel) -> None:
    """Recompute what MuJoCo derives from masses and inertias (mj_setConst)."""
    mujoco.mj_setConst(model, mujoco.MjData(model))


def free_joint_slice(model: mujoco.MjModel, name: str, part: Literal["position", "quaternion"], where: str) -> tuple:
    """qpos indices of the position or the quaternion (wxyz) of a free joint."""
    joint = element_id(model, "joint", name, where)
    start = int(model.jnt_qposadr[joint])
    return tuple(np.arange(start, start + 3) if part == "position" else np.arange(start + 3, start + 7))
