"""Where in a MuJoCo model a parameter acts: named elements and named fields, as a scenario's YAML states them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import mujoco
import numpy as np

from rsr.common import ScenarioError, short
from rsr.scenarios.parameters import named_numbers
from rsr.scenarios.parameters.fields import MODEL_FIELDS, Array, Changes, ModelField, field_of, write_changes


@dataclass(frozen=True)
class Binding:
    """One field of one or more named elements.

    Args:
        parameter: index into the scenario's parameter space; None where a value per episode acts by itself.
        mode: "set" writes the value, "scale" multiplies what the MJCF says.
        times: index of the value per episode that the parameter's value is multiplied by.
    """

    parameter: int | None
    element: str
    ids: tuple[int, ...]
    field: str
    mode: Literal["set", "scale"]
    times: int | None = None

    def value(self, params: Array, per_episode: Array) -> Array:
        """Compute what is written from parameters [P] and values per episode [C]."""
        value = 1.0 if self.parameter is None else params[self.parameter]
        return value if self.times is None else value * per_episode[self.times]

    def apply(self, model: mujoco.MjModel, base: mujoco.MjModel, value: float) -> None:
        """Write the parameter's value into a C model."""
        if self._field.unlock:
            self._field.unlock(model, np.array(self.ids))
        write_changes(model, self.changes(base, np.float64(value), model))

    def changes(self, base: mujoco.MjModel, value: Array, now: Any = None) -> Changes:
        """Changes that the parameter's value, numpy's or JAX's, makes in the MJCF's own model `base`.

        Args:
            now: the model with what was written before, in C or MJX; by default the MJCF's own.
        """
        stated = self.read(base)
        written = value * (stated if self.mode == "scale" else np.ones_like(stated))
        source = base if now is None or not self._field.adds else now
        return self._field.write(source, np.array(self.ids), written)

    def read(self, base: mujoco.MjModel) -> np.ndarray:
        """Values in the MJCF, one an element."""
        return self._field.read(base, np.array(self.ids))

    @property
    def moves_inertia(self) -> bool:
        return self._field.moves_inertia

    @property
    def adds(self) -> bool:
        """Whether what is written goes on from what was written before."""
        return self._field.adds

    @property
    def _field(self) -> ModelField:
        return _field(self.element, self.field)


def bind(
    base: mujoco.MjModel,
    parameter: int | None,
    mode: Literal["set", "scale"],
    target: dict,
    where: str,
    times: int | None = None,
) -> Binding:
    """Resolve one YAML entry such as `{pair: table_cube, field: friction}` against the compiled model."""
    element = next((name for name in target if name != "field"), "")
    field = target.get("field", "")
    _check_known(base, element, field, where)
    names = target[element] if isinstance(target[element], list) else [target[element]]
    ids = tuple(element_id(base, element, name, where) for name in names)
    if field.startswith("com_"):
        _check_free_com(base, ids, where)
    if field.startswith(("stretch_", "shear_")):
        _check_free_inertia(base, ids, where)
    _check_fits(base, element, field, ids, where)
    return Binding(parameter, element, ids, field, mode, times)


def _check_fits(base: mujoco.MjModel, element: str, field: str, ids: Sequence[int], where: str) -> None:
    """Refuse a number that MuJoCo would not look at: a position gain of a motor, say."""
    known = _field(element, field)
    fitting = np.ones(len(ids), bool) if known.fits is None else known.fits(base, np.array(ids))
    for index in np.array(ids)[~fitting].tolist():
        others = [name for kind, name in MODEL_FIELDS if kind == element and name != field]
        raise ScenarioError(
            got=f"{field} of {element} '{element_name(base, element, index)}'",
            expected=f"it of {known.needs}",
            where=where,
            next_step=f"Name another {element}, or another field of it: {', '.join(others)}.",
        )


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


def values_of(base: mujoco.MjModel, element: str, field: str, where: str) -> dict[str, float]:
    """Values of a field in the MJCF: name of each element -> value; "" stands for those without a name."""
    _check_known(base, element, field, where)
    count = 1 if element == "option" else getattr(base, _COUNTS[element])
    values = _field(element, field).read(base, np.arange(count))
    if element == "option":
        return {"gravity": float(values[0])}
    found: dict[str, float] = {}
    for index, value in enumerate(values.tolist()):
        name = mujoco.mj_id2name(base, _OBJECTS[element], index) or ""
        found[name] = value or found.get(name, 0.0)
    return found


def _field(element: str, field: str) -> ModelField:
    found = field_of(element, field)
    if found is None:
        raise LookupError(f"no {field} of {element}")  # `_check_known` comes first
    return found


def _check_known(base: mujoco.MjModel, element: str, field: str, where: str) -> None:
    if field_of(element, field) is None:
        own = [name for kind, name in MODEL_FIELDS if kind == element]
        kinds = ", ".join(dict.fromkeys(kind for kind, _ in MODEL_FIELDS))
        by_name = ", or a float by MuJoCo's name, such as geom_friction[0]"
        raise ScenarioError(
            got=f"'{field}' of '{element}'",
            expected=f"one of {', '.join(own)}{by_name}" if own else f"an element of kind {kinds}",
            where=where,
            next_step="Correct the entry in the scenario's YAML file.",
        )
    if (element, field) in MODEL_FIELDS:
        return
    why = named_numbers.refused(base, element, field, getattr(base, _COUNTS[element]))
    if why:
        raise ScenarioError(
            got=why,
            expected=f"a float that each {element} of the MJCF has, with its column, such as geom_friction[0]",
            where=where,
            next_step="Correct the entry in the scenario's YAML file; docs/scenarios.md lists the fields.",
        )


def _check_free_inertia(base: mujoco.MjModel, bodies: Sequence[int], where: str) -> None:
    """MuJoCo compiles a body whose inertia is aligned with its free joint to a model with a diagonal mass matrix."""
    for body in bodies:
        if base.body_simple[body]:
            raise ScenarioError(
                got=f"body '{base.body(body).name}' with its inertia exactly along its joints",
                expected="an inertia that can be turned",
                where=where,
                next_step='Give its <inertial> in the MJCF a small offset, such as pos="0.000001 0.000001 0.000001".',
            )


def in_order(bindings: Sequence[Binding]) -> tuple[Binding, ...]:
    """Masses first: writing a mass scales the inertia. Then what sets numbers, and last what goes on from these."""

    def turn(binding: Binding) -> int:
        return 0 if (binding.element, binding.field) == ("body", "mass") else 1 + binding.adds

    return tuple(sorted(bindings, key=turn))


def element_id(model: mujoco.MjModel, element: str, name: str, where: str) -> int:
    """Find a named element of the model, or say which names there are."""
    if element == "option":
        return _option(name, where)
    if not isinstance(name, str):
        raise ScenarioError(
            got=f"{element} {short(name)}",
            expected="the name of an element of the MJCF",
            where=where,
            next_step="Correct the entry in the scenario's YAML file.",
        )
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


def element_name(model: mujoco.MjModel, element: str, index: int) -> str:
    """The name that `element_id` finds an element by."""
    return "gravity" if element == "option" else mujoco.mj_id2name(model, _OBJECTS[element], index)


def _option(name: str, where: str) -> int:
    if name not in ("gravity", "air"):
        raise ScenarioError(
            got=f"option '{name}'",
            expected="gravity or air",
            where=where,
            next_step="Correct the name in the scenario's YAML file.",
        )
    return 0


_COM_AT_ORIGIN = (mujoco.mjtSameFrame.mjSAMEFRAME_BODY, mujoco.mjtSameFrame.mjSAMEFRAME_INERTIA)
_OBJECTS = {
    "pair": mujoco.mjtObj.mjOBJ_PAIR,
    "geom": mujoco.mjtObj.mjOBJ_GEOM,
    "body": mujoco.mjtObj.mjOBJ_BODY,
    "joint": mujoco.mjtObj.mjOBJ_JOINT,
    "actuator": mujoco.mjtObj.mjOBJ_ACTUATOR,
    "site": mujoco.mjtObj.mjOBJ_SITE,
    "camera": mujoco.mjtObj.mjOBJ_CAMERA,
    "tendon": mujoco.mjtObj.mjOBJ_TENDON,
    "equality": mujoco.mjtObj.mjOBJ_EQUALITY,
}
_COUNTS = {
    "pair": "npair",
    "geom": "ngeom",
    "body": "nbody",
    "joint": "njnt",
    "actuator": "nu",
    "site": "nsite",
    "camera": "ncam",
    "tendon": "ntendon",
    "equality": "neq",
}


def refresh_constants(model: mujoco.MjModel) -> None:
    """Recompute what MuJoCo derives from masses and inertias (mj_setConst)."""
    mujoco.mj_setConst(model, mujoco.MjData(model))


def free_joint_id(model: mujoco.MjModel, name: object, where: str) -> int:
    """Find a free joint by its own name or, where it has none (`<freejoint/>`), by that of its body."""
    free = np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE)
    names = {index: free_joint_name(model, int(index)) for index in free}
    for index in free:
        if name in (names[index], model.body(model.jnt_bodyid[index]).name):
            return int(index)
    raise ScenarioError(
        got=f"free joint {short(name)}",
        expected=f"one of {', '.join(names.values())}" if names else "a free joint: the MJCF has none",
        where=where,
        next_step="Correct the name in the scenario's YAML file or add it to the MJCF.",
    )


def free_joint_name(model: mujoco.MjModel, joint: int) -> str:
    """The name that `free_joint_id` finds a free joint by."""
    return model.joint(joint).name or model.body(model.jnt_bodyid[joint]).name
