"""Where in a MuJoCo model a parameter acts: named elements and named fields, as a scenario's YAML states them."""

from __future__ import annotations

from collections.abc import Callable
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
    return Binding(parameter, element, tuple(element_id(base, element, name, where) for name in names), field, mode)


def element_id(model: mujoco.MjModel, element: str, name: str, where: str) -> int:
    """Find a named element of the model, or say which names there are."""
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


def _write_mass(model: mujoco.MjModel, base: mujoco.MjModel, body: int, mass: float) -> None:
    model.body_mass[body] = mass
    model.body_inertia[body] = base.body_inertia[body] * (mass / base.body_mass[body])


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


def _write_contact_time(model: mujoco.MjModel, base: mujoco.MjModel, pair: int, value: float) -> None:
    model.pair_solref[pair, 0] = value


def _write_damping_ratio(model: mujoco.MjModel, base: mujoco.MjModel, pair: int, value: float) -> None:
    model.pair_solref[pair, 1] = value


def _write_position_gain(model: mujoco.MjModel, base: mujoco.MjModel, actuator: int, value: float) -> None:
    model.actuator_gainprm[actuator, 0] = value
    model.actuator_biasprm[actuator, 1] = -value


_DOFS = {0: 6, 1: 3, 2: 1, 3: 1}  # free, ball, slide, hinge
_OBJECTS = {
    "pair": mujoco.mjtObj.mjOBJ_PAIR,
    "body": mujoco.mjtObj.mjOBJ_BODY,
    "joint": mujoco.mjtObj.mjOBJ_JOINT,
    "actuator": mujoco.mjtObj.mjOBJ_ACTUATOR,
}
_COUNTS = {"pair": "npair", "body": "nbody", "joint": "njnt", "actuator": "nu"}
_FIELDS: dict[tuple[str, str], tuple[Callable[[mujoco.MjModel, int], float], Write]] = {
    ("pair", "friction"): (lambda m, i: float(m.pair_friction[i, 0]), _write_friction),
    ("pair", "contact_time"): (lambda m, i: float(m.pair_solref[i, 0]), _write_contact_time),
    ("pair", "damping_ratio"): (lambda m, i: float(m.pair_solref[i, 1]), _write_damping_ratio),
    ("body", "mass"): (lambda m, i: float(m.body_mass[i]), _write_mass),
    ("joint", "damping"): (_read_joint("dof_damping"), _write_joint("dof_damping")),
    ("joint", "armature"): (_read_joint("dof_armature"), _write_joint("dof_armature")),
    ("joint", "friction_loss"): (_read_joint("dof_frictionloss"), _write_joint("dof_frictionloss")),
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
